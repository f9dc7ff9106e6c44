"""RandomFourier: the average of cosines at its frequencies, which are normal with variance 2γ.

scikit-learn's checks, errors and sparse samples: tests/inspection/features/test_features.py. Tools: tests/tools.
Files: tests/files/mercer_file/test_feature_maps.py. Engines: tests/places/engines/test_opaque.py.
"""

import numpy as np
import pytest
from scipy import stats

from mercer.inspection.features import RandomFourier
from mercer.kernels import Gaussian

rng = np.random.default_rng(1)
X = rng.normal(size=(12, 3))


@pytest.mark.parametrize("orthogonal", [False, True])
def test_inner_products_are_averages_of_cosines(orthogonal):
    model = RandomFourier(Gaussian(gamma=0.4), 60, orthogonal).fit(X)
    F = model.transform(X)
    phases = (X[:, None] - X[None]) @ model.frequencies_.T
    np.testing.assert_allclose(F @ F.T, np.cos(phases).mean(axis=2), atol=1e-12)


@pytest.mark.parametrize("orthogonal", [False, True])
def test_frequencies_are_normal_with_variance_two_gamma_up_to_their_sign(orthogonal):
    """Bochner's theorem for exp(−γ‖x − z‖²), by the test of Kolmogorov and Smirnov; a cosine has no use for a sign."""
    model = RandomFourier(Gaussian(gamma=0.4), 3000, orthogonal).fit(X)
    for column in model.frequencies_.T:
        assert stats.kstest(np.abs(column) / np.sqrt(0.8), "halfnorm").pvalue > 1e-3
