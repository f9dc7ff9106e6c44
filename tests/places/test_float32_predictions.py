"""Float32 kernel values move f by no more than the estimate that chooses where they are used."""

import numpy as np
import pytest

from mercer.kernels.names import as_kernel
from mercer.places.host.evaluation import BlockEvaluation, Float32Check
from mercer.places.host.prepared import PreparedSamples


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("d", [1, 2, 30])
@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("cosine", {}),
        ("rbf", {"gamma": 0.3}),
        ("laplacian", {"gamma": 0.3}),
        ("sigmoid", {"gamma": 0.3, "coef0": -0.5}),
        ("poly", {"gamma": 0.3, "degree": 2, "coef0": 0.0}),
        ("poly", {"gamma": 0.3, "degree": 5, "coef0": 1.0}),
    ],
    ids=lambda value: value if isinstance(value, str) else str(value.get("degree", "")),
)
def test_float32_values_are_off_by_no_more_than_is_likely(name, numbers, d, offset):
    rng = np.random.default_rng(0)
    Z, X = ((rng.normal(size=(n, d)) + offset).astype(np.float32) for n in (150, 300))
    kernel, c = as_kernel(name, **numbers), rng.normal(size=(150, 3))
    evaluation, prepared = BlockEvaluation(kernel, Z, c, None), PreparedSamples.of(kernel, Z, 1)
    sizes = np.asarray(prepared.lowering.prepare(X, np.float32, 1)[1], dtype=np.float64)
    likely = prepared.rounding.estimated_errors(
        sizes, prepared.sizes, c**2, lambda: Float32Check(evaluation._vectors, evaluation._coefficients)._aligned
    )
    single, double = (evaluation._values(X, np.arange(300), prepared, kind, 1) for kind in (np.float32, np.float64))
    assert (np.abs(single - double).max(axis=1) <= 1.5 * likely).all()
