"""Every machine that ONNX can hold, beside onnxruntime on float32 and float64 rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import SVC, kernels
from mercer.files.export.onnx import export_onnx, onnx_model

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

X, y = load_iris(return_X_y=True)
TWO = y == 2
FLOWER = np.array(["setosa", "versicolor", "virginica"])[y]
CLASSIFIERS = {
    "SVC, pairs": lambda: SVC().fit(X, y),
    "SVC, ties broken": lambda: SVC(break_ties=True, C=0.01).fit(X, y),
    "SVC, one against the rest": lambda: SVC(multiclass="ovr").fit(X, y),
    "SVC, regularized bias": lambda: SVC(bias="regularized").fit(X, TWO),
    "SVC, no bias": lambda: SVC(bias=False, slack="l2").fit(X, y),
    "SVC, Crammer and Singer": lambda: SVC(multiclass="crammer-singer").fit(X, FLOWER),
    "SVC, Weston and Watkins": lambda: SVC(multiclass="weston-watkins").fit(X, y),
    "SVC, a kernel plus a number": lambda: SVC(kernel=kernels.Gaussian(gamma=0.3) + 2.0, bias=False).fit(X, y),
    "NuSVC": lambda: mercer.NuSVC(nu=0.3).fit(X, y),
    "NuSVC, two classes": lambda: mercer.NuSVC(nu=0.1, kernel="poly").fit(X, TWO),
    "LinearSVC": lambda: mercer.LinearSVC().fit(X, FLOWER),
    "LinearSVC, two classes": lambda: mercer.LinearSVC(loss="hinge", bias=False).fit(X, TWO),
    "LinearSVC, joint": lambda: mercer.LinearSVC(0.1, multiclass="crammer_singer", bias="regularized").fit(X, y),
    "PegasosSVC": lambda: mercer.PegasosSVC(random_state=0).fit(X, y),
    "PegasosSVC, kernel": lambda: mercer.PegasosSVC(kernel="rbf", random_state=0).fit(X, y),
    "RLSClassifier": lambda: mercer.RLSClassifier().fit(X, y),
    "RLSClassifier, two classes": lambda: mercer.RLSClassifier(kernel="linear").fit(X, TWO),
    "RLSClassifierCV": lambda: mercer.RLSClassifierCV().fit(X, y),
    "NystromRLSClassifier": lambda: mercer.NystromRLSClassifier(random_state=0).fit(X, y),
    "KernelMachineClassifier": lambda: mercer.KernelMachineClassifier().fit(X, y),
    "CSR": lambda: SVC(kernel="linear").fit(sp.csr_array(X * (X > 1)), y),
    "scaled": lambda: make_pipeline(StandardScaler(), mercer.LinearSVC()).fit(X, y),
}
T = X[:, 0] * 0.5 - X[:, 3]
REGRESSORS = {
    "SVR": lambda: mercer.SVR().fit(X[:, 1:], T),
    "SVR, Huber": lambda: mercer.SVR(loss="huber", kernel="poly").fit(X[:, 1:], T),
    "SVR, squared": lambda: mercer.SVR(loss="squared_epsilon_insensitive").fit(X[:, 1:], T),
    "SVR, expectile": lambda: mercer.SVR(loss="expectile").fit(X[:, 1:], T),
    "NuSVR": lambda: mercer.NuSVR().fit(X[:, 1:], T),
    "QuantileSVR": lambda: mercer.QuantileSVR(0.3).fit(X[:, 1:], T),
    "QuantileSVR, several": lambda: mercer.QuantileSVR([0.9, 0.45, 0.5, 0.55, 0.1]).fit(X[:, 1:], T),
    "LinearSVR": lambda: mercer.LinearSVR().fit(X[:, 1:], T),
    "RLSRegressor": lambda: mercer.RLSRegressor().fit(X[:, 1:], T),
    "RLSRegressor, two outputs": lambda: mercer.RLSRegressor(kernel="linear").fit(X[:, 1:], X[:, :2]),
    "RLSRegressorCV": lambda: mercer.RLSRegressorCV().fit(X[:, 1:], T),
    "NystromRLS": lambda: mercer.NystromRLS(n_landmarks=20, random_state=0).fit(X[:, 1:], T),
    "KernelMachineRegressor": lambda: mercer.KernelMachineRegressor().fit(X[:, 1:], T),
    "scaled": lambda: make_pipeline(StandardScaler(), mercer.SVR()).fit(X[:, 1:], T),
}
NOVELTY = {
    "OneClassSVM": lambda: mercer.OneClassSVM(nu=0.2).fit(X),
    "SVDD": lambda: mercer.SVDD(nu=0.2).fit(X),
    "SVDD, linear": lambda: mercer.SVDD(kernel="linear", nu=0.2).fit(X),
    "SVDD, polynomial": lambda: mercer.SVDD(kernel=kernels.Polynomial(gamma=0.1) + 0.5, nu=0.2).fit(X),
    "SVDD, cosine": lambda: mercer.SVDD(kernel="cosine", nu=0.2).fit(X),
}


def outputs(model, rows, names):
    content = onnx_model(model, dtype=str(rows.dtype)).SerializeToString()
    return ort.InferenceSession(content, providers=["CPUExecutionProvider"]).run(names, {"X": rows})


def precision(dtype):
    return 1e-9 if dtype == np.float64 else 1e-4


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", CLASSIFIERS)
def test_classifiers(case, dtype):
    model, rows = CLASSIFIERS[case](), X.astype(dtype)
    decision, label = outputs(model, rows, ["decision", "label"])
    if hasattr(model, "decision_function_shape"):
        model.set_params(decision_function_shape="ovo", break_ties=False)
    expected = model.decision_function(rows)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(decision.reshape(expected.shape), expected, atol=scale * precision(dtype))
    answer = CLASSIFIERS[case]().predict(rows)
    # A row that float32 leaves undecided may fall to either side.
    settled = np.abs(decision).min(axis=1) > scale * precision(dtype)
    np.testing.assert_array_equal(label[settled], answer[settled])
    assert settled.mean() > 0.8


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", REGRESSORS)
def test_regressors(case, dtype):
    model, rows = REGRESSORS[case](), X[:, 1:].astype(dtype)
    (value,) = outputs(model, rows, ["decision"])
    expected = model.predict(rows)
    np.testing.assert_allclose(value.reshape(expected.shape), expected, atol=np.abs(expected).max() * precision(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", NOVELTY)
def test_novelty(case, dtype):
    model, rows = NOVELTY[case](), X.astype(dtype)
    decision, label = outputs(model, rows, ["decision", "label"])
    expected = model.decision_function(rows)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(decision[:, 0], expected, atol=scale * precision(dtype))
    settled = np.abs(expected) > scale * precision(dtype)
    np.testing.assert_array_equal(label[settled], model.predict(rows)[settled])
    assert settled.mean() > 0.8
    assert set(label) == {-1, 1}


def test_another_dtype_is_refused(tmp_path):
    with pytest.raises(ValueError, match="dtype='float16' must be one of 'float64', 'float32'"):
        export_onnx(CLASSIFIERS["SVC, pairs"](), tmp_path / "m.onnx", dtype="float16")


@pytest.mark.parametrize("kind", [mercer.SVR, mercer.OneClassSVM, mercer.RLSRegressor, mercer.NuSVR])
def test_a_kernel_without_operators_is_named(kind, tmp_path):
    with pytest.raises(TypeError, match=r"ONNX has no operators for the kernel of .*Laplacian"):
        export_onnx(kind(kernel="laplacian").fit(X, T), tmp_path / "m.onnx")
