"""A linear kernel's samples are their own coordinates: no kernel matrix, and no digits lost far from the origin."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import linalg
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score

import mercer
from mercer import KernelCCA, KernelKMeans, KernelPCA, mmd_test
from mercer.kernels import Linear, Polynomial

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)) * [1.0, 2.0, 3.0]
NEW = rng.normal(size=(10, 3))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e8])
@pytest.mark.parametrize("kernel", [Linear(), 2.5 * Linear()], ids=str)
def test_principal_components_of_samples_far_away(kernel, offset):
    far, scale = X + offset, kernel([[1.0]])[0, 0]
    model, peer = KernelPCA(3, kernel=kernel).fit(far), PCA(3).fit(far - offset)
    rtol = 1e-9 + 1e-15 * offset
    np.testing.assert_allclose(model.explained_variance_, scale * peer.explained_variance_ * 39 / 40, rtol=10 * rtol)
    np.testing.assert_allclose(model.explained_variance_ratio_.sum(), 1.0, rtol=1e-12)
    scores = model.transform(NEW + offset)
    expected = np.sqrt(scale) * np.abs(peer.transform((NEW + offset) - offset))
    np.testing.assert_allclose(np.abs(scores), expected, atol=1e-8 + 1e-15 * offset * 100)
    np.testing.assert_allclose(model.inverse_transform(scores), NEW + offset, rtol=1e-12, atol=1e-8)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_clusters_of_samples_far_away(offset, tmp_path):
    far = X + offset
    model = KernelKMeans(3, kernel="linear", random_state=0).fit(far)
    means = np.array([(far - offset)[model.labels_ == c].mean(axis=0) for c in range(3)])
    distances = np.linalg.norm((far - offset)[:, None] - means, axis=2)
    assert model.inertia_ == pytest.approx(float((distances.min(axis=1) ** 2).sum()), rel=1e-6)
    np.testing.assert_array_equal(model.predict(far), np.argmin(distances, axis=1))
    np.testing.assert_allclose(model.transform(far), distances, atol=1e-6)
    if offset == 0:
        np.testing.assert_allclose(model.transform(sp.csr_array(far)), distances, atol=1e-6)
    mercer.save(model, tmp_path / "model.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "model.mercer").transform(far), model.transform(far))


def test_two_views_far_away():
    Y = X[:, :1] + 0.5 * rng.normal(size=(40, 1))
    found = KernelCCA(1, kernel="linear", kappa=1e-9).fit(X + 1e7, Y - 1e7)
    centred = [linalg.orth(A - A.mean(axis=0)) for A in (X, Y)]
    assert found.correlations_[0] == pytest.approx(linalg.svdvals(centred[0].T @ centred[1])[0], rel=1e-6)


def test_two_samples_far_away():
    A, B = rng.normal(size=(50, 1)), rng.normal(size=(50, 1)) + 5
    near = mmd_test(A, B, kernel="linear", random_state=0)
    far = mmd_test(A + 1e8, B + 1e8, kernel="linear", random_state=0)
    assert far.p_value == near.p_value == 1 / 1001
    assert far.statistic == pytest.approx(near.statistic, rel=1e-6)
    with pytest.warns(UserWarning, match="rounding decides this test"):
        mmd_test(A + 1e7, B + 1e7, kernel=Polynomial(2, 1.0, 1.0), random_state=0)


def test_it_is_what_a_kernel_matrix_gives():
    K, between = X @ X.T, NEW @ X.T
    mine, given = (KernelPCA(3, kernel=kernel) for kernel in ("linear", "precomputed"))
    np.testing.assert_allclose(mine.fit(X).eigenvalues_, given.fit(K).eigenvalues_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(mine.transform(NEW)), np.abs(given.transform(between)), atol=1e-10)
    mine, given = (KernelKMeans(3, kernel=kernel, random_state=0) for kernel in ("linear", "precomputed"))
    assert adjusted_rand_score(mine.fit(X).labels_, given.fit(K).labels_) == 1
    assert adjusted_rand_score(mine.predict(NEW), given.predict(between)) == 1


def test_no_kernel_matrix_is_needed():
    """20,000 samples within 10 MB beyond the data, where a kernel matrix would take 3.2 GB."""
    many = np.random.default_rng(0).normal(size=(20_000, 3))
    assert KernelPCA(3, kernel="linear", cache_size=10).fit(many).n_components_ == 3


@pytest.mark.parametrize(("scale", "reason"), [(1e200, "exceed float64"), (1e-200, "vanish in float64")])
def test_what_float64_cannot_hold_is_refused(scale, reason):
    """NaN would be compared as smaller than every statistic: p as small as it can be."""
    for ask in (KernelPCA(kernel="linear").fit, KernelKMeans(2, kernel="linear").fit):
        with pytest.raises(ValueError, match=f"{reason}.*Scale the features"):
            ask(scale * X)
    with pytest.raises(ValueError, match=reason):
        mmd_test(scale * X, scale * X[:20] + scale, kernel="linear")


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_extreme_scales(scale):
    ratios = KernelPCA(kernel="linear").fit(X).explained_variance_ratio_
    np.testing.assert_allclose(KernelPCA(kernel="linear").fit(scale * X).explained_variance_ratio_, ratios, rtol=1e-6)
