"""The bounds on exact optima are true: compared with exact solves, dense grids of C and brute force over b."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from sklearn.model_selection import KFold

import mercer
from mercer import SVC
from mercer.kernels import Gaussian
from mercer.model_selection.search_gap import FoldFunctions, _accuracy_bound, count_surely_wrong, surely_wrong_by_range


def data(n: int = 60, seed: int = 0):  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (X[:, 0] + 0.6 * rng.normal(size=n) > 0).astype(int)


def functions_at(model: SVC, X, new, beta, gap: float) -> FoldFunctions:  # type: ignore[no-untyped-def]
    values = Gaussian(0.5)(new, X) @ beta
    norm = float(np.sqrt(beta @ Gaussian(0.5)(X, X) @ beta))
    return FoldFunctions(model.C, values, np.zeros(len(new)), np.ones(len(new)), norm, gap)


def fitted(C: float, tol: float, X, y):  # type: ignore[no-untyped-def]
    model = SVC(C=C, gamma=0.5, tol=tol).fit(X, y)
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    return model, beta


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("tol", [0.5, 0.1, 1e-3])
def test_the_exact_optimum_lies_in_the_ball(seed: int, tol: float) -> None:
    X, y = data(seed=seed)
    K = Gaussian(0.5)(X, X)
    model, beta = fitted(3.0, tol, X, y)
    _, exact = fitted(3.0, 1e-10, X, y)
    off = float(np.sqrt((beta - exact) @ K @ (beta - exact)))
    assert off <= np.sqrt(model.certificate_.gap) * (1 + 1e-9) + 1e-7


@pytest.mark.parametrize("seed", range(4))
def test_optima_at_other_C_lie_between_the_bounds(seed: int) -> None:
    X, y = data(seed=seed)
    new = data(40, seed + 10)[0]
    model, beta = fitted(2.0, 0.05, X, y)
    known = functions_at(model, X, new, beta, model.certificate_.gap)
    for C in np.geomspace(1.0, 4.0, 9):
        low, high = known.bounds(C, C)
        _, exact = fitted(float(C), 1e-9, X, y)
        values = Gaussian(0.5)(new, X) @ exact
        assert (values >= low - 1e-6).all()
        assert (values <= high + 1e-6).all()
    wide = known.bounds(1.0, 4.0)
    assert (wide[0] <= low).all()


def test_the_bounds_say_something() -> None:
    X, y = data()
    model, beta = fitted(1.0, 1e-6, X, y)
    low, high = functions_at(model, X, X, beta, model.certificate_.gap).bounds(1.0, 1.02)
    assert np.max(high - low) < 0.2


@pytest.mark.parametrize("seed", range(20))
def test_surely_wrong_is_the_accuracy_bound_b(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    centre, width = np.round(rng.normal(size=n), 1), np.round(rng.uniform(0, 0.5, size=n), 1)
    positive = rng.random(n) < 0.5
    low, high = centre - width, centre + width
    tried = np.concatenate([[-1e9, 1e9], -low, -high, -low - 1e-6, -high + 1e-6, -low + 1e-6, -high - 1e-6])
    counts = [((high + b < 0) & positive).sum() + ((low + b >= 0) & ~positive).sum() for b in tried]
    assert count_surely_wrong(low, high, positive, free_bias=True) == min(counts)
    plain = int(((high < 0) & positive).sum() + ((low >= 0) & ~positive).sum())
    assert count_surely_wrong(low, high, positive, free_bias=False) == plain


@pytest.mark.parametrize("bias", [True, False])
def test_no_price_in_the_range_beats_the_search_gap(bias: bool) -> None:
    """Every C of a dense grid, solved exactly, scores at most best_score_ + search_gap_; and the bound is not empty."""
    X, y = data(120)
    splits = list(KFold(4, shuffle=True, random_state=0).split(X))
    machine = SVC(gamma=0.5, bias=bias, tol=1e-6)
    grid = {"C": np.geomspace(0.5, 0.55, 4)}
    found = mercer.tune(machine, X, y, grid=grid, cv=splits, skip=False, refit=False)
    assert found.search_gap_ is not None
    assert found.search_gap_ < 1 - found.best_score_
    for C in np.geomspace(0.5, 0.55, 15):
        model = SVC(C=C, gamma=0.5, bias=bias, tol=1e-8)
        score = np.mean([model.fit(X[a], y[a]).score(X[b], y[b]) for a, b in splits])
        assert score <= found.best_score_ + found.search_gap_ + 1e-12


def test_a_range_of_all_C_counts_what_every_price_in_it_gets_wrong() -> None:
    X, y = data(80, 3)
    new, labels = data(60, 4)
    known = []
    for C in (1.0, 1.1):
        model, beta = fitted(C, 1e-7, X, y)
        known.append(functions_at(model, X, new, beta, model.certificate_.gap))
    pieces = surely_wrong_by_range(known, labels == 1, free_bias=True)
    assert max(wrong for _, _, wrong in pieces) > 0
    for low, high, wrong in pieces:
        model, _ = fitted(float(np.sqrt(low * high)), 1e-8, X, y)
        assert wrong <= (model.predict(new) != labels).sum()


def test_between_all_C_that_no_fold_has_side_by_side_nothing_is_ruled_out() -> None:
    assert _accuracy_bound({(1.0, 2.0): 0.25, (2.0, 3.0): 0.125}, [1.0, 2.0, 3.0]) == pytest.approx(0.875)
    assert _accuracy_bound({(2.0, 3.0): 0.25}, [1.0, 2.0, 3.0]) == 1.0
    assert _accuracy_bound({(1.0, 2.0): 0.25, (8.0, 9.0): 0.25}, [1.0, 2.0, 8.0, 9.0]) == 1.0
    assert _accuracy_bound({}, [1.0, 2.0]) == 1.0


@pytest.mark.parametrize("seed", range(20))
def test_the_accuracy_bound_a_range_is_that_of_its_all_C_one_by_one(seed: int) -> None:
    """Folds that skipped some C have wider ranges: at each C the shares of all ranges around it count."""
    rng = np.random.default_rng(seed)
    all_C = np.unique(rng.integers(1, 40, size=rng.integers(2, 7)) / 4.0)
    all_C = np.append(all_C, all_C[-1] + 1.0)
    shares: dict[tuple[float, float], float] = {}
    for _ in range(3):
        tried = all_C[rng.random(len(all_C)) < 0.7]
        for low, high in pairwise(tried.tolist()):
            shares[low, high] = shares.get((low, high), 0.0) + float(rng.integers(0, 5)) / 16
    least = min(
        sum(share for (low, high), share in shares.items() if low < C < high)
        for C in np.arange(all_C[0], all_C[-1], 1 / 32)[1:]
        if C not in all_C
    )
    assert _accuracy_bound(shares, all_C.tolist()) == pytest.approx(1.0 - least)


def test_a_kernel_with_one_price_takes_nothing_from_the_bound() -> None:
    """Of a single C nothing between two is claimed; the other kernel's range stays bounded."""
    X, y = data(70, 5)
    grid = [{"C": np.geomspace(1, 1.2, 6).tolist(), "gamma": [0.1]}, {"C": [1.0], "gamma": [0.3]}]
    both = mercer.tune(mercer.SVC(), X, y, grid=grid, cv=4, skip=False, refit=False)
    alone = mercer.tune(mercer.SVC(), X, y, grid=grid[0], cv=4, skip=False, refit=False)
    top = alone.best_score_ + alone.search_gap_
    assert both.search_gap_ == pytest.approx(max(0.0, top - both.best_score_), abs=1e-12)
    assert np.isfinite(both.search_gap_)


def test_all_C_of_different_names_are_not_neighbours() -> None:
    """C = 1 and theta = 1 are different penalties: each kind has its own range."""
    X, y = data()
    grid = [{"C": [1.0, 1.1]}, {"theta": [0.01, 0.011]}]
    found = mercer.tune(SVC(gamma=0.5, tol=1e-8), X, y, grid=grid, refit=False, skip=False)
    apart = [mercer.tune(SVC(gamma=0.5, tol=1e-8), X, y, grid=one, refit=False, skip=False) for one in grid]
    most = max(one.best_score_ + one.search_gap_ for one in apart)
    assert found.best_score_ + found.search_gap_ == pytest.approx(most)


def test_why_there_is_no_search_gap() -> None:
    X, y = data()
    several = mercer.tune(SVC(gamma=0.5), X, y + (X[:, 1] > 1), grid={"C": [1.0, 2.0]}, refit=False)
    assert several.search_gap_ is None
    assert "two classes" in several.search_gap_reason_
    other = mercer.tune(SVC(gamma=0.5), X, y, grid={"C": [1.0, 2.0]}, scoring="roc_auc", refit=False)
    assert "a bound only for the accuracy" in other.search_gap_reason_
    none = mercer.tune(SVC(gamma=0.5), X, y, grid={"gamma": [1.0, 2.0]}, refit=False)
    assert "no C" in none.search_gap_reason_
