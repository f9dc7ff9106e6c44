"""Monomials: the columns of a small polynomial written out, and the kernel between new samples.

scikit-learn's checks, errors and sparse samples: tests/inspection/features/test_features.py. Tools: tests/tools.
Files: tests/files/mercer_file/test_feature_maps.py. Examples of the notes:
tests/notes/teaching/test_exercises.py, tests/notes/theory/test_few_errors.py.
"""

import numpy as np

from mercer.inspection.features import Monomials
from mercer.kernels import Linear, Polynomial

rng = np.random.default_rng(2)
X, NEW = rng.normal(size=(10, 2)), rng.normal(size=(7, 2))


def test_the_columns_of_a_square():
    """(x'z + 1)² has the features 1, √2x₁, √2x₂, x₁², √2x₁x₂, x₂²."""
    F = Monomials((Linear() + 1.0) ** 2).fit(X).transform(NEW)
    a, b, root = NEW[:, 0], NEW[:, 1], np.sqrt(2)
    expected = np.column_stack([np.ones(7), root * a, root * b, a**2, root * a * b, b**2])
    assert F.shape == expected.shape
    np.testing.assert_allclose(F[:, np.lexsort(F)], expected[:, np.lexsort(expected)], rtol=1e-12)


def test_inner_products_of_new_samples_are_the_polynomial():
    model = Monomials(Polynomial(3, 0.5, 2.0)).fit(X)
    np.testing.assert_allclose(model.transform(NEW) @ model.transform(X).T, (0.5 * NEW @ X.T + 2.0) ** 3, rtol=1e-10)
