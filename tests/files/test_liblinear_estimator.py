"""LIBLINEAR's models as estimators and back, with liblinear-official's own reader and predictor as the truth."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris

from mercer import SVC, LinearSVC, LinearSVR
from mercer.cli.main import main
from mercer.files.liblinear_estimator import estimator_from_liblinear, liblinear_from_estimator
from mercer.files.liblinear_model import (
    SOLVERS,
    format_liblinear_model,
    parse_liblinear_model,
    read_liblinear_model,
    write_liblinear_model,
)
from mercer.files.libsvm_text import write_libsvm

IRIS, SPECIES = load_iris(return_X_y=True)
LABELS = np.array([7, -2, 5])[SPECIES]  # neither ascending nor starting at 0
DIABETES, PROGRESS = load_diabetes(return_X_y=True)
NUMBERS = {"classify": (1, 2, 3, 4), "regress": (11, 12, 13)}


@pytest.fixture
def liblinear():
    return pytest.importorskip("liblinear.liblinearutil")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "linear.model"


def theirs(liblinear, path, X, y):
    """Labels or values, and decision values, of LIBLINEAR's own reader and predictor."""
    model = liblinear.load_model(str(path))
    assert model is not None
    labels, _, values = liblinear.predict(y, X, model, "-q")
    return np.array(labels), np.array(values), np.array(model.get_labels())


@pytest.mark.parametrize("solver", NUMBERS["classify"])
@pytest.mark.parametrize("bias", [-1, 1, 2.5])
@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_of_theirs(liblinear, path, solver, bias, classes, capfd):
    rows = classes > SPECIES
    X, y = IRIS[rows], LABELS[rows].astype(float)
    liblinear.save_model(str(path), liblinear.train(y, X, f"-s {solver} -B {bias} -q"))
    machine = estimator_from_liblinear(read_liblinear_model(path))
    labels, values, order = theirs(liblinear, path, X, y)
    np.testing.assert_array_equal(machine.predict(X), labels)
    ours = machine.decision_function(X)
    if classes == 2:
        np.testing.assert_array_equal(machine.classes_, order[::-1])
        # Of their joint machine's two values, each the other's opposite, they tell the first; ours is the difference.
        expected = 2 * values[:, 0] if solver == 4 else values[:, 0]
        np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(machine.classes_, order)
        np.testing.assert_allclose(ours, values, rtol=1e-9, atol=1e-12)
    back = liblinear_from_estimator(machine)
    if solver != 4 or classes > 2:
        np.testing.assert_allclose(back.weights, read_liblinear_model(path).weights, rtol=1e-15)
    assert (back.solver_type, back.label, back.bias) == (
        read_liblinear_model(path).solver_type,
        read_liblinear_model(path).label,
        bias,
    )
    if bias in (-1, 1) and (solver != 4 or classes > 2):
        assert format_liblinear_model(back) == path.read_bytes()


@pytest.mark.parametrize("solver", NUMBERS["regress"])
@pytest.mark.parametrize("bias", [-1, 1])
def test_a_regressor_of_theirs(liblinear, path, solver, bias, capfd):
    liblinear.save_model(str(path), liblinear.train(PROGRESS, DIABETES, f"-s {solver} -B {bias} -c 10 -q"))
    machine = estimator_from_liblinear(read_liblinear_model(path))
    values, _, _ = theirs(liblinear, path, DIABETES, PROGRESS)
    # Terms of either sign cancel in a value: its rounding is that of the largest.
    np.testing.assert_allclose(machine.predict(DIABETES), values, rtol=1e-12, atol=1e-14 * np.abs(values).max())
    assert format_liblinear_model(liblinear_from_estimator(machine)) == path.read_bytes()


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"bias": "regularized", "intercept_scaling": 3.0},
        {"bias": False, "solver": "dual"},
        {"loss": "hinge"},
        {"bias": False, "multiclass": "crammer_singer"},
        {"C": 0.1, "bias": "regularized", "multiclass": "crammer_singer"},
    ],
)
def test_a_classifier_of_ours(liblinear, path, parameters, classes, capfd):
    rows = classes > SPECIES
    X, y = IRIS[rows], LABELS[rows]
    machine = LinearSVC(**parameters).fit(X, y)
    write_liblinear_model(liblinear_from_estimator(machine), path)
    labels, values, _ = theirs(liblinear, path, X, y.astype(float))
    np.testing.assert_array_equal(labels, machine.predict(X))
    ours = machine.decision_function(X)
    if classes == 3:
        np.testing.assert_allclose(values, ours, rtol=1e-9, atol=1e-9)
    elif "multiclass" in parameters:
        np.testing.assert_allclose(2 * values[:, 0], ours, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_allclose(values[:, 0], ours, rtol=1e-9, atol=1e-9)
    again = estimator_from_liblinear(read_liblinear_model(path))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    if parameters.get("bias") == "regularized":
        assert (again.bias, again.intercept_scaling) == ("regularized", parameters.get("intercept_scaling", 1.0))


@pytest.mark.parametrize("parameters", [{"C": 1000.0}, {"loss": "squared_epsilon_insensitive", "bias": False}])
def test_a_regressor_of_ours(liblinear, path, parameters, capfd):
    machine = LinearSVR(**parameters).fit(DIABETES, PROGRESS)
    write_liblinear_model(liblinear_from_estimator(machine), path)
    values, _, _ = theirs(liblinear, path, DIABETES, PROGRESS)
    np.testing.assert_allclose(values, machine.predict(DIABETES), rtol=1e-9)


def test_the_same_problem_has_the_same_solution(liblinear, path, capfd):
    """Their C, loss and regularized bias mean what ours do: trained to the end, the two files hold the same weights."""
    y = np.where(SPECIES == 2, 1.0, -1.0)
    liblinear.save_model(str(path), liblinear.train(y, IRIS, "-s 2 -c 0.7 -B 2 -e 1e-10 -q"))
    machine = LinearSVC(0.7, bias="regularized", intercept_scaling=2.0, solver="newton", tol=1e-9).fit(IRIS, y)
    ours = liblinear_from_estimator(machine)
    found = read_liblinear_model(path)
    assert (ours.solver_type, ours.label, ours.bias) == (found.solver_type, found.label, found.bias)
    np.testing.assert_allclose(ours.weights, found.weights, rtol=1e-5)


def test_by_hand():
    text = "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 4 9\nnr_feature 2\nbias 0.5\nw\n0.25 \n-1 \n2 \n"
    machine = estimator_from_liblinear(parse_liblinear_model(text.encode()), n_features=3)
    np.testing.assert_array_equal(machine.classes_, [9, 4])
    np.testing.assert_array_equal(machine.coef_, [[0.25, -1.0, 0.0]])
    np.testing.assert_array_equal(machine.intercept_, [1.0])
    np.testing.assert_array_equal(machine.predict([[0.0, 0.0, 5.0], [0.0, 2.0, 5.0]]), [4, 9])
    np.testing.assert_array_equal(machine.predict(sp.csr_array([[0.0, 0.0, 5.0], [0.0, 2.0, 5.0]])), [4, 9])


def test_a_bias_of_zero_is_none():
    text = "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 4 9\nnr_feature 1\nbias 0\nw\n0.25 \n7 \n"
    machine = estimator_from_liblinear(parse_liblinear_model(text.encode()))
    assert machine.bias is False
    np.testing.assert_array_equal(machine.decision_function([[0.0]]), [0.0])


@pytest.mark.parametrize("solver", [name for name in SOLVERS if "LR" in name.split("_")] + ["L1R_L2LOSS_SVC"])
def test_what_has_no_counterpart_is_refused(solver):
    text = f"solver_type {solver}\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n1 \n"
    with pytest.raises(TypeError, match=rf"{solver} is .*; .* cannot become an estimator"):
        estimator_from_liblinear(parse_liblinear_model(text.encode()))


def test_a_linear_one_class_machine_is_refused():
    text = "solver_type ONECLASS_SVM\nnr_class 2\nnr_feature 1\nbias -1\nrho 1\nw\n1 \n"
    with pytest.raises(TypeError, match="ONECLASS_SVM is a linear one-class machine"):
        estimator_from_liblinear(parse_liblinear_model(text.encode()))


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (SVC(kernel="linear").fit(IRIS, SPECIES), "LinearSVC and LinearSVR, not a SVC"),
        (LinearSVC().fit(IRIS, np.array(["a", "b", "c"])[SPECIES]), "LIBLINEAR's labels are 32-bit integers"),
    ],
)
def test_what_their_file_cannot_hold(machine, message):
    with pytest.raises(TypeError, match=message):
        liblinear_from_estimator(machine)


def test_convert_and_predict(path, tmp_path, capsys, monkeypatch):
    """File → .mercer → file is a fixed point, and both predict the same from the command line."""
    monkeypatch.chdir(tmp_path)
    X, y = IRIS[SPECIES < 2], LABELS[SPECIES < 2]
    write_liblinear_model(liblinear_from_estimator(LinearSVC().fit(X, y)), "a.model")
    write_libsvm(X, y, "data")
    assert main(["convert", "a.model", "b.mercer"]) == 0
    assert main(["convert", "b.mercer", "c.model"]) == 0
    assert (tmp_path / "a.model").read_bytes() == (tmp_path / "c.model").read_bytes()
    for model, out in (("a.model", "1"), ("b.mercer", "2")):
        assert main(["predict", "data", model, out]) == 0
        assert "Accuracy = 100% (100/100)" in capsys.readouterr().out
    assert (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()
    assert main(["inspect", "b.mercer"]) == 0
    assert "LinearSVC" in capsys.readouterr().out
    pytest.importorskip("matplotlib")
    assert main(["plot", "data", "a.model", "a.svg", "--resolution", "20"]) == 0
    assert main(["plot", "data", "b.mercer", "b.svg", "--resolution", "20"]) == 0
    assert (tmp_path / "a.svg").stat().st_size == (tmp_path / "b.svg").stat().st_size
    capsys.readouterr()
    assert main(["convert", "a.model", "d.model", "--to", "libsvm"]) == 1
    assert "LIBSVM's format needs support vectors" in capsys.readouterr().err
