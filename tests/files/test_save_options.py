"""Options of `mercer.save`: each belongs to a format, and an unknown one is refused with a list of those it has."""

import numpy as np
import pytest

import mercer
from mercer.files.export.c.export import export_c

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1, -1)


@pytest.fixture(scope="module")
def model():
    return mercer.SVC(gamma=0.5).fit(X, Y)


@pytest.mark.parametrize(
    ("name", "option", "known"),
    [
        ("m.mercer", "dtype", "it has no options"),
        ("m", "dtype", "it has no options"),
        ("m.onnx", "name", "its options are dtype"),
        ("m.c", "label_order", "its options are dtype, name, X"),
        ("m.model", "dtype", "its options are format, label_order"),
    ],
)
def test_an_option_of_another_format_is_refused(model, name, option, known, tmp_path):
    with pytest.raises(TypeError, match=f"{name}' has no option '{option}'; {known}$"):
        mercer.save(model, tmp_path / name, **{option: None})
    assert not list(tmp_path.iterdir())


def test_the_options_of_a_c_file(model, tmp_path):
    path = tmp_path / "some name.c"
    mercer.save(model, path)
    assert path.read_text() == export_c(model, dtype="float64", name="some_name")
    mercer.save(model, path, dtype="float32", name="other", X=X[:5])
    assert path.read_text() == export_c(model, dtype="float32", name="other", X=X[:5])


def test_the_rows_of_an_onnx_file(model, tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    for options, kind in (({}, "double"), ({"dtype": "float32"}, "float")):
        mercer.save(model, tmp_path / "m.onnx", **options)
        session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
        assert session.get_inputs()[0].type == f"tensor({kind})"


def test_the_program_of_a_text(model, tmp_path):
    path = tmp_path / "some.model"
    linear = mercer.LinearSVC().fit(X, Y)
    for machine, given, first in (
        (model, {}, "svm_type"),
        (model, {"format": "libsvm"}, "svm_type"),
        (model, {"format": "svmlight"}, "SVM-light"),
        (linear, {}, "solver_type"),
        (linear, {"format": "liblinear"}, "solver_type"),
    ):
        mercer.save(machine, path, **given)
        assert path.read_text().startswith(first)
        again = mercer.load(path, n_features=3)
        np.testing.assert_allclose(again.decision_function(X), machine.decision_function(X), atol=1e-6)
    with pytest.raises(TypeError, match="LIBLINEAR"):
        mercer.save(model, path, format="liblinear")
    with pytest.raises(ValueError, match="format='svm' must be one of 'libsvm', 'liblinear', 'svmlight'"):
        mercer.save(model, path, format="svm")


def test_the_order_of_the_classes(tmp_path):
    path, labels = tmp_path / "some.model", np.digitize(X[:, 0], [-0.5, 0.5])  # an order that no pair contradicts
    machine = mercer.SVC(gamma=0.5).fit(X, labels)
    mercer.save(machine, path, label_order=[2, 0, 1])
    assert "\nlabel 2 0 1\n" in path.read_text()
    assert mercer.load(path).classes_.tolist() == [2, 0, 1]
    np.testing.assert_array_equal(mercer.load(path).predict(X), machine.predict(X))
    with pytest.raises(ValueError, match="label_order is an option of LIBSVM's format, but format='svmlight'"):
        mercer.save(machine, path, label_order=[2, 0, 1], format="svmlight")
