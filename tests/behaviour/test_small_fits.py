"""What a small fit costs is mostly Python: the functions that it calls are counted, which no busy machine disturbs.

The budgets are a fifth above the counts at which a fit of 100 rows takes 0.8 to 1.3 times as long as scikit-learn's,
and predicting one row half as long.
"""

import sys

import numpy as np
import pytest

import mercer

X = np.random.default_rng(0).normal(size=(100, 5))
Y = (X[:, 0] > 0).astype(int)


def calls_of(work):
    """How many Python functions are called, the second time."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event == "call"

    work()
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(
    ("model", "fit_budget", "predict_budget"),
    [
        (mercer.SVC(), 670, 120),
        (mercer.NuSVC(nu=0.2), 830, 120),
        (mercer.SVR(), 610, 95),
        (mercer.NuSVR(), 620, 95),
        (mercer.OneClassSVM(), 600, 95),
        (mercer.SVDD(), 615, 125),
        (mercer.LinearSVC(), 1060, 85),
        (mercer.RLSRegressor(), 665, 95),
    ],
    ids=lambda part: type(part).__name__,
)
def test_a_small_fit_calls_few_functions(model, fit_budget, predict_budget):
    assert calls_of(lambda: model.fit(X, Y)) <= fit_budget
    assert calls_of(lambda: model.predict(X[:1])) <= predict_budget


def test_several_classes_cost_little_more_than_two():
    assert calls_of(lambda: mercer.SVC().fit(X, Y + (X[:, 1] > 0))) <= 800
