"""Gaussian process classification against scikit-learn's Laplace, exact integrals and differences.

scikit-learn's checks: tests/estimators/gaussian_process/test_contract.py. Tools: tests/tools.
Refusals: tests/behaviour/test_clear_refusals.py. Files: tests/claims/test_false_files.py.
Exports: tests/files/export/test_every_export.py. Insight: tests/notes/theory/test_insight.py.
"""

import pickle

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit
from sklearn.gaussian_process import GaussianProcessClassifier as Theirs
from sklearn.gaussian_process import kernels as theirs

import mercer
from mercer import GaussianProcessClassifier, KernelMachineClassifier
from mercer.estimators.gaussian_process.laplace import LaplaceProcess, mean_sigmoid
from mercer.files.models import read_model
from mercer.kernels import Gaussian, Linear

rng = np.random.default_rng(1)
X, NEW = rng.normal(size=(40, 2)), rng.normal(size=(15, 2)) * 2
LABELS = (np.sin(2 * X[:, 0]) + 0.5 * X[:, 1] + 0.5 * rng.normal(size=40) > 0).astype(int)
SIGNS = 2.0 * LABELS - 1
THREE = np.digitize(X[:, 0] + 0.3 * rng.normal(size=40), [-0.5, 0.5])
OURS, THEIRS = 2.5 * Gaussian(sigma=0.7), theirs.ConstantKernel(2.5) * theirs.RBF(0.7)


def mode(K, signs):
    """R&W's algorithm 3.1, to rounding; scikit-learn ends where the likelihood changes by less than 1e-10."""
    f = np.zeros(len(K))
    for _ in range(50):
        pi = expit(f)
        W = pi * (1 - pi)
        b = W * f + (signs + 1) / 2 - pi
        root = np.sqrt(W)
        B = np.eye(len(K)) + root[:, None] * K * root
        f = K @ (b - root * np.linalg.solve(B, root * (K @ b)))
    return f


def peer_latent(binary, new):
    """R&W's algorithm 3.2 from what scikit-learn keeps."""
    K = binary.kernel_(binary.X_train_, new)
    v = np.linalg.solve(binary.L_, binary.W_sr_[:, None] * K)
    return K.T @ (binary.y_train_ - binary.pi_), binary.kernel_.diag(new) - np.sum(v * v, axis=0)


def test_mode_variance_likelihood_and_gradient_are_scikit_learns():
    ours = GaussianProcessClassifier(kernel=OURS, optimise=False).fit(X, LABELS)
    peer = Theirs(THEIRS, optimizer=None, max_iter_predict=500).fit(X, LABELS)
    mean, variance = ours.latent_mean_and_variance(NEW)
    wanted = peer_latent(peer.base_estimator_, NEW)
    np.testing.assert_allclose(mean, wanted[0], atol=1e-6)
    np.testing.assert_allclose(variance, wanted[1], atol=1e-6)
    value, slopes = peer.base_estimator_.log_marginal_likelihood(THEIRS.theta, eval_gradient=True)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(value, rel=1e-8)
    found = LaplaceProcess(X, SIGNS, np.ones(40), kernel=OURS).log_likelihood_gradient
    np.testing.assert_allclose([2.5 * found["factor"], 0.7 * found["kernel__sigma"]], slopes, rtol=1e-6)
    # Its probabilities are those of an approximate integral.
    np.testing.assert_allclose(ours.predict_proba(NEW), peer.predict_proba(NEW), atol=2e-3)
    np.testing.assert_array_equal(ours.predict(NEW), peer.predict(NEW))
    assert ours.certificate_.relative_gap < 1e-9


def test_the_mode_is_the_logistic_machine():
    ours = GaussianProcessClassifier(kernel=OURS, optimise=False).fit(X, THREE)
    machine = KernelMachineClassifier("logistic", 0.5, kernel=OURS, bias=False, tol=1e-12).fit(X, THREE)
    np.testing.assert_allclose(ours.latent_mean_and_variance(NEW)[0], machine.decision_function(NEW), atol=1e-5)


def test_several_classes_are_scikit_learns_one_against_the_rest():
    ours = GaussianProcessClassifier(kernel=OURS, optimise=False).fit(X, THREE)
    peer = Theirs(THEIRS, optimizer=None, max_iter_predict=500).fit(X, THREE)
    np.testing.assert_allclose(ours.predict_proba(NEW), peer.predict_proba(NEW), atol=4e-3)
    latents = [peer_latent(one, NEW) for one in peer.base_estimator_.estimators_]
    found = ours.latent_mean_and_variance(NEW)
    for k, (mean, variance) in enumerate(latents):
        np.testing.assert_allclose(found[0][:, k], mean, atol=1e-5)
        np.testing.assert_allclose(found[1][:, k], variance, atol=1e-5)
        own = mode(OURS(X), np.where(k == THREE, 1.0, -1.0))
        np.testing.assert_allclose(ours.latent_mean_and_variance(X)[0][:, k], own, rtol=1e-8, atol=1e-9)
    wanted = sum(one.log_marginal_likelihood_value_ for one in peer.base_estimator_.estimators_)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(wanted, rel=1e-8)
    assert ours.laplace_correction_.shape == (3,)
    np.testing.assert_array_equal(ours.decision_function(NEW).argmax(axis=1), ours.predict_proba(NEW).argmax(axis=1))


def test_the_most_likely_kernel_of_two_classes_is_scikit_learns():
    ours = GaussianProcessClassifier(kernel=Gaussian(sigma=1.0)).fit(X, LABELS)
    peer = Theirs(theirs.ConstantKernel(1.0) * theirs.RBF(1.0), max_iter_predict=500).fit(X, LABELS)
    assert ours.log_marginal_likelihood_value_ == pytest.approx(peer.log_marginal_likelihood_value_, abs=1e-4)


@pytest.mark.parametrize("kernel", [OURS, Linear() + 0.5 + Gaussian(gamma=0.3)], ids=repr)
def test_derivatives_are_those_of_differences(kernel):
    weight = rng.integers(1, 4, size=40).astype(float)
    process = LaplaceProcess(X, SIGNS, weight, kernel=kernel)
    for name, slope in process.log_likelihood_gradient.items():
        h, ends = 1e-5, []
        for step in (h, -h):
            changed = pickle.loads(pickle.dumps(kernel)).set_params(**{name: kernel.get_params()[name] + step})
            ends.append(LaplaceProcess(X, SIGNS, weight, kernel=changed).log_likelihood)
        assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-5, abs=1e-6)


def test_a_weight_is_a_repetition():
    weight = rng.integers(1, 4, size=40)
    weighted = LaplaceProcess(X, SIGNS, weight.astype(float), kernel=OURS)
    again = np.repeat(np.arange(40), weight)
    repeated = LaplaceProcess(X[again], SIGNS[again], np.ones(len(again)), kernel=OURS)
    assert weighted.log_likelihood == pytest.approx(repeated.log_likelihood, rel=1e-9)
    for one, other in zip(weighted.latent(NEW), repeated.latent(NEW), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-8)
    assert weighted.correction == pytest.approx(repeated.correction, rel=1e-6)


@pytest.mark.parametrize("scale", [0.3, 1.0])
@pytest.mark.parametrize("signs", [(1.0, -1.0), (1.0, 1.0)])
def test_the_correction_is_most_of_what_is_left_out(scale, signs):
    """Two samples of weight 3, whose integral is computed; each of the three terms is a large part of some."""
    A, kernel = np.array([[0.0], [0.7]]), scale * Gaussian(sigma=1.0)
    process = LaplaceProcess(A, np.array(signs), np.array([3.0, 3.0]), kernel=kernel)
    grid = np.linspace(-12 * np.sqrt(scale), 12 * np.sqrt(scale), 801)
    a, b = np.meshgrid(grid, grid, indexing="ij")
    density = stats.multivariate_normal(np.zeros(2), kernel(A)).pdf(np.stack([a, b], axis=-1))
    total = np.sum(density * expit(signs[0] * a) ** 3 * expit(signs[1] * b) ** 3) * (grid[1] - grid[0]) ** 2
    left = np.log(total) - process.log_likelihood
    assert abs(process.correction - left) < 0.12 * abs(left)


def test_averages_are_integrals():
    for mean, variance in ((0.3, 0.5), (-2.0, 30.0), (1.0, 1e4), (5.0, 0.0), (700.0, 1e-8), (-300.0, 1e4), (2.0, 1e10)):
        wanted = expit(mean)
        if variance:
            scale = np.sqrt(variance)
            wanted = integrate.quad(
                lambda t, mean=mean, scale=scale: expit(mean + scale * t) * np.exp(-t * t / 2) / np.sqrt(2 * np.pi),
                -12,
                12,
                points=[-mean / scale] if abs(mean) < 12 * scale else None,
                limit=500,
            )[0]
        assert mean_sigmoid(np.array([mean]), np.array([variance]))[0] == pytest.approx(wanted, abs=1e-9)


def test_files_and_pickles(tmp_path):
    model = GaussianProcessClassifier().fit(X, np.array(["a", "b", "c"])[THREE])
    mercer.save(model, tmp_path / "process.mercer")
    for again in (mercer.load(tmp_path / "process.mercer"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(again.predict_proba(NEW), model.predict_proba(NEW), atol=1e-9)
        assert (again.predict(NEW) == model.predict(NEW)).all()


@pytest.mark.parametrize("labels", [LABELS, THREE])
def test_tools_speak_of_the_latent_mean_by_name(labels, tmp_path):
    """`decision_function` averages over the process; what is explained is its mean, which is public, and says so."""
    model = GaussianProcessClassifier(kernel=OURS, optimise=False).fit(X, labels)

    def mean(rows):
        return model.latent_mean_and_variance(rows)[0].reshape(len(rows), -1)

    assert np.abs(mean(NEW) - model.decision_function(NEW).reshape(len(NEW), -1)).max() > 0.1
    found = model.explain(NEW, background=X[:5])
    total = (found.base_values + found.values.sum(axis=1)).reshape(len(NEW), -1)
    np.testing.assert_allclose(total, mean(NEW), atol=1e-10)
    asked = model.partial_dependence(X, 0, grid=[0.25])
    moved = X.copy()
    moved[:, 0] = 0.25
    np.testing.assert_allclose(np.ravel(asked.average), mean(moved).mean(axis=0), atol=1e-10)
    step = 1e-5
    slopes = [np.abs(mean(X + step * e) - mean(X - step * e)).mean(axis=0) / (2 * step) for e in np.eye(2)]
    np.testing.assert_allclose(model.gradient_importance(X).reshape(2, -1), slopes, rtol=1e-6)
    for row, why in enumerate(model.reasons(NEW[:3], n=1000)):
        own = mean(NEW[:3])[row]
        own = own if len(model.classes_) > 2 else np.array([-own[0], own[0]])
        wanted = own[model.classes_.tolist().index(why.prediction)]
        assert why.contributions.sum() == pytest.approx(wanted, abs=1e-10)
        assert "latent mean" in str(why)
    margins = model.margins(X, labels)
    parts = [margins] if len(model.classes_) == 2 else list(margins)
    for k, part in enumerate(parts):
        np.testing.assert_allclose(part.decision_values, mean(X)[:, k], atol=1e-12)
        assert "latent mean > 0" in str(part)
    last = model.classes_[-1]
    assert found.of_class(last).output_names == (f"latent mean of {last}",)
    for one in (found, asked):
        assert one.function == "latent mean"
        assert all(name.startswith("latent mean of") for name in one.output_names)
    assert "latent mean" in str(found)
    # Other machines speak of f.
    other = KernelMachineClassifier(kernel=OURS).fit(X, labels)
    assert other.explain(NEW, background=X[:5]).function == "f"
    # A model from a file decides by `decision_function`.
    mercer.save(model, tmp_path / "m.mercer")
    wanted = model.decision_function(NEW).reshape(len(NEW), -1)
    np.testing.assert_allclose(read_model(tmp_path / "m.mercer").decisions(NEW), wanted, atol=1e-12)
