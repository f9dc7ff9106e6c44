"""mercer.save writes what the ending says, and mercer.load reads what the content is, whatever the file is called."""

import contextlib
import io
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import svm
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer.files.endings import OTHER_MODELS
from mercer.files.libsvm_model import LibsvmModel
from mercer.runtime.errors import ModelFormatError
from reference.address_space import address_space
from tools.file_tools import compile_c, has_compiler, libsvm_answers

RNG = np.random.default_rng(8)
X = RNG.normal(size=(50, 3))
TWO = np.where(X[:, 0] + 0.4 * X[:, 1] ** 2 > 0.2, 1, -1)
THREE = np.digitize(X[:, 0], [-0.5, 0.5])
VALUES = np.sin(X[:, 0]) + X[:, 1]
NEW = RNG.normal(size=(20, 3))
NUMBERS = np.array([[1.0, -1.0], [0.5, 2.0]])

IN_LIBSVM = {
    "two classes": lambda: mercer.SVC(gamma=0.4).fit(X, TWO),
    "three classes": lambda: mercer.SVC(kernel="poly", gamma=0.5, coef0=1.0, decision_function_shape="ovo").fit(
        X, THREE
    ),
    "ν": lambda: mercer.NuSVC(nu=0.3, gamma=0.4).fit(X, TWO),
    "a tube": lambda: mercer.SVR(gamma=0.4).fit(X, VALUES),
    "novelties": lambda: mercer.OneClassSVM(gamma=0.4).fit(X),
}
IN_LIBLINEAR = {
    "two classes": lambda: mercer.LinearSVC().fit(X, TWO),
    "three classes": lambda: mercer.LinearSVC(loss="hinge", bias="regularized").fit(X, THREE),
    "a tube": lambda: mercer.LinearSVR().fit(X, VALUES),
}


def decide(model, rows):
    answer = model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)
    return np.asarray(answer).reshape(len(rows), -1)


# --- .model: LIBSVM's library and LIBLINEAR's read what was written ---------------------------------------------------


@pytest.mark.parametrize("name", IN_LIBSVM)
def test_a_model_for_libsvm(name, tmp_path):
    svmutil = pytest.importorskip("libsvm.svmutil")
    model, path = IN_LIBSVM[name](), tmp_path / "m.model"
    mercer.save(model, path)
    labels, values = libsvm_answers(svmutil.svm_load_model(str(path)), NEW, precomputed=False)
    wanted = decide(model, NEW)
    np.testing.assert_allclose(values[:, : wanted.shape[1]], wanted, atol=1e-6)  # a file has eight digits of each entry
    again = mercer.load(path)
    assert type(again) is type(model)
    again.set_params(**{"decision_function_shape": "ovo"} if hasattr(again, "decision_function_shape") else {})
    np.testing.assert_allclose(decide(again, NEW), wanted, atol=1e-6)
    if hasattr(model, "classes_"):
        settled = np.abs(wanted).min(axis=1) > 1e-5
        np.testing.assert_array_equal(labels[settled], model.predict(NEW)[settled])
        np.testing.assert_array_equal(again.predict(NEW)[settled], model.predict(NEW)[settled])


@pytest.mark.parametrize("name", IN_LIBLINEAR)
def test_a_model_for_liblinear(name, tmp_path):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil")
    model, path = IN_LIBLINEAR[name](), tmp_path / "m.model"
    mercer.save(model, path)
    with contextlib.redirect_stdout(io.StringIO()):
        said, _, _ = liblinearutil.predict([0] * len(NEW), sp.csr_matrix(NEW), liblinearutil.load_model(str(path)))
    np.testing.assert_allclose(said, model.predict(NEW), atol=1e-9)
    again = mercer.load(path)
    assert type(again) is type(model)
    np.testing.assert_allclose(decide(again, NEW), decide(model, NEW), atol=1e-9)


@pytest.mark.parametrize("options", ["-s 0 -t 2 -g 0.4 -q", "-s 3 -t 1 -d 2 -r 1 -q", "-s 2 -t 0 -q"])
def test_what_libsvm_trained_is_loaded(options, tmp_path):
    svmutil = pytest.importorskip("libsvm.svmutil")
    y = VALUES if "-s 3" in options else TWO
    theirs = svmutil.svm_train(list(y), [dict(enumerate(row, 1)) for row in X.tolist()], options)
    svmutil.svm_save_model(str(tmp_path / "heart"), theirs)
    labels, values = libsvm_answers(theirs, NEW, precomputed=False)
    model = mercer.load(tmp_path / "heart")
    found = decide(model, NEW)
    sign = 1.0 if not hasattr(model, "classes_") or model.classes_[1] == theirs.get_labels()[0] else -1.0
    np.testing.assert_allclose(sign * found[:, 0], values[:, 0], atol=1e-6)
    if "-s 3" not in options:
        np.testing.assert_array_equal(model.predict(NEW), labels)
    mercer.save(model, tmp_path / "heart.mercer")
    np.testing.assert_array_equal(decide(mercer.load(tmp_path / "heart.mercer"), NEW), found)


def test_what_liblinear_trained_is_loaded(tmp_path):
    liblinearutil = pytest.importorskip("liblinear.liblinearutil")
    theirs = liblinearutil.train(TWO, sp.csr_matrix(X), "-s 2 -B 1 -q")
    liblinearutil.save_model(str(tmp_path / "heart"), theirs)
    with contextlib.redirect_stdout(io.StringIO()):
        said, _, values = liblinearutil.predict([0] * len(NEW), sp.csr_matrix(NEW), theirs)
    model = mercer.load(tmp_path / "heart")
    np.testing.assert_array_equal(model.predict(NEW), said)
    np.testing.assert_allclose(np.abs(model.decision_function(NEW)), np.abs(values)[:, 0], rtol=1e-9)


LIGHT = """SVM-light Version V6.02
2 # kernel type
3 # kernel parameter -d
0.5 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
2 # highest feature index
2 # number of training documents
3 # number of support vectors plus 1
0.25 # threshold b, each following line is a SV (starting with alpha*y)
-0.5 1:-1 #
0.75 1:1 2:2 #
"""


def test_what_svmlight_trained_is_loaded(tmp_path):
    (tmp_path / "some").write_text(LIGHT)
    model = mercer.load(tmp_path / "some")
    by_hand = [
        0.75 * np.exp(-0.5 * ((x - [1, 2]) ** 2).sum()) - 0.5 * np.exp(-0.5 * ((x - [-1, 0]) ** 2).sum()) - 0.25
        for x in NUMBERS
    ]
    np.testing.assert_allclose(model.decision_function(NUMBERS), by_hand, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(NUMBERS), np.sign(by_hand))


def test_columns_to_come_are_told(tmp_path):
    (tmp_path / "some").write_text(LIGHT)
    assert mercer.load(tmp_path / "some").n_features_in_ == 2
    with pytest.raises(ValueError, match=r"n_features=1, but the model in '.*some' has 2 columns"):
        mercer.load(tmp_path / "some", n_features=1)
    wide = mercer.load(tmp_path / "some", n_features=4)
    assert wide.n_features_in_ == 4
    padded = np.c_[NUMBERS, np.zeros((2, 2))]
    narrow = mercer.load(tmp_path / "some")
    np.testing.assert_array_equal(wide.decision_function(padded), narrow.decision_function(NUMBERS))
    K = X @ X.T
    model = mercer.SVC(kernel="precomputed").fit(K, TWO)
    mercer.save(model, tmp_path / "k.model")
    again = mercer.load(tmp_path / "k.model", n_features=len(K))
    np.testing.assert_allclose(again.decision_function(K), model.decision_function(K), atol=1e-12)


# --- .onnx and .c -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".onnx", ".ONNX"])
def test_a_graph_for_onnxruntime(suffix, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    model = make_pipeline(StandardScaler(), mercer.SVC(gamma=0.4)).fit(X, TWO)
    mercer.save(model, tmp_path / f"m{suffix}")
    session = onnxruntime.InferenceSession(str(tmp_path / f"m{suffix}"), providers=["CPUExecutionProvider"])
    decision, label = session.run(["decision", "label"], {"X": NEW})
    np.testing.assert_allclose(decision[:, 0], model.decision_function(NEW), atol=1e-9)
    np.testing.assert_array_equal(label, model.predict(NEW))


@pytest.mark.skipif(not has_compiler(), reason="there is no gcc to compile the file with")
def test_a_c_file(tmp_path):
    model = mercer.SVC(gamma=0.4).fit(X, TWO)
    mercer.save(model, tmp_path / "2 hearts.c")
    text = (tmp_path / "2 hearts.c").read_text()
    f, labels = compile_c({"model_2_hearts": text}, tmp_path)["model_2_hearts"](NEW)
    np.testing.assert_allclose(f[:, 0], model.decision_function(NEW), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(labels, model.predict(NEW))


# --- names and contents -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["m.mercer", "m", "m.bin", "m.v2", "m.txt", "m.MERCER", ".hidden", "model", "c", "onnx"]
)
def test_other_endings_are_mercer_files(name, tmp_path):
    model = mercer.SVC().fit(X, TWO)
    mercer.save(model, tmp_path / name)
    again = mercer.load(tmp_path / name)
    np.testing.assert_array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert again.certificate_.gap == model.certificate_.gap  # which no text of another program holds


def test_a_name_does_not_decide_what_is_read(tmp_path):
    model = mercer.SVC().fit(X, TWO)
    mercer.save(model, tmp_path / "a.mercer")
    mercer.save(model, tmp_path / "b.model")
    (tmp_path / "a.mercer").rename(tmp_path / "c.model")
    (tmp_path / "b.model").rename(tmp_path / "d.mercer")
    assert hasattr(mercer.load(tmp_path / "c.model"), "certificate_")
    assert not hasattr(mercer.load(tmp_path / "d.mercer"), "certificate_")


@pytest.mark.parametrize("suffix", [*OTHER_MODELS, ".h", ".PKL"])
def test_endings_of_other_programs_are_refused(suffix, tmp_path):
    path = tmp_path / f"m{suffix}"
    path.write_text("precious")
    with pytest.raises(ValueError, match=rf"m\{suffix}' ends in \{suffix.lower()}.*\.mercer, \.onnx .*\.c .*\.model "):
        mercer.save(mercer.SVC().fit(X, TWO), path)
    assert path.read_text() == "precious"


@pytest.mark.parametrize(
    ("model", "suffix", "message"),
    [
        (
            lambda: make_pipeline(StandardScaler(), mercer.SVC()).fit(X, TWO),
            ".model",
            "only a machine, not the Pipeline",
        ),
        (lambda: svm.SVC().fit(X, TWO), ".model", r"a SVC of mercer, but this one comes from sklearn.*mercer\.SVC"),
        (lambda: svm.LinearSVC().fit(X, TWO), ".model", r"a LinearSVC of mercer.*from sklearn.*mercer\.LinearSVC"),
        (lambda: mercer.RLSClassifier().fit(X, TWO), ".model", r"LIBSVM has no model for RLSClassifier.*\.mercer"),
        (lambda: mercer.SVC().fit(X, np.where(TWO > 0, "a", "b")), ".model", "labels are 32-bit integers"),
        (lambda: mercer.SVC(kernel="laplacian").fit(X, TWO), ".model", "cannot store the kernel"),
        (lambda: mercer.SVC(kernel="laplacian").fit(X, TWO), ".onnx", "no operators for the kernel"),
        (lambda: mercer.KernelPCA().fit(X), ".c", "KernelPCA"),
    ],
)
def test_what_a_format_cannot_hold_is_refused_and_nothing_is_written(model, suffix, message, tmp_path):
    if suffix == ".onnx":
        pytest.importorskip("onnx")
    with pytest.raises(TypeError, match=message):
        mercer.save(model(), tmp_path / f"m{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", [".mercer", ".model", ".c", ".onnx"])
def test_a_model_that_is_not_fitted(suffix, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        mercer.save(mercer.SVC(), tmp_path / f"m{suffix}")


def test_options_of_the_other_format_are_refused(tmp_path):
    model = mercer.SVC().fit(X, TWO)
    mercer.save(model, tmp_path / "m.model")
    mercer.save(model, tmp_path / "m.mercer")
    with pytest.raises(ValueError, match=r"mmap and classes are for \.mercer files"):
        mercer.load(tmp_path / "m.model", mmap=True)
    with pytest.raises(ValueError, match="n_features=3 is for models of LIBSVM"):
        mercer.load(tmp_path / "m.mercer", n_features=3)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("name", ["m.mercer", "m.model"])
def test_a_part_of_a_file_is_refused(name, share, tmp_path):
    mercer.save(mercer.SVC().fit(X, TWO), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(share * len(content))].rsplit(b"\n", 1)[0])
    with pytest.raises(ModelFormatError):
        mercer.load(tmp_path / name)


@pytest.mark.parametrize(
    "content", [b"", b"\0", b"svm_typo c_svc\n", b"a,b\n1,2\n", b"x svm_type c_svc\n", b"\x80\x04svm_type"]
)
def test_what_is_no_model(content, tmp_path):
    (tmp_path / "junk").write_bytes(content)
    with pytest.raises(ModelFormatError, match=r"not a mercer model file.*LIBSVM, LIBLINEAR or SVMlight"):
        mercer.load(tmp_path / "junk")


@pytest.mark.timeout(20)
def test_a_large_file_that_is_no_model_is_not_read(tmp_path):
    with open(tmp_path / "junk", "wb") as file:
        file.truncate(1 << 34)  # of no bytes on the disk
    with address_space(1 << 28), pytest.raises(ModelFormatError, match="not a mercer model file"):
        mercer.load(tmp_path / "junk")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("solver_type L2R_LR\nnr_class 2\nlabel 1 -1\nnr_feature 1\nbias -1\nw\n0.5\n", "logistic regression"),
        ("svm_type c_svc\nkernel_type linear\nnr_class 1\ntotal_sv 0\nrho\nlabel 3\nnr_sv 0\nSV\n", "a single class"),
    ],
)
def test_a_model_that_no_machine_of_mercers_is(text, message, tmp_path):
    (tmp_path / "l.model").write_text(text)
    with pytest.raises(ModelFormatError, match=message):
        mercer.load(tmp_path / "l.model")


@pytest.mark.parametrize("n_features", [0, -1, 2.5, "3"])
def test_a_number_of_columns_that_is_none(n_features, tmp_path):
    (tmp_path / "some").write_text(LIGHT)
    with pytest.raises((TypeError, ValueError), match="n_features"):
        mercer.load(tmp_path / "some", n_features=n_features)


def test_folders_and_pipes_are_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        mercer.load(tmp_path)
    with pytest.raises(FileNotFoundError):
        mercer.load(tmp_path / "missing")


def libsvm_text(k, n, coefficient="1", tail=""):
    """A model of k classes with n support vectors each, as short as it can be written."""
    head = f"svm_type c_svc\nkernel_type linear\nnr_class {k}\ntotal_sv {k * n}\nrho{' 0' * (k * (k - 1) // 2)}\n"
    head += f"label {' '.join(map(str, range(k)))}\nnr_sv{f' {n}' * k}\nSV\n"
    return head + (" ".join([coefficient] * (k - 1)) + tail + "\n") * (k * n)


LIGHT_HEAD = LIGHT[: LIGHT.index("-0.5 1:-1")]
LINEAR_HEAD = "solver_type L2R_L2LOSS_SVC\nnr_class 2\nlabel 1 -1\nnr_feature 16000\nbias -1\nw\n"
LARGE_TEXTS = {
    "200 classes": lambda: libsvm_text(200, 1),
    "200 classes of zeros": lambda: libsvm_text(200, 1, "0"),
    "16,000 short lines": lambda: libsvm_text(2, 8_000),
    "the last index": lambda: libsvm_text(2, 4_000, tail=" 2147483647:1"),
    "SVMlight": lambda: LIGHT_HEAD.replace("3 # number of sup", "16001 # number of sup") + "1\n" * 16_000,
    "LIBLINEAR": lambda: LINEAR_HEAD + "0\n" * 16_000,
    "blank lines": lambda: "svm_type c_svc\nSV\n" + "\n" * 300_000,
    "lines of a header": lambda: "svm_type c_svc\n" + "x\n" * 200_000,
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", LARGE_TEXTS)
def test_a_text_takes_memory_in_proportion_to_its_size(name, tmp_path):
    """The bound is that of SECURITY.md, without the 64 MB of every file."""
    text = LARGE_TEXTS[name]()
    (tmp_path / "m").write_text(text)
    mercer.load(write_small(tmp_path))  # what is imported and cached is not the file's
    tracemalloc.start()
    try:
        with contextlib.suppress(ModelFormatError):
            mercer.load(tmp_path / "m")
        assert tracemalloc.get_traced_memory()[1] < 64 * len(text) + 2**20
    finally:
        tracemalloc.stop()


def write_small(folder):
    (folder / "small").write_text(libsvm_text(3, 1))
    return folder / "small"


def test_coefficients_of_pairs_are_those_of_the_formula():
    """Class by class and pair by pair, as LIBSVM's svm_predict_values finds them."""
    k, nr_sv = 4, (3, 0, 2, 1)
    coefficients = RNG.normal(size=(sum(nr_sv), k - 1))
    coefficients[1, 1] = 0.0
    model = LibsvmModel(
        "c_svc", "linear", {}, np.zeros(6), coefficients, sp.csr_array(np.eye(6)), tuple(range(k)), nr_sv
    )
    starts, p = np.cumsum([0, *nr_sv]), 0
    wanted = np.zeros((6, 6))
    for i in range(k):
        for j in range(i + 1, k):
            wanted[starts[i] : starts[i + 1], p] = coefficients[starts[i] : starts[i + 1], j - 1]
            wanted[starts[j] : starts[j + 1], p] = coefficients[starts[j] : starts[j + 1], i]
            p += 1
    np.testing.assert_array_equal(model.by_pair.toarray(), wanted)
    assert model.by_pair.nnz == np.count_nonzero(wanted)
