"""``mercer train``, ``predict`` and ``scale`` beside LIBSVM itself: options, output, files and numbers."""

import io
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.commands import run
from mercer.cli.libsvm.flags import translate
from mercer.cli.main import _build_parsers
from mercer.files.libsvm_model import read_libsvm_model
from mercer.files.libsvm_text import read_libsvm, write_libsvm

pytestmark = pytest.mark.usefixtures("folder")


# --- train ----------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
@pytest.mark.parametrize(
    ("data", "kind", "options"),
    [
        ("two", "c_svc", ""),
        ("two", "c_svc", "-t 0 -c 0.1"),
        ("two", "c_svc", "-t 1 -r 1 -d 2"),
        ("two", "c_svc", "-w1 10 -w-1 2 -c 0.5"),
        ("two", "c_svc", "-g 0.05 -c 3 -h 0 -m 50"),
        ("three", "c_svc", ""),
        ("three", "c_svc", "-t 0 -w7 3"),
        ("two", "nu_svc", "-s 1 -n 0.2"),
        ("two", "one_class", "-s 2 -n 0.3"),
        ("two", "epsilon_svr", "-s 3 -p 0.2"),
        ("two", "nu_svr", "-s 4 -n 0.4"),
    ],
)
def test_the_model_is_libsvms(data, kind, options, libsvm, request, capsys):
    """At a tight tolerance: the same rho, the same support vectors, the same decisions; and LIBSVM reads the file."""
    X, y = request.getfixturevalue(data)
    run("train", *options.split(), "-e", "1e-9", data, "ours.model")
    assert libsvm.svm_save_model("theirs.model", libsvm.svm_train(y, X, f"{options} -e 1e-9 -q")) is None
    ours, theirs = read_libsvm_model("ours.model"), read_libsvm_model("theirs.model")
    assert (ours.svm_type, ours.kernel_type, ours.numbers) == (theirs.svm_type, theirs.kernel_type, theirs.numbers)
    assert ours.label == theirs.label
    np.testing.assert_allclose(ours.rho, theirs.rho, rtol=1e-6, atol=1e-6)
    assert abs(len(ours.coefficients) - len(theirs.coefficients)) <= 3
    loaded = libsvm.svm_load_model("ours.model")
    labels, _, values = libsvm.svm_predict(y, X, loaded, "-q")
    np.testing.assert_allclose(
        values, libsvm.svm_predict(y, X, libsvm.svm_load_model("theirs.model"), "-q")[2], atol=2e-5
    )
    run("predict", data, "ours.model", "out")
    np.testing.assert_allclose(np.loadtxt("out"), labels, rtol=1e-9)
    run("predict", data, "theirs.model", "out")
    expected = libsvm.svm_predict(y, X, libsvm.svm_load_model("theirs.model"), "-q")[0]
    np.testing.assert_allclose(np.loadtxt("out"), expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
def test_the_sigmoid_kernel(two, libsvm, capsys):
    """It is not positive definite: two solvers may end at two stationary points, so only the file is compared."""
    X, y = two
    run("train", "-t", "3", "-g", "0.01", "-r", "-0.5", "two")
    labels, _, values = libsvm.svm_predict(y, X, libsvm.svm_load_model("two.model"), "-q")
    model = read_libsvm_model("two.model")
    np.testing.assert_allclose(model.function()(X), values, atol=1e-9)
    run("predict", "two", "two.model", "out")
    np.testing.assert_array_equal(np.loadtxt("out"), labels)


def test_what_is_printed(two, capsys):
    run("train", "two")
    lines = capsys.readouterr().out.splitlines()
    number = r"-?\d+\.\d{6}"
    patterns = [
        r"\*",
        r"optimization finished, #iter = \d+",
        f"nu = {number}",
        f"obj = -{number}, rho = {number}",
        r"nSV = \d+, nBSV = \d+",
        r"Total nSV = \d+",
    ]
    assert len(lines) == len(patterns)
    for pattern, line in zip(patterns, lines, strict=True):
        assert re.fullmatch(pattern, line), line
    model = read_libsvm_model("two.model")
    assert f"nSV = {len(model.coefficients)}," in lines[4]
    bounded = int((np.abs(model.coefficients) == 1).sum())
    assert lines[4].endswith(f"nBSV = {bounded}")
    total = np.abs(model.coefficients).sum()
    assert lines[2] == f"nu = {total / len(two[1]):f}"
    assert f"rho = {model.rho[0]:f}" in lines[3]


def test_the_objective_is_that_of_the_file(two, capsys):
    """½α'Qα − Σα, recomputed from the model file alone."""
    run("train", "two", "-g", "0.1")
    printed = float(re.search(r"obj = (\S+),", capsys.readouterr().out)[1])
    model = read_libsvm_model("two.model")
    vectors, coefficients = model.vectors.toarray(), model.coefficients[:, 0]
    K = np.exp(-0.1 * ((vectors[:, None] - vectors[None]) ** 2).sum(axis=2))
    assert printed == pytest.approx(0.5 * coefficients @ K @ coefficients - np.abs(coefficients).sum(), rel=1e-6)


@pytest.mark.parametrize("options", ["-s 1 -n 0.1", "-s 1 -n 0.3", "-s 0", "-s 2", "-s 3", "-s 4"])
def test_the_default_tolerance_is_good_for_six_digits_of_the_objective(two, options, capsys):
    """ν-SVC's is divided by its squared margin, and needs more of it."""
    found = []
    for e in ("1e-3", "1e-9"):
        run("train", *options.split(), "-e", e, "two", "m")
        found.append(float(re.search(r"obj = (\S+),", capsys.readouterr().out)[1]))
    assert found[0] == pytest.approx(found[1], rel=1e-6)


def test_gamma_zero_is_one_over_the_largest_index(two):
    for options in ([], ["-g", "0"]):
        run("train", *options, "two")
        assert read_libsvm_model("two.model").numbers["gamma"] == 1 / 30


def test_the_default_name_is_in_this_folder(folder, two, monkeypatch):
    (folder / "elsewhere").mkdir()
    monkeypatch.chdir(folder / "elsewhere")
    run("train", "-q", "../two")
    assert (folder / "elsewhere" / "two.model").exists()


def test_one_class_only(capsys):
    write_libsvm([[1.0], [2.0]], [4, 4], "one")
    run("train", "one")
    assert "training data in only one class" in capsys.readouterr().out
    run("predict", "one", "one.model", "out")
    assert (np.loadtxt("out") == 4).all()


def test_precomputed(three, libsvm):
    """0:serial 1:K ... rows give the model of the kernel itself; a subset of the rows will do."""
    X, y = three
    K = X @ X.T
    table = np.column_stack([np.arange(1, 151), K])
    write_libsvm(table[:100], y[:100], "gram", first_index=0, zeros=True)
    run("train", "-t", "4", "-q", "-e", "1e-9", "gram")
    write_libsvm(X[:100], y[:100], "plain")
    run("train", "-t", "0", "-q", "-e", "1e-9", "plain")
    np.testing.assert_allclose(read_libsvm_model("gram.model").rho, read_libsvm_model("plain.model").rho, atol=1e-6)
    write_libsvm(np.column_stack([np.zeros(50), K[100:]]), y[100:], "test", first_index=0, zeros=True)
    run("predict", "test", "gram.model", "out", "-q")
    model = libsvm.svm_load_model("gram.model")
    rows = [{0: 1, **{j + 1: value for j, value in enumerate(row)}} for row in K[100:].tolist()]
    np.testing.assert_array_equal(np.loadtxt("out"), libsvm.svm_predict(y[100:], rows, model, "-q")[0])


def test_rows_of_a_kernel_matrix_in_any_order(three):
    X, y = three
    serials = np.random.default_rng(1).permutation(150)[:60]
    table = np.column_stack([serials + 1, (X @ X.T)[serials]])
    write_libsvm(table, y[serials], "some", first_index=0, zeros=True)
    run("train", "-t", "4", "-q", "some")
    assert set(read_libsvm_model("some.model").serials - 1) <= set(serials.tolist())


@pytest.mark.parametrize(
    ("text", "message"),
    [("1 1:2 2:3\n-1 1:1\n", "first column must be 0:sample_serial_number"), ("1 0:3 1:2\n", "out of range")],
)
def test_bad_kernel_matrices(text, message, folder, capsys):
    (folder / "bad").write_text(text)
    run("train", "-t", "4", "bad", code=1)
    assert message in capsys.readouterr().err


def test_cross_validation_prints_and_writes_nothing(folder, three, capsys):
    run("train", "-v", "5", "three")
    printed = capsys.readouterr().out
    assert re.fullmatch(r"Cross Validation Accuracy = 9\d(\.\d+)?%\n", printed)
    assert [path.name for path in folder.iterdir()] == ["three"]
    run("train", "-v", "5", "three")
    assert capsys.readouterr().out == printed
    run("train", "-v", "1", "three", code=1)
    assert "n must >= 2" in capsys.readouterr().err


def test_an_unknown_weight_is_a_warning(two, capsys):
    run("train", "-q", "-w5", "2", "two")
    assert capsys.readouterr().err == "WARNING: class label 5 specified in weight is not found\n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-z", "1", "two"], 2, "Unknown option: -z"),
        (["two", "-c"], 2, "-c needs a value"),
        (["-s", "9", "two"], 2, "invalid choice: '9'"),
        (["-c", "0", "two"], 1, "C=0.0 must be"),
        (["-g", "-1", "two"], 1, "gamma=-1.0 must be"),
        (["-e", "0", "two"], 1, "tol=0.0 must be"),
        (["-h", "2", "two"], 2, "invalid choice: 2"),
        (["-b", "2", "two"], 2, "invalid choice: 2"),
        (["nothing"], 1, "No such file"),
        (["-t", "9", "two"], 1, "kernel='9' is not the name of a kernel"),
    ],
)
def test_wrong_options(two, words, code, message, capsys):
    run("train", *words, code=code)
    assert message in capsys.readouterr().err


def test_labels_must_be_integers(folder, capsys):
    (folder / "real").write_text("1 1:1\n1.5 1:2\n")
    run("train", "real", code=1)
    assert "real: row 2 has the label 1.5, but classes are integers; for regression use -s 3" in capsys.readouterr().err


def test_only_the_letter_counts():
    command = _build_parsers("train")[1]["train"]
    assert translate(["-cost", "5", "data", "-q", "-w-1", "2", "--tol", "1"], command) == [
        *("--C=5", "--quiet", "--weight=-1:2", "--tol=1", "data")
    ]
    assert translate(["-s", "3", "-t", "1", "-r", "-2"], command) == [
        "--machine=epsilon_svr",
        "--kernel=poly",
        "--coef0=-2",
    ]


def test_standard_input(two, folder, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO((folder / "two").read_bytes())))
    run("train", "-", "m.model", "-q")
    run("train", "two", "n.model", "-q")
    assert (folder / "m.model").read_bytes() == (folder / "n.model").read_bytes()


# --- predict --------------------------------------------------------------------------------------------------------


def test_the_accuracy_is_told(two, capsys):
    run("train", "-q", "two")
    run("predict", "two", "two.model", "out")
    _, y = two
    right = int((np.loadtxt("out") == y).sum())
    assert capsys.readouterr().out == f"Accuracy = {100 * right / len(y):g}% ({right}/{len(y)}) (classification)\n"
    run("predict", "two", "two.model")
    printed = capsys.readouterr()
    assert printed.out == Path("out").read_text()
    assert printed.err.startswith("Accuracy = ")


def test_new_columns_count_in_a_distance(folder):
    """A feature that no support vector has is still part of ‖x − z‖²."""
    (folder / "train").write_text("1 1:1\n-1 1:-1\n")
    (folder / "test").write_text("1 1:1\n1 1:1 7:5\n")
    run("train", "-q", "-g", "1", "train")
    model = read_libsvm_model("train.model")
    X, _ = read_libsvm("test")
    f = model.function(X.shape[1])(X)[:, 0]
    assert f[1] == pytest.approx((f[0] + model.rho[0]) * np.exp(-25) - model.rho[0])
    run("predict", "test", "train.model", "out")


def test_fewer_columns_than_the_model(folder):
    (folder / "train").write_text("1 1:1 9:1\n-1 1:-1 9:2\n")
    (folder / "test").write_text("1 1:1\n-1 1:-1\n")
    run("train", "-q", "train")
    run("predict", "-q", "test", "train.model", "out")
    assert np.loadtxt("out").tolist() == [1, -1]
    run("train", "-q", "train", "m.mercer")
    run("predict", "-q", "test", "m.mercer", "out")
    assert np.loadtxt("out").tolist() == [1, -1]


# --- scale ----------------------------------------------------------------------------------------------------------


def test_scale_by_hand(folder, capsys):
    (folder / "data").write_text("1 1:10 2:3\n2 1:20 3:1\n3 1:15 2:3 4:0.5\n")
    run("scale", "-s", "range", "data")
    printed = capsys.readouterr()
    # Column 2 is 3 0 3, column 3 is 0 1 0, column 4 is 0 0 0.5; zeros are not written.
    assert printed.out == "1 1:-1 2:1 3:-1 4:-1 \n2 1:1 2:-1 3:1 4:-1 \n3 2:1 3:-1 4:1 \n"
    assert "original #nonzeros 7\n       > new      #nonzeros 11" in printed.err
    assert (folder / "range").read_text() == "x\n-1 1\n1 10 20\n2 0 3\n3 0 1\n4 0 0.5\n"
    (folder / "new").write_text("5 1:30 5:1\n6 5:2\n")
    run("scale", "-r", "range", "new")
    printed = capsys.readouterr()
    assert printed.out == "5 1:3 2:-1 3:-1 4:-1 \n6 1:-3 2:-1 3:-1 4:-1 \n"
    assert "feature index 5" in printed.err


def test_scale_with_options(folder, capsys):
    (folder / "data").write_text("10 1:1 2:7\n20 1:3 2:7\n15 1:2 2:7\n")
    run("scale", "-l", "0", "-u", "2", "-y", "-1", "1", "-s", "range", "data")
    assert capsys.readouterr().out == "-1 \n1 1:2 \n0 1:1 \n"  # column 2 is constant
    assert (folder / "range").read_text() == "y\n-1 1\n10 20\nx\n0 2\n1 1 3\n"
    run("scale", "-r", "range", "data")
    assert capsys.readouterr().out == "-1 \n1 1:2 \n0 1:1 \n"


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["-r", "a", "-s", "b", "data"], 2, "not allowed with"),
        (["-l", "1", "-u", "1", "data"], 1, "the lower end 1 is not below the upper end 1"),
        (["-x", "data"], 2, "Unknown option: -x"),
        (["-r", "bad", "data"], 1, "range file"),
    ],
)
def test_wrong_scale_options(folder, words, code, message, capsys):
    (folder / "data").write_text("1 1:1\n")
    (folder / "bad").write_text("x\n1\n")
    run("scale", *words, code=code)
    assert message in capsys.readouterr().err
