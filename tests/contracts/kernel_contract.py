"""What every kernel owes its callers: one function, applied to each kernel there is and to any that will be."""

import pickle

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from mercer.kernels import Kernel
from reference.recipes import evaluate
from reference.terms import term_value

ANSWERS = {"yes", "no", "depends", "unknown"}


def check_kernel_contract(kernel, X, Z, *, rtol=1e-10):
    """Check a kernel on samples X (distinct) and Z; arrays of float64 for a kernel on vectors."""
    _check_statements(kernel)
    _check_scikit_learn(kernel)
    bound = kernel.bind(X)
    assert bound.bound
    assert bound.bind(X) is bound
    _check_scikit_learn(bound)
    K = bound(X)
    _check_values(bound, X, Z, K, rtol)
    _check_what_is_stated(bound, X, K)
    if bound.accepts == "vectors":
        _check_formats(bound, X, Z, rtol)
        _check_recipe(bound, X, Z, rtol)
        _check_terms(bound, X, Z, rtol)


def _check_statements(kernel):
    assert isinstance(kernel, Kernel)
    assert kernel.accepts in {"vectors", "sequences", "gram"}
    assert isinstance(kernel.mergeable, bool)
    for statement in (
        "positive_definite",
        "strictly_positive_definite",
        "universal",
        "unit_diagonal",
        "positive_values",
        "differentiable",
    ):
        assert getattr(kernel, statement) in ANSWERS, statement
        assert statement not in kernel.get_params(), f"{statement} is annotated, and so became a parameter"
    assert kernel.lipschitz is None or kernel.lipschitz >= 0
    if kernel.strictly_positive_definite == "yes":
        assert kernel.positive_definite == "yes"


def _check_scikit_learn(kernel):
    copy = clone(kernel)
    assert type(copy) is type(kernel)
    assert copy is not kernel
    assert repr(copy) == repr(kernel)
    assert set(copy.get_params()) == set(kernel.get_params())
    assert repr(kernel.set_params(**kernel.get_params(deep=False))) == repr(copy)


def _check_values(kernel, X, Z, K, rtol):
    n, m = _length(X), _length(Z)
    block = kernel(X, Z)
    atol = rtol * np.abs(K).max()
    for values, shape in ((K, (n, n)), (block, (n, m))):
        assert values.dtype == np.float64
        assert values.shape == shape
        assert values.flags.c_contiguous
        assert values.flags.owndata
        assert values.flags.writeable
    diagonal = kernel.diag(X)
    assert diagonal.dtype == np.float64
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), diagonal)
    np.testing.assert_allclose(kernel(X, X), K, rtol=rtol, atol=atol)
    np.testing.assert_allclose(kernel(Z, X), block.T, rtol=rtol, atol=atol)
    rows = np.vstack([kernel(X[i : i + 1], Z) for i in range(n)])
    np.testing.assert_allclose(rows, block, rtol=rtol, atol=atol)
    columns = np.hstack([kernel(X, Z[j : j + 1]) for j in range(m)])
    np.testing.assert_allclose(columns, block, rtol=rtol, atol=atol)
    np.testing.assert_allclose(np.concatenate([kernel.diag(X[i : i + 1]) for i in range(n)]), diagonal, rtol=1e-12)
    assert kernel(X[:0], Z).shape == (0, m)
    assert kernel(X, Z[:0]).shape == (n, 0)
    assert kernel(X[:0]).shape == (0, 0)
    assert kernel.diag(X[:0]).shape == (0,)
    try:
        thawed = pickle.loads(pickle.dumps(kernel))
    except (pickle.PicklingError, AttributeError):
        assert "lambda" in repr(kernel)
    else:
        np.testing.assert_array_equal(thawed(X, Z), block)


def _check_what_is_stated(kernel, X, K):
    eigenvalues = np.linalg.eigvalsh(K)
    if kernel.positive_definite == "yes":
        assert eigenvalues[0] >= -1e-10 * max(eigenvalues[-1], 1e-300)
        size = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
        assert (np.abs(K) <= size * (1 + 1e-12) + 1e-300).all()
    if kernel.strictly_positive_definite == "yes":
        assert eigenvalues[0] > 0
    if kernel.positive_values == "yes":
        assert (K >= 0).all()  # values may underflow
    if kernel.unit_diagonal == "yes":
        np.testing.assert_array_equal(K.diagonal(), 1.0)
    if kernel.lipschitz is not None and kernel.accepts == "vectors":
        apart = np.maximum(np.add.outer(K.diagonal(), K.diagonal()) - 2 * K, 0.0)
        distance = np.sqrt(((X[:, None] - X[None]) ** 2).sum(axis=2))
        assert (np.sqrt(apart) <= kernel.lipschitz * distance * (1 + 1e-7) + 1e-6 * np.sqrt(np.abs(K).max())).all()


def _check_formats(kernel, X, Z, rtol):
    expected = kernel(X, Z)
    atol = rtol * np.abs(expected).max()
    before = X.copy(), Z.copy()
    frozen = X.copy()
    frozen.flags.writeable = False
    for other in (np.asfortranarray(X), X[::1], frozen, X.tolist()):
        np.testing.assert_allclose(kernel(other, Z), expected, rtol=rtol, atol=atol)
    for x in _forms(X):
        np.testing.assert_allclose(kernel.diag(x), kernel.diag(X), rtol=rtol, atol=atol)
        np.testing.assert_allclose(kernel(x), kernel(X), rtol=rtol, atol=atol)
        for z in _forms(Z):
            np.testing.assert_allclose(kernel(x, z), expected, rtol=rtol, atol=atol)
    x32, z32 = X.astype(np.float32), Z.astype(np.float32)
    exactly = kernel(x32.astype(np.float64), z32.astype(np.float64))
    for x, z in ((x32, z32), (x32, z32.astype(np.float64)), (sp.csr_matrix(x32), sp.csr_matrix(z32))):
        np.testing.assert_allclose(kernel(x, z), exactly, rtol=rtol, atol=atol)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(Z, before[1])


def _forms(X):
    """Dense and every kind of CSR, those last read-only."""
    narrow, wide = sp.csr_matrix(X), sp.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    for matrix in (narrow, wide):
        for part in (matrix.data, matrix.indices, matrix.indptr):
            part.flags.writeable = False
    return X, narrow, wide


def _check_recipe(kernel, X, Z, rtol):
    recipe = kernel.recipe()
    if recipe is not None:
        expected = kernel(X, Z)
        np.testing.assert_allclose(evaluate(recipe, X, Z), expected, rtol=rtol, atol=rtol * np.abs(expected).max())
        if recipe.linear:
            np.testing.assert_allclose(
                recipe.scale * (X @ Z.T), expected, rtol=rtol, atol=rtol * np.abs(expected).max()
            )


def _check_terms(kernel, X, Z, rtol):
    terms = kernel.terms(X.shape[1])
    if terms is not None:
        expected = kernel(X, Z)
        values = [[sum(term_value(term, x, z) for term in terms) for z in Z] for x in X]
        np.testing.assert_allclose(values, expected, rtol=rtol, atol=rtol * np.abs(expected).max())


def _length(X):
    return X.shape[0] if hasattr(X, "shape") else len(X)
