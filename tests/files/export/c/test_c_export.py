"""The C file compiles without a warning and predicts what Python predicts."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler

import mercer
from mercer import kernels
from mercer.cli.main import main
from mercer.files.export.c.export import export_c

X, y = load_iris(return_X_y=True)
NAMES = np.array(['a"b\n', "c?*/??/", "d\\é"])
TYPES = {"float32": ctypes.c_float, "float64": ctypes.c_double}
COMPILER = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-shared", "-fPIC"]
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile the file with")

MODELS = {
    "votes": lambda: mercer.SVC(C=5).fit(X, NAMES[y]),
    "scaled": lambda: make_pipeline(StandardScaler(), MinMaxScaler(clip=True), mercer.SVC(kernel="laplacian")).fit(
        X, y > 0
    ),
    "compressed": lambda: mercer.compress(mercer.SVC(C=5).fit(X, y), 0.2, X=X),
    "linear": lambda: make_pipeline(StandardScaler(), mercer.LinearSVC()).fit(X, y),
    "novelty": lambda: mercer.OneClassSVM(nu=0.2).fit(X),
    "values": lambda: mercer.SVR(C=5).fit(X, y),
    "shifted": lambda: mercer.SVC(kernel=2 * kernels.Linear() + 1).fit(X, y == 1),
}
# Coefficients of 10⁶ that cancel: the sum must be taken before float32.
CANCELLING = {
    "weights": lambda: mercer.SVC(kernel=2 * kernels.Linear(), C=1e6, max_iter=20_000).fit(X, y == 1),
}
OTHERS = {
    "poly": lambda: mercer.SVC(kernel="poly", degree=3, break_ties=True).fit(X, y),
    "sigmoid": lambda: mercer.SVC(kernel=kernels.Sigmoid(gamma=0.01, coef0=0.1)).fit(X, y),
    "cosine": lambda: mercer.SVC(kernel="cosine").fit(X, y),
    "matrix": lambda: mercer.SVC(kernel=2 * kernels.Gaussian(M=np.diag([1.0, 2.0, 3.0, 0.1])) + 1).fit(X, y),
    "rest": lambda: mercer.SVC(multiclass="ovr").fit(X, y.astype(float)),
    "least": lambda: mercer.RLSClassifier().fit(X, y),
    "outputs": lambda: mercer.RLSRegressor().fit(X, np.c_[y, X[:, 0]]),
    "quantiles": lambda: mercer.QuantileSVR([0.9, 0.1, 0.5]).fit(X, X[:, 0] + y),
    "ball": lambda: mercer.SVDD(nu=0.2).fit(X),
    "logistic": lambda: mercer.KernelMachineClassifier("logistic").fit(X, y),
    "large": lambda: mercer.SVC(C=5).fit(X, y.astype(np.int64) * 10**12),
}


class Compiled:
    """The functions of a file."""

    def __init__(self, library, name, dtype, text, n_outputs):
        self.library, self.name, self.dtype, self.n_outputs = library, name, TYPES[dtype], n_outputs
        self.returns = re.search(rf"^(.*?) ?\*?{name}_predict\(", text, re.MULTILINE)

    def rows(self, X):
        return np.ascontiguousarray(X, dtype=self.dtype)

    def decisions(self, X):
        out = np.zeros((len(X), self.n_outputs), dtype=self.dtype)
        decide, kind = getattr(self.library, f"{self.name}_decision"), ctypes.POINTER(self.dtype)
        for x, f in zip(self.rows(X), out, strict=True):
            decide(x.ctypes.data_as(kind), f.ctypes.data_as(kind))
        return out

    def labels(self, X, text):
        predict, kind = getattr(self.library, f"{self.name}_predict"), ctypes.POINTER(self.dtype)
        strings = text == "const char"
        types = {"const char": ctypes.c_char_p, "double": ctypes.c_double, "long long": ctypes.c_longlong}
        predict.restype = types.get(text, ctypes.c_int)
        found = [predict(x.ctypes.data_as(kind)) for x in self.rows(X)]
        return np.array([label.decode() for label in found] if strings else found)


def compiled(models, dtype, folder):
    """All models in one library."""
    texts = {name: export_c(model, folder / f"{name}.c", dtype=dtype, name=name) for name, model in models.items()}
    files = [str(folder / f"{name}.c") for name in models]
    run = subprocess.run([*COMPILER, *files, "-o", str(folder / "all.so"), "-lm"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[:2000]
    library = ctypes.CDLL(str(folder / "all.so"))
    machines = {name: model[-1] if hasattr(model, "steps") else model for name, model in models.items()}
    return {name: Compiled(library, name, dtype, text, len(machines[name].intercept_)) for name, text in texts.items()}


def wanted(model, rows):
    """The outputs in Python."""
    machine, seen = (model[-1], model[:-1].transform(rows)) if hasattr(model, "steps") else (model, rows)
    if not hasattr(machine, "classes_"):
        values = machine.decision_function(seen) if hasattr(machine, "offset_") else machine.predict(seen)
        return values.reshape(len(rows), -1)
    return machine._decision(seen)


def compare(models, dtype, n, folder, close):
    rng = np.random.default_rng(0)
    rows = rng.uniform(X.min(axis=0) - 1, X.max(axis=0) + 1, (n, 4)).astype(np.float32).astype(np.float64)
    for name, file in compiled(models, dtype, folder).items():
        model, truth = models[name], wanted(models[name], rows)
        np.testing.assert_allclose(file.decisions(rows), truth, atol=close * max(1.0, np.abs(truth).max()))
        if hasattr(model, "classes_") or hasattr(model, "offset_"):
            found = file.labels(rows, file.returns[1])
            np.testing.assert_array_equal(found, model.predict(rows), err_msg=name)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_labels_and_values(tmp_path):
    models = {name: make() for name, make in (MODELS | CANCELLING).items()}
    compare(models, "float32", 200, tmp_path, 3e-5)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("dtype", "close"), [("float64", 1e-12), ("float32", 1e-4)])
def test_ten_thousand_rows_of_every_machine(dtype, close, tmp_path):
    models = {name: make() for name, make in (MODELS | CANCELLING | OTHERS).items()}
    compare(models, dtype, 10_000, tmp_path, close)


def test_columns_far_from_zero_keep_the_digits_of_their_differences(tmp_path):
    far = np.array([1e4, 0.0, -3e3, 1e4])
    scaled = make_pipeline(StandardScaler(), mercer.SVC(C=5)).fit(X + far, y)
    models = {"plain": mercer.SVC(C=5, gamma=0.25).fit(X + far, y), "scaled": scaled}
    rows = (np.random.default_rng(0).uniform(X.min(axis=0), X.max(axis=0), (300, 4)) + far).astype(np.float32)
    for name, file in compiled(models, "float32", tmp_path).items():
        truth = wanted(models[name], rows.astype(np.float64))
        np.testing.assert_allclose(file.decisions(rows.astype(np.float64)), truth, atol=2e-3)
        sure = np.abs(truth).min(axis=1) > 2e-3
        found = file.labels(rows.astype(np.float64), file.returns[1])
        np.testing.assert_array_equal(found[sure], models[name].predict(rows.astype(np.float64))[sure])


def test_the_file_says_how_far_it_is_from_python(tmp_path):
    models = {"own": mercer.SVC(C=5, kernel="laplacian").fit(X, y)}
    told, n = re.search(r"at most (\S+) of the largest at (\d+) rows tried", export_c(models["own"])).groups()
    rows = models["own"].support_vectors_.astype(np.float32).astype(np.float64)
    file = compiled(models, "float32", tmp_path)["own"]
    truth = wanted(models["own"], rows)
    off = (np.abs(file.decisions(rows) - truth).max(axis=0) / np.abs(truth).max(axis=0)).max()
    assert int(n) > 30
    assert off / 20 <= float(told) <= 1e-5


def test_too_few_bits_are_refused():
    model = mercer.SVC(kernel=kernels.Gaussian(gamma=1e-61)).fit(X * 1e30, y > 0)
    with pytest.raises(ValueError, match="too coarse for this model"):
        export_c(model, dtype="float32")
    export_c(model, dtype="float64")


def test_rows_to_try_have_the_columns_of_the_model():
    with pytest.raises(ValueError, match="X has 2 columns"):
        export_c(mercer.LinearSVC().fit(X, y), X=X[:, :2])


def told_end(text):
    """How large entries may be, as the file says; all that float holds where it says nothing."""
    found = re.search(r"Entries of rows may be up to (\S+) in size", text)
    return float(found[1]) if found else 3e38


LARGE = {
    "seventh": lambda: mercer.SVC(kernel="poly", degree=7, gamma=0.05, coef0=0.0).fit(X - 3.0, y),
    "cosine": lambda: mercer.SVC(kernel="cosine").fit(X, y),
    "sigmoid": lambda: mercer.SVC(kernel=kernels.Sigmoid(gamma=0.01, coef0=0.1)).fit(X, y == 1),
    "matrix": lambda: mercer.SVC(kernel=kernels.Gaussian(M=np.diag([1.0, 2.0, 3.0, 0.1]) + 0.05)).fit(X, y),
    "gaussian": lambda: make_pipeline(StandardScaler(), mercer.SVC()).fit(X, y),
    "laplacian": lambda: make_pipeline(MinMaxScaler(clip=True), mercer.SVC(kernel="laplacian")).fit(X, y),
    "linear": lambda: mercer.LinearSVC().fit(X, y),
    "ball": lambda: mercer.SVDD(nu=0.2, kernel="poly", degree=3, gamma=1.0, coef0=1.0).fit(X),
}


@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rows_as_large_as_the_file_says_get_pythons_labels(tmp_path):
    """Up to there no number overflows; where a float file says nothing, rows may be as large as float holds."""
    models, rng = {name: make() for name, make in LARGE.items()}, np.random.default_rng(0)
    for name, file in compiled(models, "float32", tmp_path).items():
        end = told_end((tmp_path / f"{name}.c").read_text())
        assert {"seventh": 1e4 <= end <= 1e7, "matrix": end > 1e37, "linear": end > 1e30}.get(name, True)
        assert name not in ("cosine", "gaussian", "laplacian") or end == 3e38
        sizes = np.geomspace(1.0, end, 60)[:, None]
        rows = (sizes * rng.uniform(-1, 1, (60, 4))).astype(np.float32).astype(np.float64)
        values, truth = file.decisions(rows), wanted(models[name], rows)
        assert np.isfinite(values).all(), name
        sure = (np.abs(truth) > 1e-3 * np.abs(truth).max(axis=1, keepdims=True)).all(axis=1)
        found = file.labels(rows, file.returns[1])
        assert sure.mean() > 0.3, name
        np.testing.assert_array_equal(found[sure], models[name].predict(rows)[sure], err_msg=name)


def test_beyond_what_the_file_says_float_does_overflow(tmp_path):
    """The figure is no idle caution: a thousand times beyond it, outputs of the polynomial are no numbers."""
    models = {"seventh": LARGE["seventh"]()}
    file = compiled(models, "float32", tmp_path)["seventh"]
    end = told_end((tmp_path / "seventh.c").read_text())
    assert not np.isfinite(file.decisions(np.full((1, 4), 1e3 * end))).all()


def test_outputs_may_be_as_large_below_zero_as_above():
    ends = []
    for sign in (1.0, -1.0):
        model = mercer.RLSRegressor(kernel="linear").fit(X, sign * (X[:, 0] + 8e37))
        ends.append(told_end(export_c(model, dtype="float32")))
    assert 0 < ends[0] == ends[1] < 1e32


def test_labels_beyond_long_long():
    text = export_c(mercer.SVC().fit(X, np.array([0, 2**64 - 1], dtype=np.uint64)[(y > 0).astype(int)]))
    assert "static const unsigned long long model_labels[2]" in text
    assert "18446744073709551615ULL" in text


def test_nothing_in_a_label_ends_a_string():
    text = export_c(mercer.SVC().fit(X, NAMES[y]))
    assert r'"a\042b\012", "c\077*/\077\077/", "d\134\303\251"' in text
    assert text.isascii()


@pytest.mark.parametrize(
    ("model", "options", "error", "message"),
    [
        (lambda: mercer.SVC().fit(X, y), {"name": "a; int b"}, ValueError, "cannot begin the names"),
        (lambda: mercer.SVC().fit(X, y), {"name": "while"}, ValueError, "not a keyword"),
        (lambda: mercer.SVC().fit(X, y), {"dtype": "int8"}, ValueError, "must be one of"),
        (lambda: make_pipeline(RobustScaler(), mercer.SVC()).fit(X, y), {}, TypeError, "not RobustScaler"),
        (lambda: StandardScaler().fit(X), {}, TypeError, "it is not a machine of mercer"),
        (lambda: mercer.SVC(kernel=kernels.Matern()).fit(X, y), {}, TypeError, "cannot compute the kernel Matern"),
        (lambda: mercer.SVC().fit(X, y), {"dtype": "fixed32"}, ValueError, "must be one of 'float32', 'float64'"),
        (lambda: mercer.SVC(kernel="linear").fit(X * 1e30, y), {}, ValueError, "exceeds float32"),
        (
            lambda: mercer.SVC(kernel=kernels.Polynomial(degree=10**9, gamma=1e-9)).fit(X, y),
            {},
            TypeError,
            "its degree is not an integer up to 100",
        ),
        (lambda: mercer.SVC().fit(X, np.array(["a\0b", "c", "d"], dtype=object)[y]), {}, TypeError, "zero character"),
    ],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_refused(model, options, error, message):
    with pytest.raises(error, match=message):
        export_c(model(), **options)


def test_the_command_line_names_functions_after_the_file(tmp_path, capsys):
    mercer.save(mercer.SVC().fit(X, y), tmp_path / "iris.mercer")
    assert main(["convert", str(tmp_path / "iris.mercer"), str(tmp_path / "2 iris.c"), "--input", "float32"]) == 0
    assert "in C format" in capsys.readouterr().out
    assert "int model_2_iris_predict(const float *x);" in (tmp_path / "2 iris.c").read_text()
