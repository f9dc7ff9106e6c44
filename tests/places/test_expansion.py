"""A machine with several outputs: one block of kernel values serves them all."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from mercer import RLSRegressor, _core
from mercer.kernels import Gaussian, Linear
from mercer.places.expansion import Expansion
from mercer.samples import arrays


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 15, 16, 33, 100])
@pytest.mark.parametrize("outputs", [[0], [4, 1], [2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1]], ids=len)
def test_combinations_are_a_product(dtype: type, n: int, outputs: list[int]) -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(20, n + 3)).astype(dtype)[:, :n]
    first, second = rng.normal(size=(8, len(outputs))), rng.normal(size=(12, 3))
    combinations = _core.Combinations()
    combinations.append((0, 8), np.array(outputs), first)
    combinations.append((8, 20), np.array([0, 5, 7]), second)
    total = np.ones((n, 8))
    combinations.add(total, table, 2)
    dense = np.zeros((20, 8))
    dense[:8, outputs], dense[8:, [0, 5, 7]] = first, second
    np.testing.assert_allclose(total, 1 + table.T.astype(float) @ dense, rtol=0, atol=1e-12)
    alone = np.ones((n, 8))
    for i in range(n):  # a column's sums have the same bits wherever it stands, also as compiled by g++ 13
        combinations.add(alone[i : i + 1], table[:, i : i + 1], 2)
    np.testing.assert_array_equal(alone, total)


def test_combinations_are_checked() -> None:
    combinations = _core.Combinations()
    with pytest.raises(ValueError, match="a row for each vector"):
        combinations.append((0, 3), np.array([0]), np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"outputs.*out of range"):
        combinations.append((0, 2), np.array([-1]), np.ones((2, 1)))
    combinations.append((3, 5), np.array([4]), np.ones((2, 1)))
    with pytest.raises(ValueError, match="table must have a row for each vector"):
        combinations.add(np.zeros((7, 5)), np.ones((4, 7)), 1)
    with pytest.raises(ValueError, match="a column for each output"):
        combinations.add(np.zeros((7, 4)), np.ones((5, 7)), 1)
    with pytest.raises(ValueError, match="can be written to"):
        combinations.add(np.zeros((7, 5), np.float32), np.ones((5, 7)), 1)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_several_outputs_equal_the_sum_written_out(convert, dtype: type) -> None:
    rng = np.random.default_rng(1)
    vectors, X = (rng.normal(size=(n, 30)) * (rng.random((n, 30)) < 0.2) for n in (70, 41))
    table = rng.normal(size=(70, 6)) * (np.arange(70)[:, None] // 25 == np.arange(6) % 3)
    b = rng.normal(size=6)
    kernel = Gaussian(0.1)
    for coefficients in (table, sp.csr_array(table)):
        f = Expansion(kernel, convert(vectors.astype(dtype)), coefficients, b)
        expected = kernel(X.astype(dtype).astype(float), vectors.astype(dtype).astype(float)) @ table + b
        np.testing.assert_allclose(
            f(convert(X.astype(dtype)), 2), expected, atol=1e-12 if dtype is np.float64 else 1e-5
        )


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_far_float32_samples_are_predicted_in_float64_wherever_they_stand(convert, outputs, monkeypatch) -> None:
    """In blocks of a few rows, each with near samples and far ones, against values in extended precision."""
    rng = np.random.default_rng(2)
    vectors, X = (rng.normal(size=(n, 4)).astype(np.float32) for n in (30, 50))
    vectors[0] += 60
    X[::3] += 60
    table, b = rng.normal(size=(30, outputs)), rng.normal(size=outputs)
    wide = [A.astype(np.longdouble) for A in (X, vectors)]
    squares = ((wide[0][:, None] - wide[1]) ** 2).sum(axis=2)
    expected = (np.exp(-np.longdouble(0.1) * squares) @ table + b).astype(float)
    monkeypatch.setattr(arrays, "BLOCK_BYTES", 8 * (30 if outputs > 1 else 4) * 7)
    f = Expansion(Gaussian(0.1), convert(vectors), table, b)
    np.testing.assert_allclose(f(convert(X), 1), expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(f(convert(X), 1)[::3], expected[::3], rtol=0, atol=1e-9)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_multiples_of_a_linear_kernel(convert) -> None:
    rng = np.random.default_rng(3)
    vectors, X, table = rng.normal(size=(20, 3)), rng.normal(size=(9, 3)), rng.normal(size=(20, 2))
    f = Expansion(2.5 * Linear(), convert(vectors), table, np.array([1.0, -1.0]))
    np.testing.assert_allclose(f(convert(X)), 2.5 * X @ vectors.T @ table + [1.0, -1.0], atol=1e-12)


@pytest.mark.parametrize("unit", [1.0, 1e-6, 1e-9, 1e-40])
@pytest.mark.parametrize("apart", [0.0, 300.0, 3000.0])
def test_float32_samples_are_predicted_as_closely_in_any_unit_of_the_targets(unit: float, apart: float) -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(80, 2)) + apart * (np.arange(80) % 2)[:, None]).astype(np.float32)
    y = np.sin(X[:, 0].astype(float))
    model = RLSRegressor(lam=0.1, gamma=0.5).fit(X, unit * y)
    np.testing.assert_allclose(model.predict(X), model.predict(X.astype(float)), rtol=0, atol=1e-4 * unit)
