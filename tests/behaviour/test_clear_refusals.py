"""Refusals that name what to write instead."""

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

import mercer
from mercer import SVC, GaussianProcessClassifier, GaussianProcessRegressor, TunedSVC, paths
from mercer.inspection.features import Nystrom, RandomFourier
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial, Spectrum

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 2))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize("name", ["leave_one_out", "xi_alpha", "span_estimate", "span_bound", "radius_margin"])
def test_a_search_is_told_to_give_its_machine(name):
    search = TunedSVC({"C": [1.0]}, cv=3).fit(X, Y)
    function = getattr(mercer if name == "leave_one_out" else paths, name)
    with pytest.raises((TypeError, ValueError), match="best_estimator_"):
        function(search, X, Y)
    function(search.best_estimator_, X, Y)


def test_certify_of_a_search():
    search = TunedSVC({"C": [1.0]}, cv=3).fit(X, Y)
    with pytest.raises(TypeError, match="best_estimator_"):
        mercer.certify(search, X, Y, np.zeros(40))


def test_an_estimate_that_is_not_of_squared_slacks_names_the_one_that_is():
    with pytest.raises(ValueError, match="radius_margin and leave_one_out take slack='l2'"):
        paths.xi_alpha(SVC(slack="l2"), X, Y)
    assert paths.radius_margin(SVC(slack="l2"), X, Y).error > 0


@pytest.mark.parametrize("name", ["xi_alpha", "span_estimate", "span_bound", "radius_margin"])
def test_estimates_of_a_hard_margin_name_the_bound_that_takes_it(name):
    hard = SVC(C=np.inf, kernel="linear").fit(X, Y)
    with pytest.raises(ValueError, match=r"insight\(X, y\).bounds\['leave one out'\]"):
        getattr(paths, name)(hard, X, Y)
    centre_square = mercer.theory.enclosing_ball(X, kernel="linear").radius ** 2
    found = hard.insight(X, Y).bounds["leave one out"].value
    assert found == pytest.approx(4 * centre_square * np.sum(hard.coef_**2) / 40)


@pytest.mark.parametrize("kernel", ["rbf", "poly", Gaussian(gamma=0.5)], ids=str)
def test_least_squares_with_another_kernel_say_why_they_take_no_further_samples(kernel):
    for machine in (mercer.RLSRegressor(kernel=kernel), mercer.RLSClassifier(kernel=kernel)):
        for name in ("partial_fit", "forget"):
            with pytest.raises(AttributeError, match=f"no attribute '{name}'") as found:
                getattr(machine, name)
            assert "need a linear kernel" in str(found.value.__cause__)


def test_features_of_strings():
    with pytest.raises(ValueError, match="not a kernel of vectors"):
        Nystrom(Spectrum(2)).fit(["aab", "bba"])


def test_random_features_of_another_kernel_name_the_map_that_takes_it():
    with pytest.raises(ValueError, match="neither a Gaussian kernel nor a multiple of one; `Nystrom` takes any kernel"):
        RandomFourier(Laplacian(gamma=0.5)).fit(X)
    Nystrom(Laplacian(gamma=0.5)).fit(X)


def test_functions_of_a_space():
    f = SVC().fit(X, Y).function_
    with pytest.raises(TypeError, match="3 is no function of a kernel's space"):
        f.inner(3)
    with pytest.raises(TypeError, match=r"projected_on\(\[g\]\)"):
        f.projected_on(f)
    assert f.projected_on([f]).distance(f) <= 1e-12 * f.norm


@pytest.mark.parametrize("kernel", [Linear() + 1, Polynomial(2, 1.0, 1.0) + 1, 2 * Linear() + 1])
def test_a_polynomial_with_a_constant_says_what_a_polynomial_says(kernel):
    assert (kernel.universal, kernel.strictly_positive_definite) == ("no", "no")
    assert np.linalg.matrix_rank(kernel(X)) < len(X)  # finitely many features


def test_other_constants_add_no_knowledge():
    assert (Gaussian(gamma=1.0) + 1).universal == "yes"
    assert (Polynomial(2) + 1).universal == "unknown"  # its gamma comes from samples, and may be 0


@pytest.mark.parametrize("machine", [GaussianProcessRegressor, GaussianProcessClassifier])
@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(1.0), "RBF.*are not optimised"),
        (2 * Gaussian(M=np.eye(2)) + 1, "matrix kernel__kernel__M is not optimised"),
    ],
)
def test_a_process_says_which_parameters_it_does_not_learn(machine, kernel, words):
    with pytest.warns(UserWarning, match=words):
        machine(kernel=kernel).fit(X, Y)
    machine(kernel=kernel, optimise=False).fit(X, Y)
    machine(kernel=Gaussian(gamma=1.0).on([0]) * Gaussian(gamma=1.0).on([1])).fit(X, Y)
