"""`primal` of least squares is an upper bound, also where there is no λ and so no dual."""

import numpy as np
import pytest

from mercer import RLSRegressor


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("seed", range(6))
def test_half_the_risk_of_an_interpolant_is_at_most_primal(kernel, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 3))
    if seed % 2:
        X = X[rng.integers(0, 40, 40)]  # rows that repeat
    t = X @ [1.0, 2.0, 3.0] + rng.normal(size=40) * 10.0 ** (seed - 3)
    weight = rng.uniform(0.1, 3, 40)
    model = RLSRegressor(0.0, kernel=kernel, gamma=0.5, bias=seed > 2).fit(X, t, sample_weight=weight)
    wide = X.astype(np.longdouble)
    if kernel == "linear":
        f = wide @ model.coef_
    else:
        squares = ((wide[:, None] - model.function_.vectors[None]) ** 2).sum(axis=2)
        f = np.exp(-squares / 2) @ np.ravel(model.function_.coefficients)
    risk = weight @ (t - f - np.ravel(model.intercept_)[0]) ** 2 / 2
    assert risk <= model.certificate_.primal <= risk * (1 + 1e-6) + 1e-9
