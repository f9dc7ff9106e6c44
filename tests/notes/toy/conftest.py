"""Fixtures: the page as a file, and a browser that shows it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mercer.notes import toy

from .browser import Browser


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("toy") / "toy.html"
    path.write_text(toy.page(), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture
def page(window: Browser, url: str) -> Browser:
    window.run("window.location = 'about:blank'")
    window.size(1280, 900)
    window.open(url)
    window.settle()
    return window
