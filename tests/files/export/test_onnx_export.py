"""What onnxruntime computes from an export is what the machine predicts."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

from mercer import SVC, NystromRLS, RLSRegressor, kernels
from mercer.files.export.c.export import export_c
from mercer.files.export.onnx import export_onnx, onnx_model
from mercer.files.export.parts import Parts

pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

X, y = load_iris(return_X_y=True)
MATRIX = np.diag([1.0, 0.5, 2.0, 0.25])


def outputs(model, rows):
    session = ort.InferenceSession(onnx_model(model).SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(["decision", "label"], {"X": np.asarray(rows, dtype=np.float64)})


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
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
        (lambda: SVC(kernel=kernels.Gaussian(gamma=1) * kernels.Linear()).fit(X, y), "only .*, in C also Laplacian"),
        (lambda: make_pipeline(RobustScaler(), SVC()).fit(X, y), "an ONNX file can hold StandardScaler and MinMax"),
        (lambda: StandardScaler().fit(X), "not a machine of mercer, nor a Pipeline of scalers and one"),
    ],
)
def test_what_cannot_be_exported(model, message, tmp_path):
    with pytest.raises(TypeError, match=message):
        export_onnx(model(), tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def time_stamps():
    """Unix seconds beside a small feature; a few rows have no time, and so 0."""
    rng = np.random.default_rng(5)
    rows = np.column_stack([np.floor(1.7e9 + rng.uniform(0, 3600, 40)), rng.normal(size=40)])
    rows[::4, 0] = 0.0
    return rows, np.sin(3 * rows[:, 1])


def gaussian_sums(model, rows):
    """f from differences in 80 bits."""
    z = np.asarray(model._expansion_.vectors, dtype=np.longdouble)
    t = ((rows.astype(np.longdouble)[:, None] - z) ** 2).sum(axis=2)
    K = np.exp(-np.longdouble(model.kernel_.recipe().numbers[0]) * t) + np.longdouble(model.kernel_.recipe().constant)
    return np.asarray(K @ model._expansion_.coefficients + model._expansion_.b, dtype=float)[:, 0]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("gamma", [1.0, 1e-6])
def test_distances_far_from_the_origin_keep_their_digits(gamma, dtype):
    """Two clusters 1.7e9 apart: no centre keeps the digits of ‖x‖² − 2⟨x, z⟩ + ‖z‖²."""
    rows, t = time_stamps()
    model = NystromRLS(kernel=kernels.Gaussian(gamma=gamma) + 0.5, lam=0.01, n_landmarks=8, random_state=0).fit(rows, t)
    new = rows.astype(dtype)
    session = ort.InferenceSession(
        onnx_model(model, dtype=dtype).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (found,) = session.run(["decision"], {"X": new})
    np.testing.assert_allclose(
        found[:, 0], gaussian_sums(model, new), atol=1e-12 * np.abs(model._expansion_.coefficients).sum()
    )


def test_matrix_products_stay_where_they_keep_their_digits():
    """An offset that all rows share goes with the centre; only what is left decides."""
    operators = {node.op_type for node in onnx_model(SVC(kernel="rbf").fit(X + 1e4, y)).graph.node}
    assert "ReduceSumSquare" in operators
    rows, t = time_stamps()
    assert "ReduceSumSquare" not in {n.op_type for n in onnx_model(SVC(gamma=1.0).fit(rows, t > 0)).graph.node}


def test_a_file_is_tried_between_its_vectors(monkeypatch):
    """Products at γ‖z‖² of 10¹⁸ are right at the vectors, and refused for what they are between them."""
    monkeypatch.setattr("mercer.files.export.onnx._LARGEST_EXPONENT", np.inf)
    rows, t = time_stamps()
    model = NystromRLS(kernel=kernels.Gaussian(gamma=1.0), lam=0.01, n_landmarks=8, random_state=0).fit(rows, t)
    with pytest.raises(TypeError, match="matrix products lose the digits"):
        onnx_model(model)


def test_rows_beyond_float32_are_refused_for_what_they_are():
    model = SVC(kernel=kernels.Gaussian(gamma=1e-120)).fit(X * 1e60, y)
    message = r"an ONNX file of dtype='float32' cannot take the rows of SVC.* up to 7.\de\+60.*use dtype='float64'"
    with pytest.raises(ValueError, match=message):
        onnx_model(model, dtype="float32")
    np.testing.assert_array_equal(outputs(model, X * 1e60)[1], model.predict(X * 1e60))
    with pytest.raises(ValueError, match="a C file of dtype='float32' cannot"):
        export_c(model, dtype="float32")


def test_a_multiple_of_an_affine_kernel_keeps_its_constant():
    """Without a bias Σβ is not 0, so that the constant of the kernel counts."""
    model = SVC(kernel=2.5 * kernels.Polynomial(degree=1, gamma=0.3, coef0=0.7), bias=False).fit(X[:100], y[:100])
    expected = (2.5 * (0.3 * X @ X[model.support_].T + 0.7)) @ model.dual_coef_[0]
    np.testing.assert_allclose(outputs(model, X)[0][:, 0], expected, rtol=1e-10)


def test_rows_beyond_the_range_of_a_scaler_that_clips_are_tried_as_they_are():
    """The figure of a C file is about the clipped rows, which have the outputs of the ends of the range."""
    model = make_pipeline(MinMaxScaler(clip=True), SVC(gamma=1.0)).fit(X[:100], y[:100])
    text = export_c(model, dtype="float64", X=X[:100] * 3 - 5)
    assert float(text.split("by at most ")[1].split()[0]) < 1e-12


def test_large_answers_at_mixed_rows_do_not_hide_differences_at_vectors():
    """f is small at rows near the axes, and larger at rows mixed from them."""
    rows = np.array([[3.0, 0.1], [0.1, 3.0], [2.0, 0.1], [0.1, 2.0], [0.1, 0.1], [1.0, 0.1], [0.1, 1.0]])
    kernel = kernels.Polynomial(degree=2, gamma=1.0, coef0=1.0)
    parts = Parts.of(RLSRegressor(kernel=kernel, lam=1e-9).fit(rows, rows.prod(axis=1)))
    tried = parts.rows_to_try("float64", "a file")
    answers = parts.public.values(tried)
    at_vectors = np.abs(answers[: len(rows)]).max()
    assert np.abs(answers).max() > 2 * at_vectors
    off = answers + np.where(np.arange(len(tried)) == 2, 0.05 * at_vectors, 0.0)[:, None]
    assert parts.difference(tried, off) == pytest.approx(0.05)
