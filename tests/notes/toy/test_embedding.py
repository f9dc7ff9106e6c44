"""The page in a frame of the site: its height, its theme, its link home, and a site that opens at its top."""

from __future__ import annotations

import functools
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mercer.notes import toy

from .browser import Browser
from .readings import needs_browser, numbers

pytestmark = [pytest.mark.page, needs_browser]
CSS = Path(__file__).parents[3] / "docs/_static/site.css"
# Widths of the window, and of a frame that the site's theme leaves in it.
WIDTHS = [(1280, 872), (390, 358)]
DARK, LIGHT = "rgb(19, 20, 22)", "rgb(246, 247, 248)"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of a site for each width and state, as docs/conf.py writes them, with furo's mark of the theme."""
    root = tmp_path_factory.mktemp("site")
    (root / "_static").mkdir()
    (root / "_static/toy.html").write_text(toy.page(home="../index.html"), encoding="utf-8")
    shutil.copy(CSS, root / "_static/site.css")
    (root / "index.html").write_text("<title>first page</title>")
    states = {"plain": "", "path": "#set=location&open=path", "trace": "#set=location&open=trace"}
    for name, state in states.items():
        for _, wide in WIDTHS:
            kind = "toy opened" if "open=" in state else "toy"
            (root / f"{name}-{wide}.html").write_text(
                '<!DOCTYPE html><html><head><link rel="stylesheet" href="_static/site.css"></head>'
                '<body data-theme="light" style="margin: 0"><p style="height: 700px">Words.</p>'
                f'<div style="width: {wide}px"><iframe class="{kind}" src="_static/toy.html{state}"></iframe></div>'
                '<p style="height: 1500px">More words.</p></body></html>'
            )
    return root


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[str]:
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Log nothing."""

    handler = functools.partial(Quiet, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()


def visit(window: Browser, url: str, width: int) -> None:
    window.out_of_frame()
    window.size(width, 900)
    window.visit(url)
    window.into_frame("iframe.toy")
    window.wait("return document.documentElement.dataset.ready === '1' && document.documentElement.dataset.settled")
    window.settle()


@pytest.fixture
def frames(window: Browser) -> Iterator[Browser]:
    """The window without an emulated theme: the frame's theme comes from its element then."""
    window.chrome("Emulation.setEmulatedMedia", {"features": []})
    yield window
    window.out_of_frame()


@pytest.mark.parametrize(("width", "wide"), WIDTHS)
@pytest.mark.parametrize("kind", ["http", "file"])
@pytest.mark.parametrize("name", ["plain", "path", "trace"])
def test_the_frame_shows_all_of_the_page_and_the_panel_that_it_opens(
    frames: Browser, server: str, site: Path, name: str, kind: str, width: int, wide: int
) -> None:
    visit(frames, f"{server if kind == 'http' else site.as_uri()}/{name}-{wide}.html", width)
    inner, own, sideways = frames.run(
        "const wide = document.documentElement.scrollWidth - innerWidth;"
        "return [document.body.offsetHeight, innerHeight, wide]"
    )
    assert inner <= own, "the frame scrolls in itself"
    assert own <= inner + (2 if kind == "http" else 130)  # it sets its own height, except for local files
    assert sideways <= 0
    if name == "plain":
        return
    canvas = {"path": "path", "trace": "box"}[name]
    top, bottom, plot_bottom, drawn = frames.run(
        "const canvas = document.getElementById(arguments[0]), box = canvas.closest('details').getBoundingClientRect();"
        "const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
        "return [box.top, box.bottom, document.getElementById('plane').getBoundingClientRect().bottom,"
        " data.some((v) => v > 0)]",
        canvas,
    )
    assert drawn
    assert bottom <= own
    if width < 800:  # one column: just below the plot, so that both are seen together
        assert 0 <= top - plot_bottom < 30
    else:
        assert bottom <= 900


@pytest.mark.parametrize("kind", ["http", "file"])
def test_the_frame_is_dark_when_the_site_is(frames: Browser, server: str, site: Path, kind: str) -> None:
    visit(frames, f"{server if kind == 'http' else site.as_uri()}/plain-872.html", 1280)
    background = "getComputedStyle(document.body).backgroundColor"
    for theme, colour in [("dark", DARK), ("light", LIGHT), ("dark", DARK), ("auto", LIGHT)]:
        frames.out_of_frame()
        frames.run("document.body.dataset.theme = arguments[0]", theme)
        frames.into_frame("iframe.toy")
        frames.wait(f"return {background} === '{colour}'", 5)
        told = frames.run("return document.documentElement.dataset.theme ?? null")
        # The color-scheme of the frame says it, too, and alone for local files; not every browser listens to that.
        assert told == (theme if kind == "http" and theme != "auto" else None)
    frames.settle()
    if kind == "http":  # the site decides, and a switch of its own would only disagree with it
        assert frames.run("return document.getElementById('theme').hidden")


def test_the_border_is_drawn_again_in_the_other_theme(frames: Browser, server: str) -> None:
    visit(frames, f"{server}/path-872.html", 1280)
    # The line f = 0 is the only opaque thing that is drawn in the colour of text.
    count = (
        "const p = document.getElementById('plane'); const [r, g, b] = arguments[0];"
        "const {data} = p.getContext('2d').getImageData(0, 0, p.width, p.height); let n = 0;"
        "for (let i = 0; i < data.length; i += 4) n += data[i] === r && data[i + 1] === g && data[i + 2] === b;"
        "return n"
    )
    black, white = [27, 29, 34], [233, 234, 238]
    assert frames.run(count, black) > 200
    frames.out_of_frame()
    frames.run("document.body.dataset.theme = 'dark'")
    frames.into_frame("iframe.toy")
    frames.settle()
    assert frames.run(count, white) > 200
    assert frames.run(count, black) < 50


def test_alone_the_page_follows_the_system(page: Browser) -> None:
    for theme, colour in [("dark", DARK), ("light", LIGHT)]:
        page.theme(theme)
        page.wait(f"return getComputedStyle(document.body).backgroundColor === '{colour}'", 5)
    assert not page.run("return document.getElementById('theme').hidden")
    page.click("#theme")
    assert page.run("return getComputedStyle(document.body).backgroundColor") == DARK


def test_a_frame_follows_its_contents_when_a_panel_opens(frames: Browser, server: str) -> None:
    visit(frames, f"{server}/plain-358.html", 390)
    before = frames.run("return innerHeight")
    frames.run("document.getElementById('proof').click()")
    frames.settle()
    inner, own = frames.run("return [document.body.offsetHeight, innerHeight]")
    assert own > before + 200
    assert inner <= own <= inner + 2
    assert numbers(frames)["gap"] >= 0


def test_the_link_leads_home_and_leaves_the_frame(frames: Browser, server: str) -> None:
    visit(frames, f"{server}/plain-872.html", 1280)
    frames.run("document.querySelector('a').click()")
    frames.out_of_frame()
    frames.wait("return document.title === 'first page'")
    assert frames.run("return location.pathname") == "/index.html"
    frames.open(f"{server}/_static/toy.html")  # hosted beside the site, in a window of its own
    frames.run("document.querySelector('a').click()")
    frames.wait("return document.title === 'first page'")


@pytest.mark.parametrize("kind", ["http", "file"])
@pytest.mark.parametrize(("width", "wide"), WIDTHS)
def test_a_page_with_a_frame_opens_at_its_top(
    frames: Browser, server: str, site: Path, kind: str, width: int, wide: int
) -> None:
    root = server if kind == "http" else site.as_uri()
    for name in ("plain", "path", "trace"):
        visit(frames, f"{root}/{name}-{wide}.html", width)
        frames.out_of_frame()
        assert frames.run("return scrollY") == 0, name
