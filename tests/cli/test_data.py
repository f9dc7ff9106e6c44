"""Tables as people have them: CSV with a named target, .npz, Parquet, standard input; and what is wrong with them."""

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris

import mercer
from cli.commands import run
from mercer.cli.data import read_data

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def iris(folder):
    data = load_iris()
    names = ["sepal length", "sepal width", "petal length", "petal width", "species"]
    rows = [
        ",".join([*map(str, row), species])
        for row, species in zip(data.data.tolist(), data.target_names[data.target], strict=True)
    ]
    (folder / "iris.csv").write_text("\n".join([",".join(names), *rows, ""]))
    return data


def test_five_commands(folder, iris, capsys):
    """Train on a CSV, look at it, draw it, predict; then the same from Python."""
    pytest.importorskip("matplotlib")
    run("train", "iris.csv", "--target", "species")
    assert "150 rows × 4 features" in capsys.readouterr().out
    run("inspect", "iris.mercer")
    assert "sepal length, sepal width, petal length, petal width" in capsys.readouterr().out
    run(
        "plot",
        "iris.csv",
        "iris.mercer",
        "iris.png",
        "--target",
        "species",
        "--features",
        "petal length",
        "petal width",
    )
    assert (folder / "iris.png").read_bytes().startswith(b"\x89PNG")
    run("predict", "iris.csv", "iris.mercer", "answers.txt", "--target", "species", "--plain")
    told = capsys.readouterr().out
    assert "Accuracy = 9" in told
    assert "The model was trained on these rows" in told
    model = mercer.load("iris.mercer")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the model knows names, the array has none
        np.testing.assert_array_equal(model.predict(iris.data), np.loadtxt("answers.txt", dtype=str))


def test_columns_are_found_by_name(folder, iris, capsys):
    run("train", "iris.csv", "--target", "species", "-q")
    run("predict", "iris.csv", "iris.mercer", "straight", "--plain")
    lines = (folder / "iris.csv").read_text().splitlines()
    turned = [",".join(line.split(",")[:4][::-1]) for line in lines]
    (folder / "turned.csv").write_text("\n".join(turned))
    run("predict", "turned.csv", "iris.mercer", "turned", "--plain")
    assert (folder / "turned").read_text() == (folder / "straight").read_text()
    (folder / "short.csv").write_text("sepal length,sepal width\n1,2\n")
    run("predict", "short.csv", "iris.mercer", code=1)
    assert "lacks the columns 'petal length', 'petal width' that the model was trained on" in capsys.readouterr().err


def test_options_of_tables(iris, capsys):
    run("train", "iris.csv", "--target", "species", "--no-standardise", "-wvirginica", "3", "-c", "2", "--json")
    report = json.loads(capsys.readouterr().out)
    assert report["standardised"] is False
    machine = mercer.load("iris.mercer").estimator_
    assert machine.class_weight_.tolist() == [1, 1, 3]
    assert machine.C == 2
    run("train", "iris.csv", "--target", "species", "-v", "5")
    assert capsys.readouterr().out.startswith("Cross Validation Accuracy = 9")
    run("train", "iris.csv", "--target", "species", "-v", "5", "--json")
    assert json.loads(capsys.readouterr().out)["folds"] == 5


def test_npz(folder, iris, capsys):
    np.savez("dense.npz", X=iris.data, y=iris.target)
    S = sp.csr_array(iris.data)
    np.savez("sparse.npz", data=S.data, indices=S.indices, indptr=S.indptr, shape=S.shape, y=iris.target)
    for name in ("dense", "sparse"):
        run("train", f"{name}.npz", "-q")
        run("predict", f"{name}.npz", f"{name}.mercer", "out")
        assert np.mean(np.loadtxt("out") == iris.target) > 0.9
    np.savez("none.npz", Z=[1])
    run("train", "none.npz", code=1)
    assert "must contain X, or data, indices, indptr and shape; it contains Z" in capsys.readouterr().err


def test_parquet(folder, iris):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {f"c{j}": iris.data[:, j] for j in range(4)}
    parquet.write_table(pyarrow.table({**columns, "kind": iris.target_names[iris.target]}), "iris.parquet")
    data = read_data("iris.parquet", target="kind")
    np.testing.assert_array_equal(data.X, iris.data)
    np.testing.assert_array_equal(data.y, iris.target_names[iris.target])


def test_standard_input(folder, iris, monkeypatch):
    content = (folder / "iris.csv").read_bytes()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    data = read_data("-", "csv", "species")
    np.testing.assert_array_equal(data.X, iris.data)


def test_kinds_of_labels(folder):
    for text, expected in (("1\n2\n1", "i"), ("0.5\n2\n1", "f"), ("a\n2\n1", "U")):
        (folder / "t.csv").write_text("\n".join(["x,y", *(f"1,{label}" for label in text.split())]))
        assert read_data("t.csv", target="y").y.dtype.kind == expected


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("x,y\n1,2\n", [], "name the column to predict with --target: t.csv has 'x', 'y'"),
        ("x,y\n1,2\n", ["--target", "z"], "has no column 'z'; it has 'x', 'y'"),
        (
            "1.5,2\n1,2\n",
            ["--target", "y"],
            "has no column 'y'; it has '1.5', '2'; its first line must name the columns",
        ),
        ("x,y\n1,a\n2,b\n3,b\n", ["--target", "y"], "the class 'a' has a single row"),
        (
            "x,y\n1,0.5\n2,1.5\n3,1.5\n",
            ["--target", "y", "--machine", "svc"],
            "such as 0.5, which are not classes; for regression add",
        ),
        ("x,y\n1,1\n2,2\n3,3\n", ["--target", "y"], "if the target is a quantity, use --machine svr"),
        (
            "x,y\n1,2\n2,3\nred,3\n4,2\n",
            ["--target", "y"],
            "t.csv: row 3 of the column 'x' holds 'red', but 3 rows hold numbers; correct or empty the cell",
        ),
        ("x,y\n1,2\n1,2\n1,3\n1,3\n", ["--target", "y"], "no column is left to learn from ('x': dropped: 1 in every"),
        (
            "x,y\n1,2\n",
            ["--target", "y", "--numeric", "y"],
            "t.csv: the column 'y' is the target; these options are for",
        ),
        ("x,z,y\n1,1,2\n2,1,3\n", ["--target", "y", "--drop", "zz"], "no column 'zz' (did you mean 'z'?); it has 'x'"),
        ("x,y\n1,2\n1,2,3\n", ["--target", "y"], "t.csv:3: 3 fields, but 2 columns are named, separated by ','"),
        ("x,y,y\n1,1,2\n", ["--target", "y"], "the column 'y', the target, occurs twice; rename one of the two"),
        ("", ["--target", "y"], "is empty; its first line must name the columns"),
        ("y\n1\n", ["--target", "y"], "no column besides the target"),
    ],
)
def test_bad_tables(folder, text, flags, message, capsys):
    (folder / "t.csv").write_text(text)
    run("train", "t.csv", *flags, code=1)
    assert message in capsys.readouterr().err
    assert os.listdir(folder) == ["t.csv"]


def test_ranking_data_are_sent_to_svm_learn(folder, capsys):
    (folder / "rank").write_text("1 qid:1 1:1\n2 qid:1 1:2\n")
    run("train", "rank", code=1)
    assert "mercer svm_learn -z p" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "t.json"], "t.json: mercer does not read .json files; save the table as .csv"),
        (["train", "t.dta", "--target", "y"], "t.dta: mercer does not read .dta files"),
        (["train", "t.csv", "--target", "y", "--sheet", "A"], "--sheet is for Excel files, but t.csv is a CSV file"),
        (["tune", "t.json.gz", "--target", "y"], "mercer does not read .json files"),
        (["tune", ".", "--target", "y"], ". is a folder; name a file"),
        (["train", "plain", "--target", "y"], "if it is a table, add --format csv"),
        (["train", "t.csv", "m.pkl", "--target", "y"], "m.pkl: mercer does not write .pkl models"),
        (
            ["train", "t.csv", "m.onnx", "--target", "y"],
            "save the model as .mercer first; mercer convert then turns it into .onnx",
        ),
        (["convert", "t.mercer", "m.pmml"], "m.pmml: mercer does not write .pmml models; it writes .mercer, .onnx and"),
        (["predict", "t.csv", "t.csv"], "t.csv is not a model: it does not begin like a .mercer file"),
        (["train", "zero"], "uses index 0, but indices count from 1: add 1 to every index of the file"),
    ],
)
def test_files_that_are_not_what_is_asked_for(folder, words, message, capsys):
    (folder / "t.csv").write_text("\n".join(["x,y", *(f"{i},{'ab'[i > 9]}" for i in range(20)), ""]))
    (folder / "plain").write_text("1 1:1\n-1 1:2\n")
    (folder / "zero").write_text("1 0:1\n-1 0:2\n")
    run("train", "t.csv", "--target", "y", "-q")
    before = sorted(os.listdir(folder))
    run(*words, code=1)
    assert message in capsys.readouterr().err
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)])
def test_packed_tables(folder, ending, pack, capsys):
    text = "\n".join(["x,y", *(f"{i},{'ab'[i > 9]}" for i in range(20)), ""])
    (folder / "t.csv").write_text(text)
    run("train", "t.csv", "--target", "y", "-q")
    plain = (folder / "t.mercer").read_bytes()
    (folder / f"t.csv.{ending}").write_bytes(pack(text.encode()))
    run("train", f"t.csv.{ending}", "--target", "y", "-q")
    assert (folder / "t.mercer").read_bytes() == plain
    run("predict", f"t.csv.{ending}", "t.mercer", "out")
    assert "20/20" in capsys.readouterr().out
