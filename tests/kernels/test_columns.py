"""Kernels of some columns, of categories and of mixed tables."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import SVC, SVR
from mercer.kernels import Categorical, Gaussian, Gower, Laplacian, Linear, Polynomial, Spectrum
from mercer.places.host.source import value_error
from mercer.samples.arrays import PickedRows
from reference import kernels as naive
from reference.shapley import by_all_subsets

rng = np.random.default_rng(2)
TABLE = np.column_stack([rng.random((40, 2)), rng.integers(0, 3, 40), rng.integers(0, 2, 40)])
MIXED = Gaussian(gamma=2.0).on([0, 1]) * Categorical("data").on([2, 3]) + 0.5 * Linear().on([1])


@pytest.mark.parametrize("made", [np.asarray, sp.csr_array, np.asfortranarray, np.float32])
def test_on_columns_is_the_kernel_of_these_columns(made):
    X = made(TABLE)
    for kernel in (Gaussian(gamma=2.0), Laplacian(gamma=0.3), Polynomial(2, 0.5, 1.0), Categorical()):
        expected = kernel(TABLE.astype(np.float32)[:, [3, 0]] if made is np.float32 else TABLE[:, [3, 0]])
        np.testing.assert_allclose(kernel.on([3, 0])(X), expected, rtol=1e-12)
        np.testing.assert_allclose(kernel.on([3, 0]).diag(X), expected.diagonal(), rtol=1e-12)


def test_rules_see_these_columns_only():
    expected = Gaussian().bind(TABLE[:, 1:2]).gamma  # of the same numbers in another layout, so in another order
    assert Gaussian().on([1]).bind(TABLE).kernel.gamma == pytest.approx(expected, rel=1e-14)
    assert value_error(Gaussian(gamma=1.0).on([0]), TABLE) < value_error(Gaussian(gamma=1.0), TABLE)


def test_text_and_parameters():
    assert repr(MIXED) == (
        "Gaussian(gamma=2.0).on([0, 1]) * Categorical(frequencies='data').on([2, 3]) + 0.5 * Linear().on([1])"
    )
    assert repr(clone(MIXED).set_params(left__left__kernel__gamma=3.0).left.left) == "Gaussian(gamma=3.0).on([0, 1])"
    search = GridSearchCV(SVC(kernel=Gaussian().on([0])), {"kernel__columns": [[0], [0, 1]]}, cv=2)
    search.fit(TABLE, TABLE[:, 1] > 0.5)
    assert search.best_params_ == {"kernel__columns": [0, 1]}


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Linear().on([]), ValueError, "is empty"),
        (lambda: Linear().on([0, 0]), ValueError, "different columns, counted from 0"),
        (lambda: Linear().on([-1]), ValueError, "different columns, counted from 0"),
        (lambda: Linear().on(["age"]), ValueError, "get_indexer"),
        (lambda: Linear().on(1), ValueError, "list of different columns"),
        (lambda: Spectrum().on([0]), TypeError, "compares sequences, which have no columns"),
        (lambda: Linear().on([4])(TABLE), ValueError, "compares column 4, but the samples have 4 columns, 0 to 3"),
        (lambda: Gower([7])(TABLE), ValueError, "names column 7, but there are 4"),
        (lambda: Gower(gamma=-1.0), ValueError, "gamma=-1.0"),
        (lambda: Categorical("mean"), ValueError, "must be None, 'data', or for each column a dictionary"),
        (lambda: Categorical([{0: 2.0}]), ValueError, "between 0 and 1"),
        (lambda: Categorical("data")(TABLE), ValueError, "use kernel.bind"),
        (lambda: Categorical([{0: 0.5}])(TABLE), ValueError, "frequencies for 1 columns, but the samples"),
    ],
)
def test_what_cannot_be(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_categories():
    codes = TABLE[:, 2:]
    np.testing.assert_allclose(Categorical()(codes), naive.matrix(naive.overlap, codes, codes), rtol=1e-15)
    shares = [{value: float(np.mean(column == value)) for value in np.unique(column)} for column in codes.T]
    new = np.array([[5.0, 1.0], [0.0, 9.0]])  # categories that were not there before
    kernel = Categorical("data").bind(codes)
    np.testing.assert_allclose(kernel(new, codes), naive.matrix(naive.overlap, new, codes, shares=shares), rtol=1e-14)
    np.testing.assert_allclose(kernel(new), naive.matrix(naive.overlap, new, new, shares=shares), rtol=1e-14)
    np.testing.assert_allclose(kernel(sp.csr_array(new), sp.csr_array(codes)), kernel(new, codes), rtol=1e-15)
    twice = Categorical("data").bind(codes[:3], [2.0, 1.0, 1.0])
    again = Categorical("data").bind(codes[[0, 0, 1, 2]])
    np.testing.assert_allclose(twice(codes), again(codes), rtol=1e-14)


def test_gower_is_a_product_over_the_columns():
    kernel = Gower([2, 3], gamma=1.5)
    expected = naive.matrix(naive.gower, TABLE, TABLE, categorical=[2, 3], gamma=1.5)
    np.testing.assert_allclose(kernel(TABLE), expected, rtol=1e-14)
    overlap = (0.75 * Categorical()).exp().normalised()  # γ/4 for each of two columns
    product = Laplacian(gamma=1.5 / 4).on([0, 1]) * overlap.on([2, 3])
    np.testing.assert_allclose(product(TABLE), expected, rtol=1e-13)


@pytest.mark.parametrize("kernel", [MIXED, Gower([2, 3])], ids=repr)
def test_machines_and_files(kernel, tmp_path):
    y = np.where(TABLE[:, 2] == 1, TABLE[:, 0], 1 - TABLE[:, 0]) > 0.5
    model = SVC(kernel=kernel, C=10.0).fit(TABLE, y)
    assert model.certificate_.proves == "optimality"
    assert model.certificate_.violation < 1e-3
    assert model.score(TABLE, y) > 0.9
    mercer.save(model, tmp_path / "mixed.mercer")
    loaded = mercer.load(tmp_path / "mixed.mercer")
    assert repr(loaded.kernel_) == repr(model.kernel_)
    np.testing.assert_array_equal(loaded.decision_function(TABLE), model.decision_function(TABLE))


@pytest.mark.parametrize(
    "kernel",
    [
        Gaussian(gamma=0.5).on([0, 2]) * Laplacian(gamma=0.3).on([1]),
        Gaussian(gamma=0.5).on([2]) + 0.3 * Linear().on([0, 1]),
        Gaussian(gamma=0.5).on([0]) + Polynomial(2, 0.5, 1.0).on([1, 2]),
        mercer.kernels.ANOVA(order=2, gamma=0.4),
        Gower(gamma=2.0),
    ],
    ids=repr,
)
def test_shapley_values(kernel):
    X = rng.normal(size=(30, 3))
    model = SVR(kernel=kernel, C=5.0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    found = model.explain(X[:4], background=X[20:])
    expected = [by_all_subsets(model.predict, x, X[20:])[0].ravel() for x in X[:4]]
    np.testing.assert_allclose(found.values, expected, rtol=1e-9, atol=1e-10)
    curve = model.partial_dependence(X, 1, grid=[0.0, 0.5])
    moved = [np.mean(model.predict(np.column_stack([X[:, 0], np.full(30, v), X[:, 2]]))) for v in (0.0, 0.5)]
    np.testing.assert_allclose(np.ravel(curve.average), moved, rtol=1e-9)


def test_what_has_no_shapley_values():
    X = rng.normal(size=(30, 3))
    model = SVR(kernel=Gaussian(gamma=0.5).on([0]) * Linear().on([1, 2])).fit(X, X[:, 0])
    with pytest.raises(ValueError, match="no sum of products over the features"):
        model.explain(X[:2], background=X)


def test_rows_that_are_only_picked():
    X, order = rng.normal(size=(50, 4)), rng.permutation(50)
    kernel = Gaussian().on([0, 3])
    picked = kernel.bind(PickedRows(X, order, 1))
    assert picked.kernel.gamma == pytest.approx(Gaussian().bind(X[:, [0, 3]]).gamma, rel=1e-12)


def test_samples_of_different_widths_are_not_compared():
    with pytest.raises(ValueError, match="samples with 2 features cannot be compared with samples with 3 features"):
        Gaussian(gamma=1.0).on([0])(np.ones((4, 2)), np.ones((5, 3)))


@pytest.mark.parametrize("width", [1, 2, 3])
def test_matches_of_rare_categories_count_more(width):
    """Category 0 has three of four rows: a match counts for 1/4, one of category 1 for 3/4, in the mean of columns."""
    X = np.repeat([[0.0], [0.0], [1.0], [0.0]], width, axis=1)
    kernel = Categorical("data").bind(X)
    np.testing.assert_allclose(kernel.diag(X), [0.25, 0.25, 0.75, 0.25], rtol=1e-15)
    np.testing.assert_allclose(kernel(X)[2], [0.0, 0.0, 0.75, 0.0], rtol=1e-15)
