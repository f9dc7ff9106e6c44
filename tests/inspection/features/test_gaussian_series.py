"""GaussianSeries: its columns in one dimension written out, and the remainder of Taylor's series.

scikit-learn's checks, errors and sparse samples: tests/inspection/features/test_features.py. Tools: tests/tools.
Files: tests/files/mercer_file/test_feature_maps.py. Failed fits change nothing: tests/behaviour/test_whole_fits.py.
"""

import math

import numpy as np
import pytest

from mercer.inspection.features import GaussianSeries, gaussian
from mercer.kernels import Gaussian

X = np.linspace(-1.5, 1.5, 9)[:, None]


def test_the_columns_in_one_dimension():
    """√((2γ)^j/j!) x^j exp(−γx²) for j = 0, 1, …"""
    F = GaussianSeries(Gaussian(gamma=0.7), n_terms=6).fit(X).transform(X)
    columns = [np.sqrt(1.4**j / math.factorial(j)) * X[:, 0] ** j * np.exp(-0.7 * X[:, 0] ** 2) for j in range(6)]
    np.testing.assert_allclose(F, np.column_stack(columns), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("d", "terms"), [(2, 5), (3, 4)])
def test_the_limit_counts_the_columns(d, terms, monkeypatch):
    rows, series = np.zeros((1, d)), GaussianSeries(Gaussian(gamma=0.7), n_terms=terms)
    columns = series.fit(rows).transform(rows).shape[1]
    monkeypatch.setattr(gaussian, "MOST_COLUMNS", columns)
    series.fit(rows)
    monkeypatch.setattr(gaussian, "MOST_COLUMNS", columns - 1)
    with pytest.raises(ValueError, match=f"{columns} monomials of {d} features are too many"):
        series.fit(rows)


@pytest.mark.parametrize("terms", [3, 8, 15])
def test_the_error_is_below_the_remainder(terms):
    """|eᵗ − Σ_{j<n} tʲ/j!| ≤ e^|t| |t|ⁿ/n! with t = 2γxz."""
    F = GaussianSeries(Gaussian(gamma=0.7), n_terms=terms).fit(X).transform(X)
    t, damping = 1.4 * np.abs(X @ X.T), np.exp(-0.7 * (X**2 + X.T**2))
    remainder = damping * np.exp(t) * t**terms / math.factorial(terms)
    assert (np.abs(F @ F.T - np.exp(-0.7 * (X - X.T) ** 2)) <= remainder + 1e-14).all()
