"""``mercer train -b 1`` and ``predict -b 1`` beside LIBSVM itself: probabilities, and files that hold them."""

from pathlib import Path

import numpy as np
import pytest

from cli.commands import run
from mercer.calibration.libsvm_laws import density_marks
from mercer.files.libsvm_model import read_libsvm_model
from mercer.files.libsvm_text import write_libsvm

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("data", ["two", "three"])
def test_probabilities(data, request, libsvm, capsys):
    """LIBSVM's own reader makes the same probabilities of our file, and we of its."""
    X, y = request.getfixturevalue(data)
    run("train", "-b", "1", "-q", data, "ours.model")
    libsvm.svm_save_model("theirs.model", libsvm.svm_train(y, X, "-b 1 -q"))
    for name in ("ours.model", "theirs.model"):
        run("predict", "-b", "1", data, name, "out")
        header, *lines = Path("out").read_text().splitlines()
        model = libsvm.svm_load_model(name)
        labels, _, values = libsvm.svm_predict(y, X, model, "-b 1 -q")
        assert header == " ".join(["labels", *map(str, model.get_labels())])
        expected = [
            " ".join([f"{label:g}", *(f"{p:g}" for p in row)]) for label, row in zip(labels, values, strict=True)
        ]
        same = [a == b for a, b in zip(lines, expected, strict=True)]
        table = np.array([line.split() for line in lines], dtype=float)
        np.testing.assert_allclose(table[:, 1:], values, rtol=1e-5, atol=1e-9)
        assert np.mean(same) > 0.95  # %g may round the last digit the other way
    ours, theirs = read_libsvm_model("ours.model"), read_libsvm_model("theirs.model")
    np.testing.assert_allclose(ours.prob_a, theirs.prob_a, rtol=0.5)  # other folds, the same law
    run("predict", data, "ours.model", "out")
    assert "Model supports probability estimates, but disabled in prediction." in capsys.readouterr().out


@pytest.mark.parametrize("machine", ["2", "3", "4"])
def test_probabilities_of_machines_without_classes(machine, two, libsvm, capsys):
    """The fields of the files are LIBSVM's, with its numbers, and so are the answers that either makes of them."""
    X, y = two
    run("train", "-s", machine, "-b", "1", "-e", "1e-6", "-q", "two", "ours.model")
    libsvm.svm_save_model("theirs.model", libsvm.svm_train(y, X, f"-s {machine} -b 1 -e 1e-6 -q"))
    ours, theirs = read_libsvm_model("ours.model"), read_libsvm_model("theirs.model")
    if machine == "2":
        # On which side of 0 a free vector lies is rounding, and moves all marks: each program's follow from its values.
        for name, model in (("ours.model", ours), ("theirs.model", theirs)):
            values = libsvm.svm_predict(y, X, libsvm.svm_load_model(name), "-q")[2]
            expected = density_marks(np.array(values)[:, 0])
            np.testing.assert_allclose(model.density_marks, expected, rtol=1e-6 if name == "theirs.model" else 0.2)
    else:
        np.testing.assert_allclose(ours.prob_a, theirs.prob_a, rtol=0.2)  # other folds, the same law
    for name in ("ours.model", "theirs.model"):
        run("predict", "-b", "1", "two", name, "out")
        header, *lines = Path("out").read_text().splitlines()
        told = capsys.readouterr().out
        labels, _, values = libsvm.svm_predict(y, X, libsvm.svm_load_model(name), "-b 1 -q")
        if machine == "2":
            assert header == "label normal outlier"
            table = np.array([line.split() for line in lines], dtype=float)
            np.testing.assert_allclose(table, np.column_stack([labels, values]), rtol=1e-5)
        else:
            np.testing.assert_allclose(np.array([header, *lines], dtype=float), labels, rtol=1e-9, atol=1e-9)
            assert f"sigma={read_libsvm_model(name).prob_a[0]:g}" in told


def test_too_few_rows_for_a_one_class_machine(two, capsys):
    X, y = two
    write_libsvm(X[:8], y[:8], "few")
    run("train", "-s", "2", "-b", "1", "-q", "few", "few.model")
    assert (
        "probabilities of a one-class machine need 5 negative and 5 positive decision values" in capsys.readouterr().err
    )
    assert read_libsvm_model("few.model").density_marks is None


@pytest.mark.parametrize("first", [1, -1])
@pytest.mark.parametrize(("data", "options"), [("two", ""), ("three", ""), ("two", "-s 2"), ("two", "-s 3")])
def test_a_mercer_file_holds_the_probabilities_too(data, options, first, request, capsys):
    """Whichever class stands first in the file, which decides LIBSVM's order and signs but not the estimator's."""
    X, y = request.getfixturevalue(data)
    order = np.argsort(y)[::first]
    write_libsvm(X[order], y[order], data)
    tables = []
    for model in ("m.model", "m.mercer"):
        run("train", "-b", "1", "-q", *options.split(), data, model)
        run("predict", "-b", "1", data, model, "out")
        header, *lines = Path("out").read_text().splitlines()
        names = header.split()[1:] if "label" in header else [header]
        table = np.array([line.split() for line in (lines if len(names) > 1 else [header, *lines])], dtype=float)
        place = np.argsort(names, kind="stable") + 1 if len(names) > 1 else [0]
        tables.append(np.column_stack([table[:, 0], table[:, place]]))
    # LIBSVM's coupling of several classes stops early, and where depends on their order.
    np.testing.assert_allclose(*tables, rtol=1e-5, atol=5e-3 if data == "three" else 1e-6)
    if options == "-s 3":
        assert "Laplace distribution" in capsys.readouterr().out
    run("predict", data, "m.mercer", "out")
    assert "Model supports probability estimates, but disabled in prediction." in capsys.readouterr().out


@pytest.mark.parametrize("options", ["-b 1", "-v 7"])
def test_a_nu_that_a_fold_cannot_reach(two, options):
    """All rows allow it to the last digit, some folds do not; LIBSVM goes on, too."""
    X, y = two
    rows = np.concatenate([np.flatnonzero(y == 1)[:60], np.flatnonzero(y == -1)[:40]])
    write_libsvm(X[rows], y[rows], "some")
    run("train", "-s", "1", "-n", "0.8", "-q", *options.split(), "some")


def test_kernels_that_libsvm_does_not_know(two, capsys):
    run("train", "--kernel", "laplacian", "two", "m.model", code=1)
    assert "LIBSVM file cannot store the kernel Laplacian(gamma=1.0), only linear" in capsys.readouterr().err
    run("train", "--kernel", "laplacian", "-b", "1", "two", "m.mercer")
    assert "Total nSV = " in capsys.readouterr().out
    run("predict", "-b", "1", "two", "m.mercer", "out")
    labels, table = Path("out").read_text().split("\n", 1)
    P = np.array(table.split(), dtype=float).reshape(-1, 3)
    assert labels == "labels 1 -1"
    assert np.mean((P[:, 1] > 0.5) == (two[1] == 1)) > 0.9


def test_some_rows_of_a_kernel_matrix_need_libsvms_format(three, capsys):
    X, y = three
    table = np.column_stack([np.arange(1, 151), X @ X.T])
    write_libsvm(table[::-1], y[::-1], "some", first_index=0, zeros=True)
    run("train", "-t", "4", "-q", "some", "m.mercer", code=1)
    assert "only LIBSVM's format stores their indices" in capsys.readouterr().err
    write_libsvm(table, y, "all", first_index=0, zeros=True)
    for model in ("m.mercer", "m.model"):
        run("train", "-t", "4", "-q", "all", model)
        run("predict", "-q", "all", model, f"{model}.out")
    assert Path("m.mercer.out").read_text() == Path("m.model.out").read_text()


def test_probabilities_are_reproducible(two):
    run("train", "-b", "1", "-q", "two", "a.model")
    run("train", "-b", "1", "-q", "two", "b.model")
    assert Path("a.model").read_text() == Path("b.model").read_text()
    run("train", "-b", "1", "-q", "two", "c.model", "--seed", "1")
    assert Path("a.model").read_text() != Path("c.model").read_text()


def test_probabilities_that_are_not_there(two, capsys):
    run("train", "-q", "two")
    run("predict", "-b", "1", "two", "two.model", "out", code=1)
    assert "Model does not support probabiliy estimates" in capsys.readouterr().err
