"""Values stay bounds where sums drift: equal terms that are added one after another, against fractions."""

from fractions import Fraction

import numpy as np

from mercer import RLSRegressor


def test_values_of_several_outputs_are_bounds():
    """Sums over the rows of a table with two columns err by n roundings, not by log n."""
    n, target = 8_000, 0.1
    X = 1e-9 * np.linspace(-1, 1, n)[:, None]
    model = RLSRegressor(lam=1.0, bias=False, kernel="linear").fit(X, np.full((n, 2), target))
    for w, part in zip(model.coef_[:, 0].tolist(), model.certificate_.parts, strict=True):
        squares = sum((Fraction(target) - Fraction(w) * Fraction(x)) ** 2 for x in X[:, 0].tolist())
        value = (Fraction(w) ** 2 + squares) / 2
        assert Fraction(part.primal) >= value
        assert Fraction(part.dual) <= value
