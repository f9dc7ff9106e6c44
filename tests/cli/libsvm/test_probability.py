"""The probabilities of -b 1 against minimisers that know nothing of how they were found."""

import numpy as np
import pytest
from scipy.optimize import minimize

from mercer.calibration.libsvm_laws import density_marks, laplace_scale, normal_probabilities
from mercer.cli.folds import check_n_folds, split_folds, squared_correlation
from mercer.cli.libsvm.probability import class_probabilities, fit_sigmoid, pair_probabilities


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_the_sigmoid_is_the_likeliest(seed, shift):
    rng = np.random.default_rng(seed)
    f = rng.normal(size=60) * 2 + shift
    positive = rng.random(60) < 1 / (1 + np.exp(-1.5 * f + 0.5))
    n_pos, n_neg = positive.sum(), (~positive).sum()
    target = np.where(positive, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))

    def loss(ab):
        p = 1 / (1 + np.exp(ab[0] * f + ab[1]))
        return -(target * np.log(p) + (1 - target) * np.log(1 - p)).sum()

    A, B = fit_sigmoid(f, positive)
    best = minimize(loss, [0.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000})
    assert loss([A, B]) <= best.fun + 1e-8
    np.testing.assert_allclose([A, B], best.x, atol=1e-3)


def test_the_sigmoid_of_separated_and_huge_values():
    for scale in (1.0, 1e8):
        A, B = fit_sigmoid(scale * np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
        assert np.isfinite([A, B]).all()
        assert A < 0
    assert np.isfinite(fit_sigmoid(np.zeros(4), np.array([True, True, True, True]))).all()


def test_coupling_solves_its_quadratic_problem():
    rng = np.random.default_rng(0)
    for k in (3, 5):
        r = rng.uniform(0.05, 0.95, size=(6, k * (k - 1) // 2))
        found = class_probabilities(r, k)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, atol=1e-12)
        assert (found >= 0).all()
        for row, p in zip(r, found, strict=True):
            table = np.zeros((k, k))
            table[np.triu_indices(k, 1)] = row
            table = table + np.tril(1 - table.T, -1)
            Q = np.array([[(table[:, i] ** 2).sum() - table[i, i] ** 2 if i == j else -table[j, i] * table[i, j]
                           for j in range(k)] for i in range(k)])  # fmt: skip
            system = np.block([[Q, np.ones((k, 1))], [np.ones((1, k)), np.zeros((1, 1))]])
            exact = np.linalg.solve(system, np.r_[np.zeros(k), 1.0])[:k]
            np.testing.assert_allclose(p, exact, atol=0.01)


def test_two_classes_need_no_coupling_and_stay_off_the_ends():
    p = pair_probabilities(np.array([[1e6], [-1e6], [0.0]]), np.array([-1.0]), np.array([0.0]))
    np.testing.assert_array_equal(p[:, 0], [1 - 1e-7, 1e-7, 0.5])
    np.testing.assert_array_equal(class_probabilities(p, 2).sum(axis=1), 1.0)


def test_laplace_scale_leaves_outliers_out():
    r = np.array([1.0, -1.0, 1.0, -1.0] * 25)
    assert laplace_scale(r) == 1.0
    assert laplace_scale(np.append(r, 1000.0)) == 1.0


def test_density_marks_by_hand():
    # 5 below 0 and 10 above: marks between -5 -4 -3 -2 -1 | 0 | 2 4 6 8 10
    f = np.r_[np.arange(-5.0, 0.0), np.arange(1.0, 11.0)]
    marks = density_marks(np.random.default_rng(0).permutation(f))
    np.testing.assert_array_equal(marks, [-4.5, -3.5, -2.5, -1.5, -0.5, 1.0, 3.0, 5.0, 7.0, 9.0])
    p = normal_probabilities(np.array([-9.0, -4.5, -4.0, 0.0, 8.9, 9.0, 9.1]), marks)
    np.testing.assert_allclose(p, [0.001, 0.1, 0.1, 0.5, 0.9, 0.9, 0.999])
    with pytest.raises(ValueError, match="need 5 negative and 5 positive decision values, but there are 4 and 10"):
        density_marks(f[1:])


def test_folds():
    y = np.array([0] * 7 + [1] * 13)
    seen = []
    for train, test in split_folds(20, 5, 3, y):
        assert not set(train) & set(test)
        assert len(train) + len(test) == 20
        assert abs((y[test] == 0).sum() - 7 / 5) < 1
        seen += test.tolist()
    assert sorted(seen) == list(range(20))
    again = [test.tolist() for _, test in split_folds(20, 5, 3, y)]
    assert [row for rows in again for row in rows] == seen
    assert [test.tolist() for _, test in split_folds(20, 5, 4, y)] != again


def test_numbers_of_folds(capsys):
    with pytest.raises(ValueError, match="n must >= 2"):
        check_n_folds(1, 10)
    assert check_n_folds(20, 10) == 10
    assert "# folds (20) > # data (10). Will use # folds = # data" in capsys.readouterr().err


def test_squared_correlation():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30))
    assert squared_correlation(a, b) == pytest.approx(np.corrcoef(a, b)[0, 1] ** 2)
    assert np.isnan(squared_correlation(a, np.ones(30)))
