"""LIBSVM's model files: the same bytes back, the same decisions, and no malformed file gets through."""

import random

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, load_wine, make_classification

import mercer
from mercer import SVC, kernels
from mercer.files.liblinear_model import write_liblinear_model
from mercer.files.libsvm_estimator import (
    estimator_from_libsvm,
    libsvm_from_estimator,
    reorder_classes,
)
from mercer.files.libsvm_model import (
    SVM_TYPES,
    format_libsvm_model,
    parse_libsvm_model,
    read_libsvm_model,
    write_libsvm_model,
)
from mercer.files.models import read_model
from mercer.files.svmlight_model import write_svmlight_model
from mercer.runtime.errors import ModelFormatError

TWO = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 3
rho 0.25
label 1 -1
nr_sv 1 2
SV
1 1:0.5 3:1
-0.33333333333333331
-0.66666666666666663 2:-2.5
"""
THREE = """svm_type c_svc
kernel_type linear
nr_class 3
total_sv 4
rho -1.5 -2 0.10000000000000001
label 7 -3 5
nr_sv 1 2 1
SV
1 0.5 1:1
-1 1 1:2 4:0.125
-0.25 0 2:1
-0.5 -1 1:3
"""
OTHERS = {
    "polynomial": TWO.replace("kernel_type rbf\ngamma 0.5", "kernel_type polynomial\ndegree 2\ngamma 0.5\ncoef0 1.5"),
    "sigmoid": TWO.replace("kernel_type rbf\ngamma 0.5", "kernel_type sigmoid\ngamma 0.5\ncoef0 -1"),
    "probabilities": TWO.replace("nr_sv", "probA -1.6841032239202511\nprobB -0.054170791243250346\nnr_sv"),
    "precomputed": """svm_type c_svc
kernel_type precomputed
nr_class 2
total_sv 2
rho 0
label 15 45
nr_sv 1 1
SV
0.20000000000000001 0:1
-0.20000000000000001 0:3
""",
    "regression": """svm_type epsilon_svr
kernel_type rbf
gamma 1
nr_class 2
total_sv 1
rho -0.5
probA 0.5
SV
1 1:1
""",
    "one-class": """svm_type one_class
kernel_type rbf
gamma 1
nr_class 2
total_sv 1
rho 0.5
prob_density_marks -5 -4 -3 -2 -1 1 2 3 4 5
SV
1 1:1
""",
    "one label": "svm_type c_svc\nkernel_type linear\nnr_class 1\ntotal_sv 0\nrho\nlabel 4\nnr_sv 0\nSV\n",
}


def as_libsvm_writes(text):
    """Every support vector's line ends in a blank."""
    head, _, vectors = text.partition("SV\n")
    return head + "SV\n" + vectors.replace("\n", " \n")


TWO, THREE = as_libsvm_writes(TWO), as_libsvm_writes(THREE)
OTHERS = {name: as_libsvm_writes(text) if "SV\n1" in text or "SV\n0" in text else text for name, text in OTHERS.items()}
ALL = {"two": TWO, "three": THREE, **OTHERS}


def parse(text):
    return parse_libsvm_model(text.encode(), "m.model")


@pytest.mark.parametrize("name", ALL)
def test_the_same_bytes_back(name):
    assert format_libsvm_model(parse(ALL[name])).decode() == ALL[name]


@pytest.mark.parametrize("name", ["two", "three", "polynomial", "sigmoid", "probabilities", "precomputed"])
def test_through_an_estimator_the_same_bytes_back(name, tmp_path):
    machine = estimator_from_libsvm(parse(ALL[name]))
    assert format_libsvm_model(libsvm_from_estimator(machine)).decode() == ALL[name]
    mercer.save(machine, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    assert format_libsvm_model(libsvm_from_estimator(again)).decode() == ALL[name]


def test_decisions_by_hand():
    """Σ coef k(SV, x) − rho, and a vote for the first label where it is positive."""
    X = np.array([[0.5, 0.0, 1.0, 0.0], [0.0, -2.5, 0.0, 0.0], [1.0, 1.0, 1.0, 1.0]])
    vectors = np.array([[0.5, 0, 1, 0], [0, 0, 0, 0], [0, -2.5, 0, 0]])
    K = np.exp(-0.5 * ((X[:, None] - vectors[None]) ** 2).sum(axis=2))
    expected = K @ [1, -1 / 3, -2 / 3] - 0.25
    machine = estimator_from_libsvm(parse(TWO), n_features=4)
    np.testing.assert_allclose(machine.decision_function(X), expected, rtol=1e-14)
    np.testing.assert_array_equal(machine.classes_, [-1, 1])
    np.testing.assert_array_equal(machine.predict(X), np.where(expected > 0, 1, -1))
    np.testing.assert_array_equal(machine.predict(sp.csr_array(X)), np.where(expected > 0, 1, -1))


def test_ties_go_to_the_label_that_stands_first():
    machine = estimator_from_libsvm(parse(THREE), n_features=4)
    model = parse(THREE)
    X = np.random.default_rng(0).normal(size=(500, 4)) * 3
    w = np.array([[1.0, 0, 0, 0], [2, 0, 0, 0.125], [0, 1, 0, 0], [3, 0, 0, 0]])
    pairs = X @ np.array([w.T @ c for c in ([1, -1, -0.25, 0], [0.5, 0, 0, -0.5], [0, 1, 0, -1])]).T - model.rho
    votes = np.zeros((len(X), 3))
    for p, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        votes[:, i] += pairs[:, p] > 0
        votes[:, j] += pairs[:, p] <= 0
    assert (votes.max(axis=1) == 1).any()
    expected = np.array([7, -3, 5])[votes.argmax(axis=1)]
    np.testing.assert_array_equal(machine.predict(X), expected)
    np.testing.assert_array_equal(model.answers(model.function(4)(X)), expected)


@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.filterwarnings("ignore::mercer.runtime.errors.NonPSDKernelWarning")
def test_a_trained_machine_survives(kernel, classes, tmp_path):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes] / 4, y[y < classes]
    machine = SVC(kernel=kernel, gamma=0.5, coef0=0.25, degree=2).fit(X.round(6), y)
    write_libsvm_model(libsvm_from_estimator(machine), tmp_path / "m.model")
    again = estimator_from_libsvm(read_libsvm_model(tmp_path / "m.model"))
    np.testing.assert_array_equal(again.predict(X), machine.predict(X))
    np.testing.assert_array_equal(again.intercept_, machine.intercept_)
    machine.decision_function_shape = again.decision_function_shape = "ovo"
    np.testing.assert_allclose(again.decision_function(X), machine.decision_function(X), atol=1e-6)


def test_another_order_of_classes_is_the_same_classifier():
    X, y = load_wine(return_X_y=True)
    machine = SVC(kernel="linear", C=0.01).fit(X, y)
    model = libsvm_from_estimator(machine)
    assert model.label == (0, 1, 2)
    for order in ([2, 0, 1], [1, 0, 2], [0, 2, 1]):
        other = libsvm_from_estimator(machine, label_order=order)
        assert other.label == tuple(order)
        values, flipped = model.function()(X), other.function()(X)
        for p, (i, j) in enumerate(other.pairs):
            a, b = order[i], order[j]
            q = model.pairs.index((min(a, b), max(a, b)))
            np.testing.assert_allclose(flipped[:, p], values[:, q] * (1 if a < b else -1), atol=1e-8)
        assert format_libsvm_model(reorder_classes(other, [0, 1, 2])) == format_libsvm_model(model)
    with pytest.raises(ValueError, match="not an order of the labels"):
        reorder_classes(model, [0, 1, 3])


def test_the_sigmoid_of_a_flipped_pair():
    model = parse(OTHERS["probabilities"])
    other = reorder_classes(model, [-1, 1])
    f = np.linspace(-2, 2, 9)
    of_first = 1 / (1 + np.exp(model.prob_a * f + model.prob_b))
    np.testing.assert_allclose(1 / (1 + np.exp(other.prob_a * -f + other.prob_b)), 1 - of_first, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        # What LIBSVM 3.37's own reader crashes on, reads uninitialised memory for, or takes for sound.
        (("nr_sv 1 2", "nr_sv 1000000 1"), r"nr_sv \(1000000, 1\) must add up to total_sv 3"),
        (("rho 0.25\n", ""), "the header has no rho"),
        (("total_sv 3", "total_sv -3"), "total_sv says -3 support vectors|must add up to total_sv -3"),
        (("nr_class 2", "nr_class 70000"), "rho must have 2449965000 values, not 1"),
        (("nr_class 2\n", ""), "the header has no nr_class"),
        (("nr_class 2", "nr_class -5"), "nr_class -5 is impossible"),
        (("-0.66666666666666663 2:-2.5 \n", ""), "total_sv says 3 support vectors, but 2 lines follow"),
        # And more of the kind.
        (("SV\n", ""), "no line 'SV'"),
        (("svm_type c_svc", "svm_type d_svc"), "svm_type 'd_svc' is none of c_svc"),
        (("kernel_type rbf", "kernel_type gauss"), "kernel_type 'gauss' is none of linear"),
        (("gamma 0.5", "gamma nan"), "gamma: 'nan' is not a finite number"),
        (("gamma 0.5", "gamma -1"), "must not be negative"),
        (("gamma 0.5\n", ""), "the header has no gamma"),
        (("gamma 0.5", "gamma 0.5\ngamma 0.5"), ":4: gamma occurs twice"),
        (("gamma 0.5", "gamma 0.5\ncoef0 1"), "coef0 cannot occur"),
        (("gamma 0.5", "gamma 1_0"), "'1_0' is not a finite number"),
        (("rho 0.25", "rho 0.25 1"), "rho must have 1 values, not 2"),
        (("rho 0.25", "rho inf"), "'inf' is not a finite number"),
        (("label 1 -1", "label 1 1"), "a label occurs twice"),
        (("label 1 -1", "label 1 99999999999"), "is not a 32-bit integer"),
        (("label 1 -1", "label 1 0.5"), "is not a 32-bit integer"),
        (("total_sv 3", "total_sv 99999999999999999999"), "is not a 32-bit integer"),
        (("nr_sv 1 2", "nr_sv -1 4"), "must add up"),
        (("nr_sv 1 2", "probA 1\nnr_sv 1 2"), "the header has no probB"),
        (("nr_sv 1 2", "color red\nnr_sv 1 2"), r":8: unknown text in model file: \[color\]"),
        (("1 1:0.5 3:1", "x 1:0.5 3:1"), ":10: 'x' is not a finite number"),
        (("1 1:0.5 3:1", "1 3:0.5 1:1"), ":10: indices must ascend"),
        (("2:-2.5", "2:nan"), ":12: the value 'nan'"),
        (("2:-2.5", "0:1"), "index 0, which only precomputed"),
        (("2:-2.5", "2:-2.5 # 3:1"), ":12: .* is not a support vector"),
        (("2:-2.5", "-2.5"), ":12: expected index:value"),
    ],
)
def test_malformed_files_are_refused(change, message):
    assert change[0] in TWO
    with pytest.raises(ModelFormatError, match=message):
        parse(TWO.replace(*change))


def test_a_missing_coefficient_of_three_classes():
    """The eighth of the files that crash LIBSVM: three classes need two coefficients a line."""
    with pytest.raises(ModelFormatError, match=":9: '1:1' is not a finite number"):
        parse(THREE.replace("1 0.5 1:1", "1 1:1"))
    with pytest.raises(ModelFormatError, match=":9: expected 2 coefficients"):
        parse(THREE.replace("1 0.5 1:1", "1"))


@pytest.mark.parametrize("row", ["0:0", "0:1.5", "1:1", "0:1 1:2", "", "0:-1", "0:1e300"])
def test_serials_of_precomputed_kernels(row):
    with pytest.raises(ModelFormatError, match="precomputed kernel must be 0:i"):
        parse(OTHERS["precomputed"].replace("0:3", row))


@pytest.mark.parametrize("options", ["-s 0", "-s 1 -n 0.2", "-s 2 -n 0.2", "-s 3", "-s 4 -n 0.3"])
def test_precomputed_kernels_read_back_take_all_training_samples(options, tmp_path):
    """LIBSVM's file names support vectors by serial number: K may have any columns from the largest number on."""
    libsvm = pytest.importorskip("libsvm.svmutil")
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    y = (np.sign(X[:, 0] - 0.2) if options[:4] in ("-s 0", "-s 1") else X[:, 0] ** 2).tolist()
    rows = rng.permutation(50)[:40]  # a subset of the matrix will do, in any order
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    as_dicts = [{0: i + 1, **dict(enumerate(row.tolist(), 1))} for i, row in enumerate(K)]
    theirs = libsvm.svm_train([y[i] for i in rows], [as_dicts[i] for i in rows], f"-t 4 -q {options}")
    libsvm.svm_save_model(str(tmp_path / "m"), theirs)
    held = read_libsvm_model(tmp_path / "m")
    wanted = np.array(libsvm.svm_predict(y, as_dicts, theirs, "-q")[2])
    least = int(held.serials.max())
    assert least < 60
    machine = estimator_from_libsvm(held)
    decide = getattr(machine, "decision_function", machine.predict)
    for width in (least, 60):
        np.testing.assert_allclose(decide(K[:, :width]).ravel(), wanted[:, 0], rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match=f"at least {least}"):
        decide(K[:, : least - 1])
    mercer.save(machine, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(getattr(again, "decision_function", again.predict)(K), decide(K))
    stored = read_model(tmp_path / "m.mercer")
    np.testing.assert_array_equal(stored.decisions(stored.rows(K, "K", text=False)).ravel(), decide(K).ravel())
    with pytest.raises(ValueError, match=f"needs at least {least}"):
        stored.rows(K[:, : least - 1], "K", text=False)
    with pytest.raises(ValueError, match="expecting 50 features"):  # the number of rows, where it is told
        estimator_from_libsvm(held, n_features=50).predict(K)


def test_truncated_at_every_byte():
    for name, text in ALL.items():
        for length in range(len(text)):
            try:
                model = parse(text[:length])
            except ModelFormatError:
                continue
            # Only the end of the last line may go: LIBSVM's format does not say where a line ends.
            assert len(model.coefficients) == len(parse(text).coefficients), (name, length)


def test_mutated_files_never_crash():
    """Whatever loads is sound: its counts agree and it decides with finite numbers."""
    rng = random.Random(0)
    loaded = 0
    texts = [text.encode() for text in ALL.values()]
    pieces = [b"nan", b"-", b"1e999", b"99999999999", b"\n", b" ", b":", b"SV", b"0:1", b"\xff", b"nr_class 3\n", b"#"]
    for _ in range(4000):
        content = bytearray(rng.choice(texts))
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(content))
            match rng.randrange(4):
                case 0:
                    content[at] ^= 1 << rng.randrange(8)
                case 1:
                    content[at] = rng.randrange(256)
                case 2:
                    content[at:at] = rng.choice(pieces)
                case _:
                    del content[at : at + rng.randint(1, 8)]
        try:
            model = parse_libsvm_model(bytes(content))
        except ModelFormatError:
            continue
        loaded += 1
        assert model.svm_type in SVM_TYPES
        assert model.coefficients.shape == (model.vectors.shape[0], model.nr_class - 1)
        assert len(model.rho) == len(model.pairs)
        small = model.vectors.shape[1] < 1000 and (model.kernel_type != "precomputed" or model.serials.max() < 1000)
        if len(model.rho) and small and abs(model.numbers.get("degree", 0)) < 10:
            expansion = model.function(8)
            width = expansion.n_columns or expansion.vectors.shape[1]
            with np.errstate(all="ignore"):
                assert expansion(np.ones((1, width))).shape == (1, len(model.rho))
    assert loaded > 100


def test_huge_counts_cost_no_memory():
    tracemalloc = pytest.importorskip("tracemalloc")
    tracemalloc.start()
    try:
        for change in (("total_sv 3", "total_sv 2000000000"), ("nr_class 2", "nr_class 2000000000")):
            with pytest.raises(ModelFormatError):
                parse(TWO.replace(*change))
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("machine", "message"),
    [
        (lambda X, y: SVC(kernel="laplacian").fit(X, y), "cannot store the kernel Laplacian"),
        (lambda X, y: SVC(kernel=2 * kernels.Linear()).fit(X, y), "cannot store the kernel"),
        (lambda X, y: SVC(kernel=kernels.Gaussian(gamma=1.0) + 1.0, bias=False).fit(X, y), "cannot store the kernel"),
        (lambda X, y: SVC().fit(X, np.array(["a", "b"])[y]), "labels are 32-bit integers"),
        (lambda X, y: SVC().fit(X, y + 0.0), None),
    ],
)
def test_what_a_libsvm_file_cannot_hold(machine, message):
    X, y = make_classification(40, 4, random_state=0)
    fitted = machine(X, y)
    if message is None:
        assert libsvm_from_estimator(fitted).label == (1, 0)
        return
    with pytest.raises(TypeError, match=message):
        libsvm_from_estimator(fitted)


def test_a_single_class_is_no_estimator():
    with pytest.raises(ValueError, match="single class"):
        estimator_from_libsvm(parse(OTHERS["one label"]))


@pytest.mark.parametrize(
    ("write", "kind", "maker"),
    [
        (write_libsvm_model, "LibsvmModel", "libsvm_from_estimator"),
        (write_svmlight_model, "LibsvmModel", "libsvm_from_estimator"),
        (write_liblinear_model, "LiblinearModel", "liblinear_from_estimator"),
    ],
)
def test_an_estimator_is_no_model_of_a_file(write, kind, maker, tmp_path):
    machine = SVC().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(TypeError, match=rf"from a {kind}, but the model is a SVC; convert it with \S+\.{maker}"):
        write(machine, tmp_path / "m.model")
    assert list(tmp_path.iterdir()) == []
