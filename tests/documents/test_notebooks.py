"""The notebooks run from top to bottom as plain Python, and hold no outputs, so that none can be out of date."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def cells(path, kind):
    """Return the sources of the cells of a kind."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, source in enumerate(cells(path, "code"), 1):
        exec(compile(source, f"{path.name}, code cell {number}", "exec"), names)
    plt.close("all")
    assert any("assert " in source for source in cells(path, "code"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_of_the_format_and_has_no_outputs(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    identities = [cell["id"] for cell in notebook["cells"]]
    assert len(set(identities)) == len(identities)
    for cell in notebook["cells"]:
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


def test_the_site_leads_to_every_notebook():
    page = (DOCS / "notebooks.md").read_text(encoding="utf-8")
    assert len(NOTEBOOKS) == 4
    assert [path.name for path in NOTEBOOKS if f"](notebooks/{path.name})" not in page] == []
