"""What onnxruntime computes from an export is what the machine predicts."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from mercer import SVC, kernels
from mercer.files.onnx_export import export_onnx, onnx_model

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

X, y = load_iris(return_X_y=True)
MATRIX = np.diag([1.0, 0.5, 2.0, 0.25])


def outputs(model, rows):
    session = ort.InferenceSession(onnx_model(model).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["decision", "label"], {"X": np.asarray(rows, dtype=np.float64)})


@pytest.mark.filterwarnings("ignore::mercer.errors.NonPSDKernelWarning")
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    "kernel",
    [
        "linear",
        kernels.Polynomial(degree=3, gamma=0.1, coef0=0.7),
        kernels.Gaussian(gamma=0.3),
        kernels.Gaussian(M=MATRIX),
        kernels.Sigmoid(gamma=0.01, coef0=-0.3),
        "cosine",
        0.37 * kernels.Gaussian(gamma=0.3),
    ],
    ids=str,
)
def test_decisions_and_labels(kernel, classes):
    Z, t = X[y < classes] + 100 * (kernel != "cosine"), y[y < classes]
    if isinstance(kernel, kernels.Polynomial):
        Z = Z - 100
    model = SVC(kernel=kernel, decision_function_shape="ovo", C=0.5).fit(Z, t)
    decision, label = outputs(model, Z)
    expected = model.decision_function(Z)
    np.testing.assert_allclose(
        decision.reshape(expected.shape), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
    )
    np.testing.assert_array_equal(label, model.predict(Z))


def test_a_pipeline_with_names_of_classes(tmp_path):
    names = np.array(["setosa", "versicolor", "virginica"])
    model = make_pipeline(StandardScaler(), SVC()).fit(X, names[y])
    export_onnx(model, tmp_path / "m.onnx")
    session = ort.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    (label,) = session.run(["label"], {"X": X})
    np.testing.assert_array_equal(label, model.predict(X))


@pytest.mark.parametrize("clip", [False, True])
def test_a_scaler_to_a_range(clip):
    model = make_pipeline(MinMaxScaler((-1, 2), clip=clip), SVC(decision_function_shape="ovo")).fit(X[::2], y[::2])
    decision, label = outputs(model, X * 1.5)
    np.testing.assert_allclose(decision, model.decision_function(X * 1.5), atol=1e-9)
    np.testing.assert_array_equal(label, model.predict(X * 1.5))


def test_sparse_vectors_and_a_tie():
    model = SVC(kernel="linear").fit(sp.csr_array([[1.0, 0.0], [-1.0, 0.0]]), [5, -5])
    decision, label = outputs(model, [[0.0, 3.0], [2.0, 0.0]])
    assert decision[0, 0] == 0
    np.testing.assert_array_equal(label, model.predict([[0.0, 3.0], [2.0, 0.0]]))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: SVC(kernel="laplacian").fit(X, y), "no operators for the kernel of SVC, Laplacian"),
        (lambda: SVC(kernel="precomputed").fit(X @ X.T, y), "an ONNX file cannot compute the kernel Precomputed"),
        (lambda: SVC(kernel=kernels.Gaussian(gamma=1) * kernels.Linear()).fit(X, y), "cannot compute the kernel"),
        (lambda: make_pipeline(RobustScaler(), SVC()).fit(X, y), "an ONNX file can hold StandardScaler and MinMax"),
        (lambda: StandardScaler().fit(X), "no machine of mercer's, nor a Pipeline of scalers and one"),
    ],
)
def test_what_cannot_be_exported(model, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        export_onnx(model(), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []
