"""Every part of the lecture notes has a call that exists, a page that explains it and a test that holds it."""

import importlib
import importlib.util
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
spec = importlib.util.spec_from_file_location("notes_rows", DOCS / "notes_rows.py")
notes_rows = importlib.util.module_from_spec(spec)
spec.loader.exec_module(notes_rows)
SECTIONS = {section["title"]: section["rows"] for section in notes_rows.sections()}
ROWS = [row for rows in SECTIONS.values() for row in rows]
PLACES = [(note, place) for note, places in notes_rows.told()["places"].items() for place in places]
NUMBERED = ("theorem", "lemma", "algorithm 4", "exercise", "A.2", "figures 1", "figures 2")


def missing(row):
    """What a row names that is not there."""
    return [
        *(f"no {kind}" for kind in ("calls", "pages", "tests", "where", "run") if not row.get(kind)),
        *(call for call in row["calls"] if not importable(f"mercer.{call}")),
        *(page for page in row["pages"] if not readable(page)),
        *(test for test in row["tests"] if not collected(test)),
    ]


def importable(name):
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for part in parts[k:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


def readable(page):
    if not (DOCS / page.partition("#")[0]).exists():
        return False
    try:
        return bool(notes_rows.title(page))
    except ValueError:  # no heading has this anchor
        return False


def collected(test):
    file, _, name = test.partition("::")
    if (ROOT / file).is_dir():
        return not name and any((ROOT / file).glob("test_*.py"))
    return bool(functions_in(file)) and (not name or name in functions_in(file))


@cache
def functions_in(file):
    if not (ROOT / file).exists():
        return frozenset()
    found = re.findall(r"^def (test_\w+)\(", (ROOT / file).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return frozenset(found)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", " ", row["what"])[:50])
def test_what_a_row_names_is_there(row):
    assert not missing(row)


def test_no_row_has_gone():
    """There may be more: these are the rows of the specification, its last part item by item."""
    least = {
        "Kernels and their space": 12,
        "Machines": 16,
        "Solvers": 10,
        "Regularized least squares": 6,
        "Theory as numbers": 11,
        "Choosing and shrinking a model": 10,
        "What a second reading found": 31,
        "What a third reading found": 14,
    }
    assert all(len(SECTIONS[title]) >= count for title, count in least.items())
    assert len({row["what"] for row in ROWS}) == len(ROWS)


def test_every_place_of_the_notes_has_a_row():
    places = {
        f"{note}{' ' if place[0].isdigit() or place.startswith(NUMBERED) else ': '}{place}" for note, place in PLACES
    }
    assert places == {where for row in ROWS for where in row["where"]}


@pytest.fixture(scope="module")
def ready():
    """What the page begins with."""
    pytest.importorskip("matplotlib").use("agg")
    names = {}
    exec(notes_rows.told()["prelude"], names)
    return names


@pytest.mark.parametrize("row", ROWS, ids=lambda row: re.sub(r"\W+", " ", row["what"])[:50])
def test_what_a_row_says_is_so(row, ready):
    """In names of its own, with the note alone in hand: the line is true."""
    if "qp:clarabel" in row["run"]:
        pytest.importorskip("clarabel")
    assert eval(row["run"], dict(ready))


def test_what_is_missing_is_found():
    there = {
        "what": "a row",
        "where": ["Li 1"],
        "run": "True",
        "calls": ["SVC.fit"],
        "pages": ["kernels.md#features"],
        "tests": ["tests/documents/test_notes_rows.py::test_no_row_has_gone"],
    }
    assert not missing(there)
    for changed in (
        {"calls": []},
        {"where": []},
        {"run": ""},
        {"calls": ["SVC.gone"]},
        {"calls": ["gone.SVC"]},
        {"pages": ["gone.md"]},
        {"pages": ["kernels.md#gone"]},
        {"tests": ["tests/gone.py"]},
        {"tests": ["tests/documents/test_notes_rows.py::test_gone"]},
        {"tests": []},
    ):
        assert missing(there | changed)


def test_the_page_is_made_of_the_rows():
    """If not: python docs/notes_rows.py."""
    assert (DOCS / "notes_rows.md").read_text(encoding="utf-8") == notes_rows.page()
