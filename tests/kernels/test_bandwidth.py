"""gamma = "scale", "auto" and "median": as documented, weighted, at offsets, and on constant data."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import pdist
from sklearn.svm import SVC

from mercer.kernels import Gaussian, Laplacian
from mercer.kernels.bandwidth import gamma_from

rng = np.random.default_rng(5)
X = rng.normal(size=(60, 5)) * (rng.random((60, 5)) > 0.5) + np.array([2.0, 0.0, 0.0, 0.0, 0.0])
FORMS = [np.asarray, np.asfortranarray, sp.csr_matrix, sp.csr_array]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scale_is_scikit_learns(form, dtype):
    data = X.astype(dtype)
    expected = 1 / (5 * data.astype(np.float64).var())
    assert gamma_from("scale", form(data)) == pytest.approx(expected, rel=1e-13)
    assert SVC().fit(data, np.arange(60) % 2)._gamma == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_auto(form):
    assert gamma_from("auto", form(X)) == 0.2
    assert Gaussian("auto").bind(form(X)).gamma == 0.2


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rule", ["scale", "auto", "median"])
def test_a_weight_is_a_repetition(form, rule):
    weight = np.random.default_rng(8).integers(0, 4, 60)  # half of the pairs' weight lies below one distance
    repeated = np.repeat(X, weight, axis=0)
    assert gamma_from(rule, form(X), weight) == pytest.approx(gamma_from(rule, form(repeated)), rel=1e-12)
    assert gamma_from(rule, form(X), 1e300 * weight) == pytest.approx(gamma_from(rule, form(repeated)), rel=1e-12)
    assert gamma_from(rule, form(X), np.ones(60)) == pytest.approx(gamma_from(rule, form(X)), rel=1e-14)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("offset", [1e8, -1e8, 1e4])
def test_offsets(form, offset):
    data = offset + 1e-3 * X
    expected = 1 / (5 * (data - offset).var())
    assert gamma_from("scale", form(data)) == pytest.approx(expected, rel=1e-6)
    exact = pdist(data - offset)
    assert gamma_from("median", form(data)) == pytest.approx(0.5 / np.median(exact[exact > 0]) ** 2, rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("value", [0.0, 0.1, 0.3, 0.7, 1.3, 1e8, 1e-8, -1 / 3, 1e-310])
@pytest.mark.parametrize("rule", ["scale", "median"])
def test_constant_data(form, value, rule):
    for dtype in (np.float64, np.float32):
        data = form(np.full((50, 7), value, dtype=dtype))
        with pytest.warns(UserWarning, match=rf"gamma='{rule}' is undefined because X is constant.*gamma=1.0"):
            assert gamma_from(rule, data) == 1.0


def test_many_constants_are_all_recognised():
    for value in rng.normal(size=300):
        with pytest.warns(UserWarning, match="constant"):
            assert gamma_from("scale", sp.csr_matrix(np.full((37, 3), value)), rng.random(37)) == 1.0


@pytest.mark.filterwarnings("error")
def test_nearly_constant_data_are_not_constant():
    data = np.full((50, 7), 0.3)
    data[0, 0] += 1e-9
    assert gamma_from("scale", data) == pytest.approx(1 / (7 * (data - 0.3).var()), rel=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_median_of_the_distances(form):
    few = X[:40]
    distances = pdist(few)
    expected = 0.5 / np.median(distances[distances > 0]) ** 2
    assert gamma_from("median", form(few)) == pytest.approx(expected, rel=1e-12)
    taxi = pdist(few, "cityblock")
    assert Laplacian("median").bind(form(few)).gamma == pytest.approx(1 / np.median(taxi[taxi > 0]), rel=1e-12)


@pytest.mark.parametrize("rule", ["scale", "median"])
@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_the_unit_of_weights_does_not_matter(rule, unit):
    weight = 1.0 + np.arange(len(X)) % 3
    assert gamma_from(rule, X, unit * weight) == pytest.approx(gamma_from(rule, X, weight), rel=1e-12)


def test_median_takes_a_thousand_rows_in_equal_steps():
    many = rng.normal(size=(3001, 2))
    rows = np.linspace(0, 3000, 1000).round().astype(int)
    assert gamma_from("median", many) == gamma_from("median", many[rows])


def test_bind_replaces_the_rule_and_keeps_the_rest():
    kernel = Gaussian()
    bound = kernel.bind(X)
    assert kernel.gamma == "scale"
    assert type(bound.gamma) is float
    assert bound.gamma == gamma_from("scale", X)
    assert bound.bind(10 * X) is bound
    assert Gaussian(sigma=1.0).bind(X).sigma == 1.0


def test_scale_that_overflows_says_so():
    for data in (1e200 * X, np.array([[1.7e308, 1.7e308], [1.7e308, -1.7e308]])):
        with pytest.raises(ValueError, match="exceeds float64"):
            gamma_from("scale", data)


def test_what_cannot_be_computed():
    with pytest.raises(ValueError, match="no entries"):
        gamma_from("scale", np.empty((0, 3)))
    with pytest.raises(ValueError, match="no entries"):
        gamma_from("auto", np.empty((3, 0)))
    for weight in (np.ones(3), np.zeros(60), np.ones((60, 1))):
        with pytest.raises(ValueError, match="60 numbers ≥ 0"):
            gamma_from("scale", X, weight)


def test_single_sample():
    assert gamma_from("scale", np.array([[1.0, 3.0]])) == 0.5
    with pytest.warns(UserWarning, match="all its rows are equal"):
        assert gamma_from("median", np.array([[1.0, 3.0]])) == 1.0


def test_a_float32_input_is_not_copied_as_a_whole():
    data = np.ones((200_000, 20), dtype=np.float32)
    data[::2] = 2.0
    sparse = sp.csr_matrix(data)
    kernel = Gaussian()
    for given in (data, sparse):
        tracemalloc.start()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel.bind(given)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 0.8 * data.nbytes
