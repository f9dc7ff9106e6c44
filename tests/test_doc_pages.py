"""The examples of these pages run and print what the pages show."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", ["understanding_a_model.md", "solvers.md"])
def test_examples(name):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    found = doctest.testfile(str(DOCS / name), module_relative=False, optionflags=options, encoding="utf-8")
    assert found.attempted > 5
    assert found.failed == 0
