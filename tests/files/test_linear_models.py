"""LIBLINEAR's and SVMlight's model files: read as their programs mean them, damage refused."""

import random

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_classification

from mercer.files.liblinear_model import (
    format_liblinear_model,
    parse_liblinear_model,
    read_liblinear_model,
    write_liblinear_model,
)
from mercer.files.svmlight_model import parse_svmlight_model
from mercer.runtime.errors import ModelFormatError

LINEAR = "solver_type L2R_L2LOSS_SVC_DUAL\nnr_class 2\nlabel 1 -1\nnr_feature 2\nbias 0.5\nw\n0.25 \n-1 \n2 \n"
LIGHT = """SVM-light Version V6.02
2 # kernel type
3 # kernel parameter -d
0.5 # kernel parameter -g
1 # kernel parameter -s
1 # kernel parameter -r
empty# kernel parameter -u
3 # highest feature index
5 # number of training documents
4 # number of support vectors plus 1
0.25 # threshold b, each following line is a SV (starting with alpha*y)
-0.5 1:1 #
0.75 2:2 3:-1 # a comment
-0.25 #
"""


def test_liblinear_by_hand():
    model = parse_liblinear_model(LINEAR.encode())
    assert format_liblinear_model(model).decode() == LINEAR
    X = np.array([[1.0, 0.0], [0.0, 2.0], [4.0, 3.0]])
    np.testing.assert_allclose(model.decisions(X)[:, 0], X @ [0.25, -1] + 0.5 * 2)
    np.testing.assert_array_equal(model.predict(X), [1, -1, -1])


@pytest.mark.parametrize("solver", [0, 1, 2, 3, 4, 5, 6, 7, 11, 12, 13, 21])
@pytest.mark.parametrize("bias", [-1, 1])
@pytest.mark.parametrize("classes", [2, 3])
def test_liblinear_official(solver, bias, classes, tmp_path, capfd):
    liblinear = pytest.importorskip("liblinear.liblinearutil")
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes].astype(float)
    if solver == 21 and bias > 0:
        pytest.skip("LIBLINEAR refuses a bias for one-class")
    trained = liblinear.train(y, X, f"-s {solver} -B {bias} -q")
    path = tmp_path / "linear.model"
    liblinear.save_model(str(path), trained)
    model = read_liblinear_model(path)
    assert format_liblinear_model(model) == path.read_bytes()
    labels, _, values = liblinear.predict(y, X, trained, "-q")
    np.testing.assert_allclose(model.predict(X), labels, rtol=1e-12, atol=1e-14)
    write_liblinear_model(model, path)
    again = liblinear.load_model(str(path))
    assert liblinear.predict(y, X, again, "-q")[2] == values


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("w\n", ""), "no line 'w'|unknown text"),
        (("nr_feature 2", "nr_feature 200000000"), "the header announces 200000001 lines of weights, but 3 follow"),
        (("nr_feature 2", "nr_feature -3"), "lines of weights"),
        (("nr_class 2", "nr_class 3"), "label must have 3 values, not 2"),
        (("nr_class 2", "nr_class 1"), "must be at least 2"),
        (("label 1 -1\n", ""), "the header has no label"),
        (("label 1 -1", "label 1 1"), "occurs twice"),
        (("solver_type L2R_L2LOSS_SVC_DUAL", "solver_type MAGIC"), "'MAGIC' is none of"),
        (("bias 0.5", "bias nan"), "not a finite number"),
        (("bias 0.5\n", ""), "the header has no bias"),
        (("bias 0.5", "bias 0.5\nrho 1"), "rho cannot occur"),
        (("0.25 ", "0.25 1 "), ":7: expected 1 weights, found 2"),
        (("0.25 ", "x "), ":7: 'x' is not a finite number"),
        (("2 \n", ""), "announces"),
    ],
)
def test_malformed_liblinear_models(change, message):
    assert change[0] in LINEAR
    changed = LINEAR[: LINEAR.rindex(change[0])] + change[1] if change[0] == "2 \n" else LINEAR.replace(*change)
    with pytest.raises(ModelFormatError, match=message):
        parse_liblinear_model(changed.encode(), "m")


def test_svmlight_by_hand():
    model = parse_svmlight_model(LIGHT.encode())
    X, _ = make_classification(20, 3, n_informative=3, n_redundant=0, random_state=0)
    vectors, coefficients = np.array([[1.0, 0, 0], [0, 2, -1], [0, 0, 0]]), [-0.5, 0.75, -0.25]
    K = np.exp(-0.5 * ((X[:, None] - vectors[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(model.function(3)(X)[:, 0], K @ coefficients - 0.25, rtol=1e-12)
    assert model.label == (1, -1)
    assert model.nr_sv == (1, 2)


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        (0, lambda t: t),
        (1, lambda t: (2.0 * t + 0.5) ** 3),
        (3, lambda t: np.tanh(2.0 * t + 0.5)),
    ],
)
def test_svmlight_kernels(kind, formula):
    text = LIGHT.replace("2 # kernel type", f"{kind} # kernel type")
    text = text.replace("1 # kernel parameter -s", "2 # kernel parameter -s")
    model = parse_svmlight_model(text.replace("1 # kernel parameter -r", "0.5 # kernel parameter -r").encode())
    X = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 0.0]])
    vectors = np.array([[1.0, 0, 0], [0, 2, -1], [0, 0, 0]])
    expected = formula(X @ vectors.T) @ [-0.5, 0.75, -0.25] - 0.25
    np.testing.assert_allclose(model.function(3)(X)[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("SVM-light", "svm"), "does not begin with"),
        (("2 # kernel type", "4 # kernel type"), "kernel type 4 is unknown"),
        (("4 # number of support", "9 # number of support"), "says 8 support vectors, but 3 lines follow"),
        (("0.5 # kernel parameter -g", "-1 # kernel parameter -g"), "must not be negative"),
        (("2:2 3:-1", "3:-1 2:2"), ":13: indices must ascend"),
        (("0.75 2:2", "nan 2:2"), ":13: 'nan' is not a finite number"),
        (("# highest feature index", "# lowest"), ":8: expected a value and '# highest feature index'"),
    ],
)
def test_malformed_svmlight_models(change, message):
    assert change[0] in LIGHT
    with pytest.raises(ModelFormatError, match=message):
        parse_svmlight_model(LIGHT.replace(*change).encode(), "m")


@pytest.mark.parametrize(("text", "parse"), [(LINEAR, parse_liblinear_model), (LIGHT, parse_svmlight_model)])
def test_truncated_and_mutated_files_never_crash(text, parse):
    rng = random.Random(0)
    contents = [text[:n].encode() for n in range(len(text))]
    for _ in range(2000):
        content = bytearray(text.encode())
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(content))
            content[at : at + rng.randint(0, 2)] = rng.choice(
                [b"", b"nan", b"-", b"1e999", b"99999999999", b"\n", b" ", b":", bytes([rng.randrange(256)])]
            )
        contents.append(bytes(content))
    sound = 0
    for content in contents:
        try:
            model = parse(content)
        except ModelFormatError:
            continue
        sound += 1
        assert np.isfinite(model.weights if parse is parse_liblinear_model else model.coefficients).all()
    assert 10 < sound < len(contents)
