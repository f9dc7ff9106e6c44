"""A table of coefficients, against scipy's CSR matrices."""

import numpy as np
import pytest
import scipy.sparse as sp

from mercer.samples.coefficient_table import CoefficientTable

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(("n", "k", "entries"), [(1, 1, 0), (1, 1, 1), (7, 1, 5), (40, 6, 90), (3, 50, 20)])
def test_entries_of_columns_are_those_of_scipy(n, k, entries):
    rows, columns, values = RNG.integers(n, size=entries), RNG.integers(k, size=entries), RNG.normal(size=entries)
    values[::7] = 0.0
    columns.sort()
    table = CoefficientTable.of_columns(values, rows, np.searchsorted(columns, np.arange(k + 1)), n)
    expected = sp.csr_array((values, (rows, columns)), shape=(n, k))
    expected.eliminate_zeros()
    assert table.shape == (n, k)
    np.testing.assert_allclose(table.toarray(), expected.toarray(), rtol=1e-14)
    np.testing.assert_array_equal(table.lengths, np.diff(expected.indptr))
    matrix = table.matrix()
    assert sp.issparse(matrix) == (k > 3)
    np.testing.assert_array_equal(matrix.toarray() if k > 3 else matrix, table.toarray())
    some = RNG.integers(n, size=2 * n)
    np.testing.assert_array_equal(table.take(some).toarray(), table.toarray()[some])
    assert table.take(np.empty(0, dtype=np.intp)).shape == (0, k)


def test_an_array_gives_its_entries_that_are_not_zero():
    dense = RNG.normal(size=(9, 4)) * (RNG.random(size=(9, 4)) < 0.4)
    table = CoefficientTable.of_array(dense)
    np.testing.assert_array_equal(table.toarray(), dense)
    assert len(table.data) == np.count_nonzero(dense)
    np.testing.assert_array_equal(table.rows, np.nonzero(dense)[0])


@pytest.mark.parametrize(("rows", "ends", "named"), [([0, 3], [0, 2], "rows"), ([0, 1], [0, 1], "ends")])
def test_what_lies_outside_is_refused(rows, ends, named):
    with pytest.raises(ValueError, match=named):
        CoefficientTable.of_columns(np.ones(2), np.array(rows), np.array(ends), 3)
    table = CoefficientTable.of_array(np.eye(3))
    with pytest.raises(ValueError, match="rows"):
        table.take(np.array([3]))
