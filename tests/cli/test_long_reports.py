"""Reports for people: facts first, and of many alike things some and a count."""

import re
from pathlib import Path

import numpy as np
import pytest

from cli.commands import run

pytestmark = pytest.mark.usefixtures("folder")


def write_wide(n_columns, n_rows=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, n_columns)).round(3).astype(str)
    y = np.where(X[:, 0].astype(float) > 0, "yes", "no")
    X[rng.random(X.shape) < 0.1] = ""
    header = ",".join([*(f"c{k}" for k in range(n_columns)), "y"])
    Path("wide.csv").write_text(
        "\n".join([header, *(",".join([*x, label]) for x, label in zip(X, y, strict=True)), ""])
    )


def test_inspect_tells_what_was_set_after_what_was_found(capsys):
    write_wide(3)
    run("train", "wide.csv", "--target", "y", "-c", "7", "-q")
    run("inspect", "wide.mercer")
    lines = capsys.readouterr().out.splitlines()
    names = [line.split("  ")[0].rstrip(":") for line in lines if not line.startswith(" ")]
    assert names[-1] == "parameters"
    assert names.index("certificate") < names.index("parameters")
    assert [line.split() for line in lines[lines.index("parameters:") + 1 :]] == [["C", "7"]]
    run("train", "wide.csv", "--target", "y", "-q")
    run("inspect", "wide.mercer")
    assert re.search(r"\nparameters +all at their defaults\n$", capsys.readouterr().out)
    run("inspect", "wide.mercer", "--json")
    assert '"shrinking": ' in capsys.readouterr().out  # a program gets all of them


@pytest.mark.parametrize("command", ["train", "inspect"])
def test_many_columns_with_holes_of_their_own(command, capsys):
    write_wide(120)
    run("train", "wide.csv", "--target", "y")
    if command == "inspect":
        capsys.readouterr()
        run("inspect", "wide.mercer")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) < 90
    told = [line for line in lines if "number, standardised" in line]
    assert 0 < len(told) <= 20
    [rest] = [line for line in lines if re.search(r"and [\d,]+ more columns", line)]
    assert int(re.search(r"and (\d+) more columns", rest)[1]) == 120 - len(told)
    assert "--verbose" in rest or "--json" in rest
