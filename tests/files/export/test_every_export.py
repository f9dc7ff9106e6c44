"""Every public estimator as a C, ONNX, LIBSVM, LIBLINEAR and SVMlight file, computed by gcc, onnxruntime, LIBSVM and
LIBLINEAR themselves: the answers of the model's public method, or a refusal that names the estimator."""

import ctypes
import re
import shutil
import subprocess

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

import mercer
from mercer.cli.libsvm import svm_predict, svm_train
from mercer.cli.main import main
from mercer.files.export.c.export import export_c
from mercer.files.export.onnx import onnx_model
from mercer.files.liblinear_estimator import liblinear_from_estimator
from mercer.files.liblinear_model import read_liblinear_model, write_liblinear_model
from mercer.files.libsvm_estimator import MACHINES, libsvm_from_estimator
from mercer.files.libsvm_model import read_libsvm_model, write_libsvm_model
from mercer.files.models import read_model
from mercer.files.svmlight_model import read_svmlight_model, write_svmlight_model
from mercer.kernels import Polynomial, Spectrum
from reference.every_estimator import CLASSES, ROWS, SCHEMES, X, estimators, fitted, values, wrapped

NAMES = sorted(estimators())
pytestmark = [
    pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
    pytest.mark.filterwarnings("ignore:the best score is at the edge"),
]
# They have no f of one kernel. Of all others some model is written as C and ONNX, of a new one too.
NO_FUNCTION = {
    *("CalibratedClassifier", "CalibratedRegressor", "GaussianProcessClassifier", "GaussianSeries", "KernelCCA"),
    *("KernelKMeans", "KernelPCA", "MKLRegressor", "Monomials", "Nystrom", "RandomFourier", "SpectralClustering"),
}
# Estimators of which some model is written, by format; all others must be refused.
WRITTEN = {
    "C": set(NAMES) - NO_FUNCTION,
    "LIBSVM": {"SVC", "NuSVC", "OneClassSVM", "SVR", "NuSVR"},
    "LIBLINEAR": {"LinearSVC", "LinearSVR"},
}
WRITTEN["ONNX"], WRITTEN["SVMlight"] = WRITTEN["C"], WRITTEN["LIBSVM"]


def models_of(name):
    return wrapped() if name == "wrapped" else fitted(name)


def written(file_format, name, write):
    """The models of an estimator that can be written, with what `write` made of each; refusals name the estimator."""
    out = {}
    for told, model in models_of(name).items():
        refusal = ""
        try:
            out[told] = (model, write(model))
        except TypeError as error:
            refusal = str(error)
        names = {type(model).__name__, type(mercer.unwrap(model).machine).__name__}
        names |= {ours for ours, theirs in MACHINES.items() if theirs in names}  # as files call it
        assert told in out or any(one in refusal for one in names), f"{told}: {refusal}"
    if name != "wrapped":
        assert bool(out) == (name in WRITTEN[file_format]), out
    return out


def compare(told, model, found, labels, rows, close=1e-9):
    """Values within rounding of the largest, and labels wherever they are not decided by rounding."""
    wanted = values(model, rows)
    size = np.abs(wanted).max()
    np.testing.assert_allclose(found, wanted, rtol=0, atol=close * max(1.0, size), err_msg=told)
    if labels is not None:
        order = np.sort(np.c_[wanted, np.full(len(rows), -np.inf)], axis=1)
        clear = (np.abs(wanted) > 10 * close * size).all(axis=1) & (order[:, -1] - order[:, -2] > 10 * close * size)
        assert clear.mean() > 0.7, told
        np.testing.assert_array_equal(np.asarray(labels)[clear], model.predict(rows)[clear], err_msg=told)


@pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc to compile the file with")
@pytest.mark.parametrize("name", [*NAMES, "wrapped"])
def test_c(name, tmp_path):
    files = {}
    for dtype, real in (("float64", ctypes.c_double), ("float32", ctypes.c_float)):

        def write(model, dtype=dtype):
            return export_c(model, dtype=dtype, name="m", X=ROWS)

        for number, (told, (model, text)) in enumerate(written("C", name, write).items()):
            files[f"{dtype}{number}"] = (told, model, text.replace("m_", f"{dtype}{number}_"), real)
    if not files:
        return
    for key, (_, _, text, _) in files.items():
        (tmp_path / f"{key}.c").write_text(text)
    sources = [str(tmp_path / f"{key}.c") for key in files]
    subprocess.run(["gcc", "-std=c99", "-shared", "-fPIC", *sources, "-o", str(tmp_path / "all.so"), "-lm"], check=True)
    library = ctypes.CDLL(str(tmp_path / "all.so"))
    for key, (told, model, text, real) in files.items():
        decide, pointer = getattr(library, f"{key}_decision"), ctypes.POINTER(real)
        rows, found = ROWS.astype(real), np.zeros((len(ROWS), values(model, ROWS[:1]).shape[1]), dtype=real)
        for x, f in zip(rows, found, strict=True):
            decide(x.ctypes.data_as(pointer), f.ctypes.data_as(pointer))
        labels = None
        if hasattr(model, "classes_") or hasattr(model, "offset_"):
            predict = getattr(library, f"{key}_predict")
            predict.restype = ctypes.c_int
            labels = [predict(x.ctypes.data_as(pointer)) for x in rows]
        compare(told, model, found, labels, ROWS, 1e-9 if real is ctypes.c_double else 1e-4)
        # The figure of the header holds for the compiled file and the public method, at the rows that were given.
        claim = float(re.search(r"at most (\S+) of the largest at 60 rows", text)[1])
        wanted = values(model, ROWS)
        off = (np.abs(found - wanted).max(axis=0) / np.abs(wanted).max(axis=0)).max()
        assert off <= 2 * claim + 1e-6, (told, off, claim)


@pytest.mark.parametrize("name", [*NAMES, "wrapped"])
def test_onnx(name):
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    for told, (model, made) in written("ONNX", name, onnx_model).items():
        session = runtime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
        answers = dict(zip([one.name for one in session.get_outputs()], session.run(None, {"X": ROWS}), strict=True))
        compare(told, model, answers["decision"], answers.get("label"), ROWS)


@pytest.mark.parametrize("name", [*NAMES, "wrapped"])
def test_libsvm(name, tmp_path):
    libsvm = pytest.importorskip("libsvm.svmutil")
    for told, (model, held) in written("LIBSVM", name, libsvm_from_estimator).items():
        write_libsvm_model(held, tmp_path / "m")
        back = read_libsvm_model(tmp_path / "m").estimator()
        if name == "NuSVC":  # svmutil gives nu_svc a buffer for one value, where c_svc, which decides alike, has enough
            text = (tmp_path / "m").read_text()
            (tmp_path / "m").write_text(text.replace("svm_type nu_svc", "svm_type c_svc"))
        labels, _, found = libsvm.svm_predict([], ROWS.tolist(), libsvm.svm_load_model(str(tmp_path / "m")), "-q")
        found = np.array(found).reshape(len(ROWS), -1)
        numbers = not hasattr(model, "classes_") and not hasattr(model, "offset_")
        compare(told, model, found, None if numbers else labels, ROWS)
        compare(told, back, values(model, ROWS), None if numbers else model.predict(ROWS), ROWS)


@pytest.mark.parametrize("k", CLASSES)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_schemes_of_libsvm(scheme, k):
    """k(k − 1)/2 pairs are as many as k classes if k = 3: the scheme decides, not the count."""
    model = mercer.SVC(multiclass=scheme).fit(X, CLASSES[k])
    if k == 2 or scheme == "ovo":
        assert len(libsvm_from_estimator(model).rho) == k * (k - 1) // 2
    else:
        with pytest.raises(TypeError, match="a function for each of its"):
            libsvm_from_estimator(model)


def test_libsvm_breaks_no_ties():
    with pytest.raises(TypeError, match="break_ties"):
        libsvm_from_estimator(mercer.SVC(break_ties=True).fit(X, CLASSES[3]))


@pytest.mark.parametrize("name", [*NAMES, "wrapped"])
def test_liblinear(name, tmp_path):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    for told, (model, held) in written("LIBLINEAR", name, liblinear_from_estimator).items():
        write_liblinear_model(held, tmp_path / "m")
        labels, _, found = liblinear.predict([], ROWS.tolist(), liblinear.load_model(str(tmp_path / "m")), "-q")
        found = np.array(found).reshape(len(ROWS), -1)
        if (
            "2 classes crammer" in told
        ):  # the file has f/2 of one class and −f/2 of the other, of which this is the first
            found = 2 * found
        compare(told, model, found, labels if hasattr(model, "classes_") else None, ROWS)


@pytest.mark.parametrize("name", [*NAMES, "wrapped"])
def test_svmlight(name, tmp_path):
    """SVMlight is no package: its file is read here line by line, and by mercer's own reader."""

    def write(model):
        if hasattr(model, "classes_"):
            model = clone(model).fit(X, np.array([-1, 1, 2, 3])[CLASSES[len(model.classes_)]])
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}"
        write_svmlight_model(libsvm_from_estimator(model), path)
        return model, path

    for told, (_, (model, path)) in written("SVMlight", name, write).items():
        lines = path.read_text().splitlines()
        gamma, b = float(lines[3].split("#")[0]), float(lines[10].split("#")[0])
        found = np.full(len(ROWS), -b)
        for line in lines[11:]:
            words = line.split("#")[0].split()
            vector = np.zeros(3)
            for word in words[1:]:
                vector[int(word.split(":")[0]) - 1] = float(word.split(":")[1])
            found += float(words[0]) * np.exp(-gamma * ((ROWS - vector) ** 2).sum(axis=1))
        compare(told, model, found[:, None], None, ROWS)
        back = read_svmlight_model(path)
        np.testing.assert_allclose(back.decisions(ROWS)[:, 0], found, atol=1e-9)
        numbers = hasattr(model, "classes_") or hasattr(model, "offset_")
        np.testing.assert_allclose(back.estimator().predict(ROWS), model.predict(ROWS), atol=0 if numbers else 1e-9)


# --- what a file cannot hold, in words -------------------------------------------------------------------------------


def test_a_gaussian_process_classifier_is_refused_with_what_to_do():
    """The advice holds: the logistic machine of the message has the latent mean for f, and the same two labels."""
    model = mercer.GaussianProcessClassifier().fit(X, CLASSES[2])
    with pytest.raises(TypeError, match=r"variance.*KernelMachine\('logistic', lam=0.5, bias=False"):
        export_c(model)
    other = mercer.KernelMachine("logistic", lam=0.5, bias=False, kernel=model.kernel_, tol=1e-12).fit(X, CLASSES[2])
    np.testing.assert_allclose(other.decision_function(ROWS), model.latent_mean_and_variance(ROWS)[0], atol=1e-6)
    np.testing.assert_array_equal(other.predict(ROWS), model.predict(ROWS))
    assert "m_predict" in export_c(other, name="m")


def test_strings(tmp_path, capsys):
    model = mercer.SVC(kernel=Spectrum(1)).fit(["ab", "abab", "ba", "bbb"], [0, 0, 1, 1])
    for write in (export_c, onnx_model):
        with pytest.raises(TypeError, match=r"cannot compute the kernel Spectrum.* of SVC"):
            write(model)
    mercer.save(model, tmp_path / "strings.mercer")
    for ending in ("c", "onnx", "model"):
        assert main(["convert", str(tmp_path / "strings.mercer"), str(tmp_path / f"out.{ending}")]) == 1
        assert "Spectrum" in capsys.readouterr().err


@pytest.mark.parametrize("labels", [[10**30, 1], [1j, 2j]])
def test_labels_that_no_file_can_name(labels):
    model = mercer.SVC().fit(X, CLASSES[2])
    model.classes_ = np.array(labels)
    for write in (export_c, onnx_model):
        with pytest.raises(TypeError, match="rename the classes"):
            write(model)


def test_labels_that_are_no_integers_in_onnx():
    runtime = pytest.importorskip("onnxruntime")
    model = mercer.SVC().fit(X, CLASSES[2])
    model.classes_ = np.array([0.5, 2.0**70])  # as a file may have them: fit takes whole numbers
    session = runtime.InferenceSession(onnx_model(model).SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(session.run(["label"], {"X": ROWS})[0], model.predict(ROWS))


def test_another_rule_than_the_file_has_is_found(monkeypatch):
    """The comparison is with the public method, whatever a machine makes of its expansion there."""
    model = mercer.SVC().fit(X, CLASSES[2])
    monkeypatch.setattr(mercer.SVC, "decision_function", lambda self, X: 2 * self._decision(X)[:, 0])
    for write in (export_c, onnx_model):
        with pytest.raises(TypeError, match=r"would not reproduce SVC.decision_function"):
            write(model)


def test_a_polynomial_of_too_many_factors():
    model = mercer.SVC(kernel=Polynomial(degree=101, gamma=0.01, coef0=1.0)).fit(X, CLASSES[2])
    with pytest.raises(TypeError, match="integer up to 100"):
        export_c(model)


def test_what_is_set_after_a_fit_leaves_a_liblinear_file():
    model = mercer.LinearSVC().fit(X, CLASSES[3])
    held = liblinear_from_estimator(model.set_params(bias=False))
    np.testing.assert_allclose(held.decisions(ROWS), model.decision_function(ROWS), atol=1e-12)


def test_precomputed_kernels_of_arrays_and_lists_in_svm_predict():
    libsvm = pytest.importorskip("libsvm.svmutil")
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    rows, y = np.c_[np.arange(1, len(X) + 1), K], CLASSES[3].tolist()
    model = svm_train(y, rows, "-t 4 -q")
    as_dicts = [dict(enumerate(row)) for row in rows.tolist()]
    theirs = libsvm.svm_train(y, as_dicts, "-t 4 -q -e 1e-8")
    wanted, _, values_there = libsvm.svm_predict(y, as_dicts, theirs, "-q")
    for given in (rows, rows.tolist(), as_dicts):
        labels, _, found = svm_predict(y, given, model, "-q")
        assert labels == wanted
        np.testing.assert_allclose(found, values_there, atol=1e-3)


def test_names_of_a_compressed_machines_pairs(tmp_path):
    """Three pairs of three classes are pairs, also where no support vectors tell."""
    small = mercer.compress(mercer.SVC().fit(X, CLASSES[3]), 8)
    mercer.save(small, tmp_path / "small.mercer")
    assert list(read_model(tmp_path / "small.mercer").facts()["margins"]) == [
        "0 against 1",
        "0 against 2",
        "1 against 2",
    ]


def test_probabilities_of_a_logistic_model_as_the_page_says(tmp_path):
    """docs/migration.md: expit of the decisions, over their sum for several classes, is LIBLINEAR's -b 1."""
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    for k in (2, 3):
        model = liblinear.train(CLASSES[k].tolist(), X.tolist(), "-s 0 -B 1 -q")
        liblinear.save_model(str(tmp_path / "m"), model)
        wanted = np.array(liblinear.predict([], ROWS.tolist(), model, "-b 1 -q")[2])
        p = expit(read_liblinear_model(tmp_path / "m").decisions(ROWS))
        p = np.c_[p, 1 - p] if k == 2 else p / p.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(p, wanted, atol=1e-9)
