"""README.md and the docstrings say what the code does: their examples are run, their output compared."""

import doctest
import importlib
import pkgutil
import re
import sys
import types
from importlib.util import find_spec
from pathlib import Path

import pytest

import mercer
from mercer.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCS = ROOT / "docs"
NOT_HERE = tuple(
    f"mercer.places.{engine}"
    for engine, needs in {"torch": "torch", "chunked.dask": "distributed"}.items()
    if find_spec(needs) is None
)
MODULES = [
    module.name
    for module in pkgutil.walk_packages(mercer.__path__, "mercer.")
    if not module.name.endswith("_core") and not module.name.startswith(NOT_HERE)
]
WITH_EXAMPLES = [name for name in MODULES if ">>> " in Path(find_spec(name).origin).read_text(encoding="utf-8")]


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)


def marked(name, text=README):
    """The fenced block after the comment ``<!-- NAME -->``."""
    return re.search(rf"^<!-- {re.escape(name)} -->\n```\w*\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)[1]


def skeleton(text):
    """The words of a printed page, without its numbers and their padding."""
    return re.sub(r" +", " ", re.sub(r"[-+]?\d+(\.\d+)?(e[-+]\d+)?", "#", as_released(text)))


def figures(text):
    return [float(number) for number in re.findall(r"\d+(?:\.\d+)?(?:e[-+]\d+)?", as_released(text))]


def as_released(text):
    """A text that names this version, as if it were released: the pages name no version of the development."""
    return text.replace(mercer.__version__, mercer.__version__.partition(".dev")[0])


def test_the_two_commands():
    assert marked("ci: main") == "python -m pip install . && mercer train\n"
    assert marked("ci: test") == "python -m pip install '.[test]' && python -m pytest\n"


def test_readme_is_short():
    assert len(README.splitlines()) <= 130


def test_python_examples_run_and_print_what_the_readme_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert blocks("python")
    scope = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), scope)
    printed = capsys.readouterr().out
    assert skeleton(printed) == skeleton(marked("output of the example"))


def steps_of(page):
    """The examples of a page, each with the output that is shown after it, if it is."""
    shown = r"(?:\n<!-- output -->\n```text\n(.*?)^```$)?"
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```python\n(.*?)^```\n{shown}", text, flags=re.MULTILINE | re.DOTALL)


def blocks_of(page):
    return [block for block, _ in steps_of(page)]


FOLLOWED = {"add_a_kernel.md", "add_a_machine.md"}  # they write files: test_recipes.py does what they say


@pytest.mark.parametrize(
    "page", [p for p in sorted(DOCS.glob("*.md")) if blocks_of(p) and p.name not in FOLLOWED], ids=lambda p: p.name
)
def test_python_examples_of_the_guide_run_and_print_what_it_shows(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"page_{page.stem}")  # a module, so that what a page defines can be pickled
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block, shown in steps_of(page):
        capsys.readouterr()
        exec(compile(block, page.name, "exec"), vars(module))
        if shown:
            printed = capsys.readouterr().out
            assert skeleton(printed) == skeleton(shown)
            # What is smaller than 1e-3 is a gap or a violation, and every processor's own.
            assert figures(printed) == pytest.approx(figures(shown), rel=0.02, abs=1e-3)


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda p: p.name)
def test_blocks_of_the_guide_are_formatted_as_blocks(page):
    """A fence that is indented or misspelt would be shown, and never run."""
    text = page.read_text(encoding="utf-8")
    assert text.count("```python") == len(blocks_of(page))
    assert text.count("<!-- output -->") == sum(shown != "" for _, shown in steps_of(page))


def test_the_first_page_shows_what_it_prints():
    assert any("optimal to within" in shown for _, shown in steps_of(DOCS / "index.md"))


def test_the_report_is_the_one_that_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train"]) == 0
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    shown, printed = marked("output of mercer train", page), capsys.readouterr().out
    assert skeleton(printed) == skeleton(shown)
    exact = r"(accuracy|classes|split|machine) .*"
    assert [m[0] for m in re.finditer(exact, printed)] == [m[0] for m in re.finditer(exact, shown)]


def test_the_report_of_easy_is_the_one_that_is_shown(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    page = DOCS / "your_table.md"
    exec(compile(blocks_of(page)[0], page.name, "exec"), {})
    assert main(["easy", "customers.csv", "--target", "left"]) == 0
    shown, printed = (
        marked("output of mercer easy customers.csv", page.read_text(encoding="utf-8")),
        capsys.readouterr().out,
    )
    assert skeleton(printed).startswith(skeleton(shown))
    assert figures(printed[: len(shown)]) == pytest.approx(figures(shown), rel=0.02)


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_doctests(name):
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    assert doctest.testmod(importlib.import_module(name), optionflags=options).failed == 0


def test_every_other_module_is_importable_and_has_no_example():
    finder = doctest.DocTestFinder()
    for name in sorted(set(MODULES) - set(WITH_EXAMPLES)):
        assert not [test.name for test in finder.find(importlib.import_module(name)) if test.examples]
