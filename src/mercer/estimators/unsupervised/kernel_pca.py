"""Kernel principal component analysis, and pre-images of points of feature space.

With normalised weights p_i = w_i/Σw, mean μ = Σ p_i φ(x_i) and the eigenpairs (λ, u) of
√p_i ⟨φ(x_i) − μ, φ(x_j) − μ⟩ √p_j, a component is the unit vector v = Σ a_i φ(x_i) with a_i = √p_i u_i/√λ, along which
the variance of the points is λ. Because u is orthogonal to √p, Σ a_i = 0 and the score is

    ⟨v, φ(x) − μ⟩ = Σ a_i k(x_i, x) − Σ a_i (Kp)_i

The pre-image of P = Σ_j c_j φ(x_j) is the x whose φ(x) is nearest to it. A linear kernel has x = Σ_j c_j x_j exactly.
For a Gaussian, ‖P − φ(x)‖² is smallest where g(x) = Σ_j c_j k(x_j, x) is largest, and where its gradient vanishes

    x = Σ_j c_j k(x_j, x) x_j / Σ_j c_j k(x_j, x)

(Mika et al., "Kernel PCA and de-noising in feature spaces", 1999). The fixed-point iteration starts from the vector at
which g is largest. A step that would decrease g is halved.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.state import Array, fitted
from mercer.estimators.unsupervised.learner import UnsupervisedMachine
from mercer.estimators.unsupervised.points import points_of, single_point_message, sum_to_zero
from mercer.kernels import Kernel
from mercer.places.expansion import Expansion
from mercer.runtime.parameters import integer
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, Indices, freeze, row_blocks
from mercer.samples.engine import like_input
from mercer.solvers.solution import ProgressReporter


@shared_docs
@dataclass(eq=False, repr=False)
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Kernel principal component analysis.

    Components have unit length in feature space, and scores equal those of scikit-learn's KernelPCA up to sign; here
    the sign is such that the largest coefficient is positive. Components whose variance is zero to rounding are
    dropped, so that there may be fewer than requested. The computation is exact for all samples and weights, unless
    `n_landmarks` is given: then samples are first projected onto the span of the landmarks in feature space.

    Parameters
    ----------
    n_components : int, optional
        Number of components; None means all.
    %(kernel)s
    %(samples of a space)s

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components_,)
        Eigenvalues of the centred kernel matrix, as in scikit-learn; with weights, Σw times the variance.
    explained_variance_ : array of shape (n_components_,)
        Variance of each score.
    explained_variance_ratio_ : array of shape (n_components_,)
        Fraction of the total variance of each score; if the kernel is not positive semi-definite, of the total over the
        directions of positive variance.
    n_components_ : int
        Number of components.
    function_ : list of mercer.rkhs.Function
        Components as functions, whose values are the scores.
    %(kernel with its numbers)s

    See Also
    --------
    KernelCCA : Canonical correlations of two views.
    SpectralClustering : Clustering in leading eigenvectors.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import KernelPCA
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> scores = KernelPCA(2, gamma=2.0).fit_transform(X)  # a line separates the circles now
    >>> bool(scores[y == 1, 0].min() > scores[y == 0, 0].max())
    True
    """

    n_components: int | None = None

    _FITTED = fitted(
        eigenvalues_=Array("outputs", required=True),
        explained_variance_=Array("outputs", required=True),
        explained_variance_ratio_=Array("outputs", required=True),
        _mean_=Array("vectors", required=True),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_components is not None:
            integer("n_components", self.n_components, 1, "the number of components; None means all")

    def _learn(self, fit: Fit, report: ProgressReporter) -> None:
        """Set the components and their variances from the eigenpairs of the centred kernel matrix."""
        points = points_of(fit, self.n_landmarks, 3, report)  # K, its copy, and a work space
        total = float(fit.merged.weight.sum())
        p = fit.merged.weight / total
        root = np.sqrt(p)
        mean = points.products(p[:, None])[:, 0]
        report(lambda: f"eigenvectors of {points.n:,} samples")
        values, u = points.eigenpairs(root, self.n_components, p, None)
        if len(values) == 0:
            raise ValueError(f"there is no principal component: {single_point_message(fit.n)}")
        a = sum_to_zero(root[:, None] * u / np.sqrt(values), p)
        self.eigenvalues_, self.explained_variance_ = freeze(total * values), freeze(values)
        self.explained_variance_ratio_ = freeze(values / points.variance(p))
        self._expansion_ = points.function(a, -(mean @ a))
        self._mean_ = freeze(points.combined(p[:, None])[:, 0].copy())

    @property
    def n_components_(self) -> int:
        """Number of components."""
        check_is_fitted(self)
        return len(self.eigenvalues_)

    @like_input
    def transform(self, X: Any) -> Floats:
        """Compute the scores of samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            Samples, as in `fit`. For a precomputed kernel, the kernel values with the training samples.

        Returns
        -------
        array of shape (n_samples, n_components_)
            Scores, a column for each component.
        """
        return self._decision(X)

    def inverse_transform(self, scores: ArrayLike) -> Floats:
        """Compute pre-images: samples whose images are nearest to the points of feature space with these scores.

        The result is exact for a linear kernel, and a local optimum for a Gaussian, by the fixed-point iteration of
        Mika et al. (1999). Other kernels raise a ValueError.

        Parameters
        ----------
        scores : array of shape (n_samples, n_components_)
            Scores, as returned by `transform`.

        Returns
        -------
        array of shape (n_samples, n_features)
            Pre-images.
        """
        check_is_fitted(self)
        points = check_array(scores, input_name="scores", dtype=np.float64)
        if points.shape[1] != self.n_components_:
            raise ValueError(f"scores have {points.shape[1]} columns, but there are {self.n_components_} components")
        return pre_images(self._expansion_, self._mean_, points)


def pre_images(components: Expansion, mean: Floats, scores: Floats) -> Floats:
    """Return a pre-image for each row of scores; `mean` are the coefficients of the mean of the samples."""
    kernel = components.kernel
    recipe = kernel.recipe() if kernel.accepts == "vectors" else None
    is_linear = recipe is not None and recipe.inner == "dot" and recipe.ending == "identity" and not recipe.normalise
    if not is_linear and (recipe is None or recipe.ending != "gaussian" or recipe.inner != "sqdist"):
        raise ValueError(f"inverse_transform needs a linear or a Gaussian kernel, not {kernel!r}")
    X = components.vectors
    C = scores @ np.asarray(components.coefficients).T + mean
    if is_linear:
        return _dense_product(C, X)
    out = np.empty((len(C), X.shape[1]))
    for block in row_blocks(len(C), 8 * len(mean)):
        out[block] = _fixed_points(kernel, X, C[block])
    return out


def _dense_product(C: Floats, X: Any) -> Floats:
    """Return C @ X; the transposed product keeps a CSR matrix X as the left factor."""
    return np.asarray((X.T @ C.T).T)


def _best_vectors(kernel: Kernel, X: Any, C: Floats) -> Indices:
    """Return, for each row of C, the index of the vector x at which g(x) = Σ_j c_j k(x_j, x) is largest."""
    n = C.shape[1]
    best, largest = np.zeros(len(C), dtype=np.intp), np.full(len(C), -np.inf)
    for block in row_blocks(n, 8 * n):
        values = C @ kernel(X, X[block])
        index = np.argmax(values, axis=1)
        top = values[np.arange(len(C)), index]
        best = np.where(top > largest, block.start + index, best)
        largest = np.maximum(largest, top)
    return best


def _fixed_points(kernel: Kernel, X: Any, C: Floats) -> Floats:
    """Return the pre-image of each row of C under a Gaussian, by the fixed-point iteration of the module docstring."""
    best = _best_vectors(kernel, X, C)
    Z = np.asarray(X[best].toarray() if hasattr(X, "toarray") else X[best], dtype=np.float64)
    spread = float(np.abs(Z).max(initial=0.0)) + 1.0
    K = C * kernel(Z, X)
    value = K.sum(axis=1)
    moving_rows = np.arange(len(Z))
    for _ in range(300):
        with np.errstate(divide="ignore", invalid="ignore"):
            step = _dense_product(K[moving_rows], X) / value[moving_rows, None] - Z[moving_rows]
        is_large = np.abs(step).max(axis=1) > 1e-9 * spread
        moving_rows, step = moving_rows[is_large], step[is_large]
        for _ in range(30):
            trial = C[moving_rows] * kernel(Z[moving_rows] + step, X)
            is_worse = ~(trial.sum(axis=1) >= value[moving_rows])
            if not is_worse.any():
                break
            step[is_worse] *= 0.5
        moving_rows, step, trial = moving_rows[~is_worse], step[~is_worse], trial[~is_worse]
        if len(moving_rows) == 0:
            break
        Z[moving_rows] += step
        K[moving_rows] = trial
        value[moving_rows] = trial.sum(axis=1)
    return Z
