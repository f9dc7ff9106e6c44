"""An option that would do nothing is refused: whoever gives it expects something of it."""

import numpy as np
import pytest

from cli.commands import run
from mercer.files.libsvm_text import write_libsvm

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def files(folder):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)).round(3)
    y = np.where(X.sum(axis=1) > 0, 1, -1)
    lines = [f"{a},{b},{'yes' if label > 0 else 'no'}" for (a, b), label in zip(X, y, strict=True)]
    (folder / "t.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    write_libsvm(X, y, "text")
    np.savez("t.npz", X=X, y=y)
    return folder


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("easy t.csv --target y --folds 1", 2, "--folds is for LIBSVM text, but t.csv is a table"),
        ("easy t.csv --target y -log2c 0,2,1", 2, "--log2c is for LIBSVM text"),
        ("easy text --target y", 2, "--target is for tables, but text is LIBSVM text"),
        ("train --target y", 2, "--target is for files, but no file is given"),
        ("train --data wine t.csv --target y", 2, "--data is for training without a file, but t.csv is given"),
        ("train text --drop a", 2, "--drop is for tables, but text is LIBSVM text"),
        ("train text --keep-split", 2, "--keep-split is for tables"),
        ("tune text --decimal ,", 2, "--decimal is for tables"),
        ("train t.npz --decimal ,", 1, "--decimal is for CSV files, but t.npz is read as NumPy arrays"),
        ("train t.csv --target y --decimal ,", 1, "no number has the mark of --decimal ,: leave --decimal out"),
    ],
)
def test_refused(files, capsys, words, code, told):
    before = sorted(path.name for path in files.iterdir())
    run(*words.split(), code=code)
    assert told in capsys.readouterr().err
    assert sorted(path.name for path in files.iterdir()) == before


def test_what_has_a_use_is_taken(files):
    run("train", "t.csv", "--target", "y", "--decimal", ".", "-q")
    run("train", "--no-standardise", "-q")
    run("train", "t.npz", "--na", "x", "--drop", "a", code=1)  # arrays have no names
    (files / "c.csv").write_text((files / "t.csv").read_text().replace(",", ";").replace(".", ","))
    run("train", "c.csv", "--target", "y", "--decimal", ",", "-q")
    (files / "mixed.csv").write_text("a;b;y\n" + "".join(f"{k},5;{k}.25;{'pq'[k % 2]}\n" for k in range(20)))
    run("train", "mixed.csv", "--target", "y", "--decimal", ",", "-q")  # of one column at least


def test_prediction_too(files, capsys):
    run("train", "text", "-q")
    run("predict", "text", "text.model", "out", "--separator", ";", code=1)
    assert "--separator is for CSV files, but text is read as LIBSVM text: leave it out" in capsys.readouterr().err
