"""Files: what is read back, or computed by another program, answers as the public methods of the model do."""

import contextlib
import ctypes
import io
import pickle
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import mercer
from mercer.files.export.c.export import export_c
from mercer.runtime.errors import ModelFormatError
from tools.answers import ROWS, expect_same_answers, values
from tools.rows import N, fitted, machine_in


@contextlib.contextmanager
def file(name):
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / name


def save_and_load(row):
    model = fitted(row)
    with file("model.mercer") as path:
        mercer.save(model, path)
        again = mercer.load(path)
    expect_same_answers(model, again, row)
    for name, value in vars(machine_in(model)).items():
        if name.endswith("_") and not name.startswith("_") and isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(machine_in(again), name), value, err_msg=name)


def pickled(row):
    model = fitted(row)
    expect_same_answers(model, pickle.loads(pickle.dumps(model)), row)


# --- ONNX, by onnxruntime ---------------------------------------------------------------------------------------------


def onnx(row):
    import onnxruntime

    model = fitted(row)
    with file("model.onnx") as path:
        mercer.save(model, path)
        session = onnxruntime.InferenceSession(path.read_bytes(), providers=["CPUExecutionProvider"])
    found = dict(zip([o.name for o in session.get_outputs()], session.run(None, {"X": ROWS}), strict=True))
    expect_outputs(row, model, found["decision"], found.get("label"))


def expect_outputs(row, model, decision, label, close=1e-9):
    """Decision values and labels of a file are those of the model."""
    f = values(model, row, ROWS)
    np.testing.assert_allclose(np.reshape(decision, f.shape), f, atol=close * max(1.0, np.abs(f).max()))
    if row.classifies or row.target == "none":
        settled = np.abs(f).min(axis=1) > 1e-9  # a support vector on the boundary itself may fall to either side
        np.testing.assert_array_equal(np.asarray(label)[settled], model.predict(row.given(ROWS))[settled])


# --- C, compiled: all rows in one library -----------------------------------------------------------------------------

COMPILER = ["gcc", "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O0", "-shared", "-fPIC"]


def has_compiler():
    return shutil.which("gcc") is not None


def c_text(row, name="model", dtype="float64"):
    return export_c(fitted(row), dtype=dtype, name=name)


class CFile:
    """The functions of one C file in a library."""

    def __init__(self, library, name, text, dtype="float64"):
        self.real = {"float64": ctypes.c_double, "float32": ctypes.c_float}[dtype]
        self.decide = getattr(library, f"{name}_decision")
        self.outputs = int(re.search(rf"{name.upper()}_OUTPUTS (\d+)", text)[1])
        returns = re.search(rf"^(.*?) ?\*?{name}_predict\(", text, re.MULTILINE)
        self.predict = getattr(library, f"{name}_predict") if returns else None
        if returns:
            types = {"const char": ctypes.c_char_p, "double": ctypes.c_double, "float": ctypes.c_float}
            types |= {"long long": ctypes.c_longlong, "unsigned long long": ctypes.c_ulonglong}
            self.predict.restype = types.get(returns[1], ctypes.c_int)

    def __call__(self, points):
        """Decision values and labels of some points."""
        pointer = ctypes.POINTER(self.real)
        rows = np.ascontiguousarray(points, dtype=self.real)
        f = np.zeros((len(rows), self.outputs), dtype=self.real)
        for x, out in zip(rows, f, strict=True):
            self.decide(x.ctypes.data_as(pointer), out.ctypes.data_as(pointer))
        if self.predict is None:
            return f, None
        labels = [self.predict(x.ctypes.data_as(pointer)) for x in rows]
        return f, np.array([one.decode() if isinstance(one, bytes) else one for one in labels])


def compile_c(texts, folder, dtype="float64"):
    """The files of this folder as one library: a `CFile` for each name."""
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.c")
        paths[-1].write_text(text, encoding="ascii")
    run = subprocess.run([*COMPILER, *map(str, paths), "-o", str(folder / "all.so"), "-lm"], capture_output=True)
    assert run.returncode == 0, run.stderr[:2000]
    library = ctypes.CDLL(str(folder / "all.so"))
    return {name: CFile(library, name, text, dtype) for name, text in texts.items()}


def c_file(row):
    """Only that it is written; `test_c_files_answer_as_the_models_do` compiles those of all rows together."""
    with file("model.c") as path:
        mercer.save(fitted(row), path)
        assert path.read_text(encoding="ascii") == c_text(row)


# --- LIBSVM, SVMlight, LIBLINEAR: files that know integers as classes -------------------------------------------------


def with_integers(row):
    """The machine of a row, trained on −1 and 1, or 0, 1 and 2, in the place of strings."""
    if not row.classifies:
        return fitted(row), None
    labels = np.unique(row.y, return_inverse=True)[1]
    labels = 2 * labels - 1 if row.classes == 2 else labels
    return row.make().fit(row.training(), labels), labels


def libsvm(row):
    model, labels = with_integers(row)
    with file("some.model") as path:
        mercer.save(model, path, format="libsvm")
        expect_libsvm_agrees(row, model, labels, path, mercer.load)


def expect_libsvm_agrees(row, model, labels, path, load):
    """LIBSVM and mercer answer from a file as the model does."""
    from libsvm import svmutil

    try:  # LIBSVM's own reader trusts a file, and reads beyond its arrays where that is wrong
        again = load(path)
    except ModelFormatError as error:
        raise AssertionError(f"mercer cannot read its own file: {error}") from error
    theirs = svmutil.svm_load_model(str(path))
    predicted, decided = libsvm_answers(theirs, row.given(ROWS), precomputed=row.form == "matrix")
    f, told = values(model, row, ROWS), again.predict(row.given(ROWS))
    if labels is not None or row.target == "none":
        settled = np.abs(f).min(axis=1) > 1e-6  # a file has eight digits of each entry
        np.testing.assert_array_equal(predicted[settled], model.predict(row.given(ROWS))[settled])
        np.testing.assert_array_equal(told[settled], model.predict(row.given(ROWS))[settled])
    else:
        np.testing.assert_allclose(told, f[:, 0], atol=1e-6)
    np.testing.assert_allclose(decided[:, : f.shape[1]], f, atol=1e-6)


def libsvm_answers(model, rows, precomputed):
    """What LIBSVM's library says: labels and decision values.

    Its svmutil.svm_predict has room for one decision value of a nu_svc, and writes beyond it for three classes.
    """
    from libsvm.svm import gen_svm_nodearray
    from libsvm.svm import libsvm as library

    room = (ctypes.c_double * max(1, model.get_nr_class() * (model.get_nr_class() - 1) // 2))()
    labels, decided = [], []
    for i, row in enumerate(np.asarray(rows.toarray() if sp.issparse(rows) else rows)):
        entries = {j + 1: float(v) for j, v in enumerate(row)}
        nodes, _ = gen_svm_nodearray({0: i + 1} | entries if precomputed else entries, isKernel=precomputed)
        labels.append(library.svm_predict_values(model, nodes, room))
        decided.append(list(room))
    return np.array(labels), np.array(decided)


def svmlight_values(path, points):
    """f of svm_classify, from the file's text: Σ α_i y_i k(x_i, x) − b."""
    lines = [line.partition("#")[0].split() for line in Path(path).read_text().splitlines()[1:]]
    kind, degree, gamma, s, r = int(lines[0][0]), int(lines[1][0]), *(float(lines[k][0]) for k in (2, 3, 4))
    wide, threshold = int(lines[6][0]), float(lines[9][0])
    total = np.full(len(points), -threshold)
    for first, *pairs in lines[10:]:
        z = np.zeros(max(wide, points.shape[1]))
        for pair in pairs:
            j, _, v = pair.partition(":")
            z[int(j) - 1] = float(v)
        inner = points @ z[: points.shape[1]]
        squares = ((points - z[: points.shape[1]]) ** 2).sum(axis=1)
        k = (inner, (s * inner + r) ** degree, np.exp(-gamma * squares), np.tanh(s * inner + r))[kind]
        total += float(first) * k
    return total


def svmlight(row):
    model, labels = with_integers(row)
    with file("some.model") as path:
        mercer.save(model, path, format="svmlight")
        f = values(model, row, ROWS)[:, 0]
        np.testing.assert_allclose(svmlight_values(path, ROWS), f, atol=1e-9)
        again = mercer.load(path, n_features=3)
    told, predicted = again.predict(row.given(ROWS)), model.predict(row.given(ROWS))
    if labels is not None:
        np.testing.assert_array_equal(told, predicted)
    else:
        np.testing.assert_allclose(told, predicted, atol=1e-6)


def liblinear(row):
    model, labels = with_integers(row)
    with file("some.model") as path:
        mercer.save(model, path, format="liblinear")
        expect_liblinear_agrees(row, model, labels, path, mercer.load)


def saved_as_model(row):
    """The ending .model stands for LIBLINEAR's text, of its machines, and for LIBSVM's of others."""
    model, labels = with_integers(row)
    with file("some.model") as path:
        mercer.save(model, path)
        agrees = expect_liblinear_agrees if path.read_bytes().startswith(b"solver_type") else expect_libsvm_agrees
        width = N if row.form == "matrix" else None  # of rows that a precomputed kernel takes
        agrees(row, model, labels, path, lambda path: mercer.load(path, n_features=width))


def expect_liblinear_agrees(row, model, labels, path, load):
    """LIBLINEAR and mercer answer from a file as the model does."""
    from liblinear import liblinearutil

    theirs, again = liblinearutil.load_model(str(path)), load(path)
    with contextlib.redirect_stdout(io.StringIO()):
        predicted, _, _ = liblinearutil.predict([0] * len(ROWS), sp.csr_matrix(ROWS), theirs)
    told = again.predict(row.given(ROWS))
    if labels is not None:
        np.testing.assert_array_equal(predicted, model.predict(row.given(ROWS)))
        np.testing.assert_array_equal(told, model.predict(row.given(ROWS)))
    else:
        np.testing.assert_allclose(predicted, values(model, row, ROWS)[:, 0], atol=1e-9)
        np.testing.assert_allclose(told, values(model, row, ROWS)[:, 0], atol=1e-9)
