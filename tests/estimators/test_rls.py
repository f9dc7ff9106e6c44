"""Least squares for one λ: precision, forms of the linear case, limits, classes, conversions, files."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression, Ridge, RidgeClassifier
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import RLSClassifier, RLSClassifierCV, RLSRegressor, RLSRegressorCV
from mercer.kernels import Gaussian, Linear
from mercer.places import gram_for
from mercer.problems.least_squares import LeastSquares
from mercer.runtime.errors import SingularSystemWarning
from mercer.solvers.least_squares.cholesky import solve_in_precision
from mercer.solvers.solution import Stop
from reference import least_squares as plain

rng = np.random.default_rng(5)


@pytest.fixture(scope="module")
def many():
    """Enough samples for a float32 factor."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    return X, np.column_stack([np.sin(X[:, 0]) + 2.0, X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(900, 2))


@pytest.fixture(scope="module")
def exact(many):
    """Gaussian(gamma=0.3) of these samples in extended precision, where there is one."""
    Z = many[0].astype(np.longdouble)
    return np.exp(-np.longdouble(0.3) * sum((column[:, None] - column) ** 2 for column in Z.T))


# --- the factor -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("lam", [1e-3, 1.0])
def test_a_float32_factor_leads_to_the_float64_answer(many, exact, lam, bias):
    X, Y = many
    weight = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X))
    model = RLSRegressor(lam, gamma=0.3, bias=bias).fit(X, Y, sample_weight=weight)
    assert model.factor_precision_ == "float32"
    assert model.solver_ == "cholesky"
    assert model.converged_
    c, b = plain.solve(Gaussian(gamma=0.3)(X), Y, lam, weight, bias)
    np.testing.assert_allclose(model.dual_coef_, c, rtol=0, atol=1e-9 * np.abs(c).max())
    np.testing.assert_allclose(model.intercept_, b, atol=1e-9)
    left = Y - exact @ model.dual_coef_ - (lam / weight)[:, None] * model.dual_coef_ - model.intercept_
    rounding = 1e-12 * (np.abs(Y).max() + np.abs(model.dual_coef_).sum(axis=0).max())  # of its own evaluation
    assert np.abs(left).max() <= model.residual_ == model.certificate_.violation <= rounding


def test_a_float64_factor_takes_over_where_float32_cannot(many, exact):
    X, Y = many
    with pytest.warns(ConvergenceWarning, match="rounding floor: float64 proves"):
        model = RLSRegressor(1e-9, gamma=0.3).fit(X, Y)
    assert model.factor_precision_ == "float64"
    c, b = plain.solve(Gaussian(gamma=0.3)(X), Y, 1e-9, np.ones(len(X)), True)
    np.testing.assert_allclose(model.predict(X), Gaussian(gamma=0.3)(X) @ c + b, atol=3e-6)
    left = Y - exact @ model.dual_coef_ - 1e-9 * model.dual_coef_ - model.intercept_
    proof = model.certificate_
    # The gap is Σ left²/2λ. Rounding of ‖β‖₁ = 3·10⁹ hides it: what is proven is 10⁸ times that, and says so.
    assert (left**2).sum() / 2e-9 < 1e-10 * proof.primal < proof.gap
    assert np.abs(left).max() <= proof.violation <= 1e-13 * np.abs(model.dual_coef_).sum(axis=0).max()
    gram = gram_for(Gaussian(gamma=0.3), X)
    problem = LeastSquares(Y, np.ones(len(X)), np.arange(len(X)), len(X), True, 1e-9)
    assert solve_in_precision(problem, gram, np.float32, Stop(0.0, 1)) is None


def test_numbers_too_large_for_float32_are_left_to_float64(many):
    X, Y = many
    model = RLSRegressor(1e30, kernel=1e30 * Gaussian(gamma=0.3)).fit(X, Y)
    assert model.factor_precision_ == "float64"
    np.testing.assert_allclose(model.predict(X), RLSRegressor(1.0, gamma=0.3).fit(X, Y).predict(X), atol=1e-8)


def test_it_is_scikit_learns_kernel_ridge(many):
    X, Y = many
    theirs = KernelRidge(alpha=0.1, kernel="rbf", gamma=0.3).fit(X, Y)
    mine = RLSRegressor(0.1, gamma=0.3, bias=False).fit(X, Y)
    np.testing.assert_allclose(mine.dual_coef_, theirs.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(mine.predict(X[:50]), theirs.predict(X[:50]), atol=1e-9)


def test_the_certificate_notices_a_wrong_answer(many):
    from mercer.certificates.least_squares import certify_outputs

    X, Y = many[0][:50], many[1][:50]
    least = LeastSquares(Y, np.ones(50), np.arange(50), 50, False, 0.1)
    K = Gaussian(gamma=0.3)(X)
    c, _ = plain.solve(K, Y, 0.1, np.ones(50), False)
    gram = gram_for(Gaussian(gamma=0.3), X)
    right = certify_outputs(least, gram, c, *gram.product_bound(c), c)
    c[3, 1] += 1e-3
    wrong = certify_outputs(least, gram, c, *gram.product_bound(c), c)
    assert right.gap < 1e-10 * right.primal
    # The dual is quadratic: its value falls by ½ δ² (k + λ), and its gradient changes by δ (k + λ).
    assert wrong.dual == pytest.approx(right.dual - 0.5e-6 * 1.1, abs=1e-9)
    assert wrong.gap >= right.dual - wrong.dual
    assert wrong.violation == pytest.approx(1.1e-3, rel=1e-6)


# --- weights --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [RLSRegressor(0.1), RLSRegressor(0.1, kernel="linear"), RLSRegressorCV([0.1, 1.0])])
def test_weights_are_repetitions_and_equal_samples_merge(model):
    X, Y = rng.normal(size=(60, 3)), rng.normal(size=(60, 2))
    weight = rng.integers(0, 4, size=60)
    copies = np.repeat(np.arange(60), weight)
    one = clone(model).fit(X, Y, sample_weight=weight)
    many = clone(model).fit(X[copies], Y[copies])
    np.testing.assert_allclose(one.predict(X), many.predict(X), atol=1e-10)
    if hasattr(one, "lam_"):
        assert one.lam_ == many.lam_
        np.testing.assert_allclose(one.path_.loo_errors, many.path_.loo_errors, rtol=1e-8)
        np.testing.assert_allclose(one.loo_residuals_[copies], many.loo_residuals_, atol=1e-8)


def test_different_targets_of_one_sample(many):
    X = np.repeat(rng.normal(size=(20, 2)), 2, axis=0)
    y = rng.normal(size=40)
    model = RLSRegressor(0.2, gamma=0.5).fit(X, y)
    assert len(model._expansion_.vectors) == 20
    c, b = plain.solve(Gaussian(gamma=0.5)(X), y[:, None], 0.2, np.ones(40), True)
    np.testing.assert_allclose(model.dual_coef_, c[:, 0], atol=1e-9)
    assert model.certificate_.primal == pytest.approx(
        plain.objective(Gaussian(gamma=0.5)(X), c, b, y[:, None], 0.2, np.ones(40))[0] / 0.4
    )


# --- the linear case ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_primal_is_dual(as_sparse, bias):
    X, Y = rng.normal(size=(80, 6)) + 3.0, rng.normal(size=(80, 2)) + 10.0
    weight = rng.uniform(0.1, 2.0, size=80)
    data = sparse.csr_array(X) if as_sparse else X
    theirs = Ridge(0.7, fit_intercept=bias).fit(X, Y, sample_weight=weight)
    found = {}
    for solver in ("auto", "covariance", "lsqr", "cholesky", "eigen"):
        model = RLSRegressor(0.7, kernel="linear", solver=solver, bias=bias).fit(data, Y, sample_weight=weight)
        found[solver] = model
        np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-8, err_msg=solver)
        np.testing.assert_allclose(model.predict(data), theirs.predict(X), atol=1e-8, err_msg=solver)
        np.testing.assert_allclose(model.dual_coef_, found["auto"].dual_coef_, atol=1e-7, err_msg=solver)
        proof = model.certificate_
        assert proof.kkt["primal value above the optimum"] < 1e-12 * proof.primal
        # β over the kernel matrix: its rounding leaves ten digits of the primal value.
        assert proof.relative_gap < (1e-9 if solver in ("cholesky", "eigen") else 1e-12)
    assert found["auto"].solver_ == "covariance"


def test_a_scaled_linear_kernel():
    X, y = rng.normal(size=(50, 3)), rng.normal(size=50)
    model = RLSRegressor(0.7, kernel=4.0 * Linear()).fit(X, y)
    np.testing.assert_allclose(model.coef_, Ridge(0.7 / 4).fit(X, y).coef_, atol=1e-10)
    np.testing.assert_allclose(model.predict(X), X @ model.coef_ + model.intercept_, atol=1e-10)
    assert model.certificate_.relative_gap < 1e-12


def test_more_features_than_samples():
    X, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    model = RLSRegressor(0.7, kernel="linear").fit(X, y)
    assert model.solver_ == "cholesky"
    np.testing.assert_allclose(model.coef_, Ridge(0.7).fit(X, y).coef_, atol=1e-10)


def test_wide_sparse_data_that_no_matrix_fits_go_through_lsqr():
    X = sparse.random_array((300, 6000), density=0.01, rng=np.random.default_rng(0), format="csr")
    y = rng.normal(size=300)
    model = RLSRegressor(0.5, kernel="linear", cache_size=0.5).fit(X, y)
    assert model.solver_ == "lsqr"
    np.testing.assert_allclose(model.coef_, Ridge(0.5).fit(X.toarray(), y).coef_, atol=1e-8)


def test_centring_sparse_data_far_from_zero_costs_no_digits():
    X = rng.normal(size=(200, 3)) + 1e4
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=200)
    dense, thin = (RLSRegressor(0.1, kernel="linear").fit(A, y) for A in (X, sparse.csr_array(X)))
    np.testing.assert_allclose(thin.coef_, dense.coef_, rtol=1e-9)


# --- classes --------------------------------------------------------------------------------------------------------


def test_it_is_scikit_learns_ridge_classifier():
    X, y = load_iris(return_X_y=True)
    for keep in (y < 2, y < 3):
        mine = RLSClassifier(1.0, kernel="linear").fit(X[keep], y[keep])
        theirs = RidgeClassifier(1.0).fit(X[keep], y[keep])
        np.testing.assert_allclose(mine.decision_function(X), theirs.decision_function(X), atol=1e-9)
        np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("model", [RLSClassifier(0.1), RLSClassifierCV(10)])
def test_scores_and_predictions_agree(model):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = clone(model).fit(X, names)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    assert model.score(X, names) > 0.95
    two = clone(model).fit(X[y > 0], names[y > 0])
    np.testing.assert_array_equal(two.predict(X), two.classes_[(two.decision_function(X) >= 0).astype(int)])


def test_balanced_classes():
    X, y = load_iris(return_X_y=True)
    keep = np.r_[0:50, 50:60]
    balanced = RLSClassifier(0.5, class_weight="balanced").fit(X[keep], y[keep])
    by_hand = RLSClassifier(0.5).fit(X[keep], y[keep], sample_weight=np.where(y[keep] == 0, 0.6, 3.0))
    np.testing.assert_allclose(balanced.decision_function(X), by_hand.decision_function(X), atol=1e-9)


# --- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", [False, True])
def test_lam_zero_interpolates(bias):
    X, Y = rng.normal(size=(25, 2)), rng.normal(size=(25, 2))
    model = RLSRegressor(0.0, gamma=3.0, bias=bias).fit(X, Y)
    assert model.rank_ == 25 - bias
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-7)
    near = RLSRegressor(1e-9, gamma=3.0, bias=bias).fit(X, Y)
    new = rng.normal(size=(10, 2))
    np.testing.assert_allclose(model.predict(new), near.predict(new), atol=1e-4)


@pytest.mark.parametrize("bias", [False, True])
def test_lam_zero_of_a_singular_matrix_is_the_least_squares_fit_of_least_norm(bias):
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    wide = np.c_[X, X[:, 0] + X[:, 1]]
    theirs = LinearRegression(fit_intercept=bias).fit(wide, y)  # LAPACK's, of least norm
    for solver in ("auto", "eigen"):
        with pytest.warns(SingularSystemWarning, match="effective rank is 3 of 4"):
            model = RLSRegressor(0.0, kernel="linear", solver=solver, bias=bias).fit(wide, y)
        np.testing.assert_allclose(model.coef_, theirs.coef_, atol=1e-9)
        assert model.rank_ == 3
        assert model.certificate_.violation < 1e-9


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("bias", [False, True])
def test_as_many_directions_as_features_are_a_full_rank(bias):
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    for solver in ("auto", "eigen", "cholesky"):
        model = RLSRegressor(0.0, kernel="linear", solver=solver, bias=bias).fit(X, y)
        np.testing.assert_allclose(model.coef_, LinearRegression(fit_intercept=bias).fit(X, y).coef_, atol=1e-9)


def test_a_singular_kernel_is_solved_and_named():
    X, y = rng.normal(size=(200, 2)), rng.normal(size=200)
    with (
        pytest.warns(SingularSystemWarning, match=r"effective rank is \d+ of 199.*raise lam"),
        pytest.warns(ConvergenceWarning, match="rounding floor"),
    ):
        model = RLSRegressor(1e-18, gamma=0.01).fit(X, y)
    assert model.solver_ == "eigen"
    assert 3 < model.rank_ < 199
    assert np.isfinite(model.predict(X)).all()
    assert np.abs(model.predict(X)).max() < 100


def test_lam_to_infinity_is_the_mean():
    X, y = rng.normal(size=(50, 2)), rng.normal(size=50)
    weight = rng.uniform(size=50)
    model = RLSRegressor(1e300).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.predict(X), np.average(y, weights=weight), atol=1e-12)
    np.testing.assert_allclose(RLSRegressor(1e300, bias=False).fit(X, y).predict(X), 0.0, atol=1e-12)


# --- conventions and files ------------------------------------------------------------------------------------------


def test_conventions_by_their_objectives():
    X, y = rng.normal(size=(40, 2)), rng.normal(size=(40, 1))
    K = Gaussian(gamma=0.5)(X)
    gurls = np.linalg.solve(K + 40 * 0.01 * np.eye(40), y)
    mine = RLSRegressor(40 * 0.01, gamma=0.5, bias=False).fit(X, y)
    np.testing.assert_allclose(mine.dual_coef_, gurls, atol=1e-10)
    # LS-SVM: minimise ½‖w‖² + (gamma/2)Σe²; multiplied by 2/gamma it is ours.
    mine = RLSRegressor(1 / 5.0, gamma=0.5, bias=False).fit(X, y)
    np.testing.assert_allclose(mine.dual_coef_, np.linalg.solve(K + np.eye(40) / 5.0, y), atol=1e-10)


@pytest.mark.parametrize(
    "model",
    [
        RLSRegressor(0.1),
        RLSRegressor(0.1, kernel="linear"),
        RLSRegressor(0.1, kernel="precomputed"),
        RLSClassifier(0.1),
        RLSClassifier(0.1, kernel="linear"),
        RLSRegressorCV(5, grid={"gamma": [0.1, 1.0]}),
        RLSClassifierCV(5, kernel="linear"),
    ],
    ids=str,
)
def test_files_and_pickles(model, tmp_path):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    X, y = (Gaussian(gamma=0.2)(X), y) if model.kernel == "precomputed" else (X, y)
    model = clone(model).fit(X, y if "Classifier" in type(model).__name__ else np.c_[y, X[:, 0]])
    mercer.save(model, tmp_path / "model.mercer")
    for copy in (mercer.load(tmp_path / "model.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert copy.certificate_ == model.certificate_
        assert copy.get_params().keys() == model.get_params().keys()
        if hasattr(model, "path_"):
            np.testing.assert_array_equal(copy.path_.loo_errors, model.path_.loo_errors)
            assert copy.path_.lam == model.lam_
            assert copy.best_params_ == model.best_params_
        if hasattr(model, "_sums_"):
            target = y[:9] if "Classifier" in type(model).__name__ else np.c_[y, X[:, 0]][:9]
            copy.partial_fit(X[:9], target)
            again = pickle.loads(pickle.dumps(model)).partial_fit(X[:9], target)
            np.testing.assert_array_equal(copy.coef_, again.coef_)


def test_fitted_attributes_are_read_only_and_documented():
    X, y = rng.normal(size=(30, 2)), rng.normal(size=30)
    models = [
        RLSRegressor().fit(X, y),
        RLSRegressor(kernel="linear").fit(X, y),
        RLSRegressorCV(4).fit(X, y),
        RLSClassifier().fit(X, y > 0),
        RLSClassifierCV(4).fit(X, y > 0),
    ]
    for model in models:
        for name, value in vars(model).items():
            if name.endswith("_") and not name.startswith("_"):
                assert name in type(model).__doc__, (type(model).__name__, name)
                if isinstance(value, np.ndarray):
                    assert not value.flags.writeable, name
        for name in model.get_params(deep=False):
            assert name in type(model).__doc__, (type(model).__name__, name)


@pytest.mark.parametrize("bias", [True, False])
def test_conjugate_gradients_find_the_factors_answer(bias):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(400, 2))
    weight = rng.integers(0, 4, 400).astype(float)
    options = {"lam": 0.05, "gamma": 0.3, "bias": bias}
    factor = RLSRegressor(solver="cholesky", **options).fit(X, Y, weight)
    steps = RLSRegressor(solver="cg", **options).fit(X, Y, weight)
    assert steps.solver_ == "cg"
    assert steps.converged_
    np.testing.assert_allclose(steps.predict(X), factor.predict(X), atol=1e-4)
    assert steps.certificate_.dual == pytest.approx(factor.certificate_.dual, rel=1e-8)
    assert 0 <= steps.certificate_.gap <= 1e-8 * steps.certificate_.dual


def test_a_matrix_that_does_not_fit_is_met_in_products():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(1500, 3))
    y = np.sin(X).sum(axis=1)
    small = RLSRegressor(0.1, cache_size=5).fit(X, y)
    assert small.solver_ == "cg"
    np.testing.assert_allclose(small.predict(X), RLSRegressor(0.1).fit(X, y).predict(X), atol=1e-4)
    with pytest.raises(ValueError, match=r"cg.*lam above 0.*eigen"):
        RLSRegressor(0.0, solver="cg").fit(X[:50], y[:50])


def test_verbose_says_what_is_factored(capsys):
    X = rng.normal(size=(30, 2))
    RLSRegressor(verbose=True).fit(X, X[:, 0])
    assert "float64 factor of 30 samples" in capsys.readouterr().out
