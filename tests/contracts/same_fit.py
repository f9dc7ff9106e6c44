"""Two fits of one problem are the same: every fitted attribute, every prediction, bit for bit."""

import numpy as np
from scipy import sparse

FITTED_ARRAYS = (
    "support_",
    "support_vectors_",
    "dual_coef_",
    "intercept_",
    "n_support_",
    "classes_",
    "class_weight_",
    "n_iter_",
)


def state(model):
    """Everything fitted, as comparable values."""
    out = {}
    for name in (*FITTED_ARRAYS, "stop_reason_", "converged_", "shape_fit_", "n_features_in_"):
        value = getattr(model, name)
        out[name] = value.toarray() if sparse.issparse(value) else value
    return out


def assert_identical(one, other, X):
    for name, value in state(one).items():
        np.testing.assert_array_equal(state(other)[name], value, err_msg=name)
    np.testing.assert_array_equal(one.decision_function(X), other.decision_function(X))
    assert one.certificate_ == other.certificate_
