"""Targets of a size that C and ε do not match: the fit says so, and what to do; elsewhere it is silent."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import r2_score

from mercer import SVR, LinearSVR, NuSVR, QuantileSVR

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4))
Y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=300)
BOUNDED = r"samples end at their bound.* Standardise y .*or use "


def silent(machine, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return clone(machine).fit(X, y)


@pytest.mark.parametrize(
    "machine",
    [SVR(), SVR(kernel="linear"), SVR(theta=0.01), NuSVR(), QuantileSVR(quantiles=0.3), LinearSVR(epsilon=0.1)],
    ids=lambda machine: str(machine),
)
def test_prices_in_the_thousands_get_a_word_and_standardised_ones_none(machine):
    silent(machine, X, Y / Y.std())
    with pytest.warns(UserWarning, match=BOUNDED) as told:
        model = clone(machine).fit(X, 2e5 + 8e4 * Y)
    assert told[0].filename == __file__
    if not isinstance(machine, QuantileSVR):
        assert r2_score(2e5 + 8e4 * Y, model.predict(X)) < 0.2


@pytest.mark.parametrize("machine", [SVR(), NuSVR(), SVR(theta=0.01), LinearSVR(epsilon=0.1)], ids=str)
def test_the_remedy_it_names_works(machine):
    y = 2e5 + 8e4 * Y
    with pytest.warns(UserWarning, match=BOUNDED) as told:
        clone(machine).fit(X, y)
    named = dict(re.findall(r"(C|epsilon|theta)=([\d.e+-]+)", str(told[0].message)))
    mended = silent(clone(machine).set_params(**{name: float(value) for name, value in named.items()}), X, y)
    assert r2_score(y, mended.predict(X)) > 0.85


def test_all_and_most_samples_are_told_apart():
    with pytest.warns(UserWarning, match=r"all 300 samples"):
        SVR(bias=False).fit(X, 1e6 * (1 + Y))
    with pytest.warns(UserWarning, match=r"1\d\d of 300 samples"):
        NuSVR().fit(X, 1e6 * Y)


def test_rows_that_are_sparse_or_repeated_or_weighted_too():
    with pytest.warns(UserWarning, match=BOUNDED):
        SVR().fit(sp.csr_matrix(X), 1e6 * Y)
    with pytest.warns(UserWarning, match=BOUNDED):
        SVR().fit(np.repeat(X, 2, axis=0), 1e6 * np.repeat(Y, 2), sample_weight=np.tile([1.0, 3.0], 300))


@pytest.mark.parametrize(
    ("machine", "y"),
    [
        (SVR(C=1e-3), Y),  # strong regularisation, asked for
        (SVR(epsilon=5.0), Y),
        (SVR(C=1e6), 8e4 * Y),
        (LinearSVR(), Y),  # ε = 0: all but a few samples are at their bound, and that is median regression
        (LinearSVR(C=100.0), rng.normal(size=300)),
        (QuantileSVR(quantiles=0.9), Y),
        (SVR(), np.full(300, 7e5)),  # nothing to follow
        (SVR(), np.where(np.arange(300) < 3, 1e6, Y)),  # outliers
        (SVR(loss="squared_epsilon_insensitive"), 8e4 * Y),  # no bound
    ],
    ids=[str(k) for k in range(9)],
)
def test_silence_where_nothing_is_wrong(machine, y):
    silent(machine, X, y)


def test_silence_on_a_handful_of_rows():
    silent(SVR(), X[:10], 8e4 * Y[:10])


def test_a_tube_that_holds_all_of_y_gets_a_word():
    with pytest.warns(UserWarning, match=r"all of y lies inside the tube of epsilon=0.1, so f is constant") as told:
        SVR().fit(X, 1e-3 * Y)
    named = dict(re.findall(r"(C|epsilon)=([\d.e+-]+)", str(told[0].message).partition("or use")[2]))
    model = silent(SVR(**{name: float(value) for name, value in named.items()}), X, 1e-3 * Y)
    assert r2_score(1e-3 * Y, model.predict(X)) > 0.85
