"""Attempts to prove false what is said of the fits inside `tune` and `calibrate`: C to 10⁶, few features, copies.

About 240 fits of folds by default, 12,000 with `-m thorough`.
"""

import pytest

from claims.fold_claims import CALIBRATED, SEARCHED, Counts, check, draw, fits_of_calibration, fits_of_search
from reference.decimals import hundred_digits

FEW = range(2, 4)
MANY = [pytest.param(range(1000 + 25 * k, 1025 + 25 * k), marks=pytest.mark.thorough) for k in range(4)]


@pytest.mark.parametrize("seeds", [FEW, *MANY], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
@pytest.mark.parametrize("kind", SEARCHED)
def test_no_claim_of_a_search_is_false(kind, seeds):
    counts = Counts()
    with hundred_digits():
        for seed in seeds:
            drawn = draw(kind, seed)
            check(drawn, fits_of_search(drawn), counts)
    assert not counts.broken, "\n".join(counts.broken)
    assert counts["fits"] >= 5 * len(seeds)
    assert counts["sharp"] >= 0.7 * counts["fits"]


@pytest.mark.parametrize("seeds", [FEW, *MANY], ids=lambda seeds: f"{seeds[0]}-{seeds[-1]}")
@pytest.mark.parametrize("kind", CALIBRATED)
def test_no_claim_of_a_calibration_is_false(kind, seeds):
    counts = Counts()
    with hundred_digits():
        for seed in seeds:
            drawn = draw(kind, seed, grid=False)
            check(drawn, fits_of_calibration(drawn, counts), counts)
    assert not counts.broken, "\n".join(counts.broken)
    assert counts["fits"] + counts["folds of refits"] >= 3 * len(seeds)
    assert counts["folds of refits"] < counts["folds"]


@pytest.mark.parametrize("kind", ["SVC", "SVC of three classes", "SVR", "OneClassSVM"])
def test_fits_of_a_search_that_ends_early_claim_no_more(kind):
    counts = Counts()
    with hundred_digits():
        for seed in range(50, 53):
            drawn = draw(kind, seed)
            drawn.machine.set_params(max_time=1e-4, max_iter=100)
            check(drawn, fits_of_search(drawn, max_time=0.1), counts)
    assert not counts.broken, "\n".join(counts.broken)
    assert counts["fits"] > counts["converged"]


@pytest.mark.parametrize(("kind", "seed"), [("SVC against the rest", 245), ("SVC of three classes", 263)])
def test_a_fit_that_stored_values_do_not_settle_goes_to_the_solver_of_the_machine(kind, seed):
    """Steps on stored values stall at C = 10⁶, at five and a hundred times tol."""
    drawn = draw(kind, seed)
    fits = list(fits_of_search(drawn))
    assert fits
    assert all(fit.ended == "converged" and fit.certificate.violation <= drawn.machine.tol for fit in fits)
