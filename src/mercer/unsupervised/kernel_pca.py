"""Principal components in feature space.

With shares p_i = w_i/Σw, mean μ = Σ p_i φ(x_i) and the eigenpairs (λ, u) of √p_i ⟨φ(x_i) − μ, φ(x_j) − μ⟩ √p_j, a
component is the unit vector v = Σ a_i φ(x_i) with a_i = √p_i u_i/√λ, along which the points vary by λ. Because u is
orthogonal to √p, Σ a_i = 0 and the score is

    ⟨v, φ(x) − μ⟩ = Σ a_i k(x_i, x) − Σ a_i (Kp)_i
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from mercer.arrays import Floats, freeze
from mercer.fitting.families.shared_docs import shared_docs
from mercer.fitting.pipeline.fit import Fit
from mercer.fitting.pipeline.state import Array, fitted
from mercer.parameters import integer, store
from mercer.solution import Report
from mercer.unsupervised.eigenpairs import balanced
from mercer.unsupervised.learner import Learner
from mercer.unsupervised.points import one_point, points_of
from mercer.unsupervised.pre_image import pre_images

# K, its scaled copy, and LAPACK's or the Krylov space's.
_MATRICES = 3


@shared_docs
class KernelPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Learner):  # type: ignore[misc]  # scikit-learn is untyped
    """Kernel principal component analysis: the directions of feature space along which samples vary most.

    Components have unit length in feature space, and scores are those of scikit-learn's KernelPCA up to sign; here the
    sign is such that the largest coefficient is positive. Components along which nothing varies, to rounding, are left
    out, so that there may be fewer than asked for. All samples and weights enter exactly, unless `n_landmarks` are
    asked for: then samples are first projected onto the span of some of them in feature space.

    Parameters
    ----------
    n_components : int, optional
        The number of components; None means all.
    %(kernel)s
    %(samples of a space)s

    Attributes
    ----------
    eigenvalues_ : array of shape (n_components_,)
        Of the centred kernel matrix, as in scikit-learn; with weights, Σw times the variance.
    explained_variance_ : array of shape (n_components_,)
        The variance of each score.
    explained_variance_ratio_ : array of shape (n_components_,)
        Its share of the variance in all directions; in those of positive square, where the kernel is not positive
        semi-definite.
    n_components_ : int
        How many there are.
    kernel_ : Kernel
        The kernel with its parameters as numbers.
    function_ : list of mercer.rkhs.Function
        The components as functions, whose values are the scores.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from mercer import KernelPCA
    >>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
    >>> scores = KernelPCA(2, gamma=2.0).fit_transform(X)  # a line separates the circles now
    >>> bool(scores[y == 1, 0].min() > scores[y == 0, 0].max())
    True
    """

    FITTED = fitted(
        eigenvalues_=Array("outputs", required=True),
        explained_variance_=Array("outputs", required=True),
        explained_variance_ratio_=Array("outputs", required=True),
        _mean_=Array("vectors", required=True),
    )

    def __init__(
        self,
        n_components: int | None = None,
        *,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        n_landmarks: int | None = None,
        cache_size: float = 1000,
        verbose: bool = False,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        store(self, locals())

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_components is not None:
            integer("n_components", self.n_components, 1, "the number of components; None means all")

    def _learn(self, fit: Fit, report: Report) -> None:
        points = points_of(fit, self.n_landmarks, _MATRICES, report)
        total = float(fit.merged.weight.sum())
        p = fit.merged.weight / total
        root = np.sqrt(p)
        mean = points.products(p[:, None])[:, 0]
        report(lambda: f"eigenvectors of {points.n:,} samples")
        values, u = points.eigenpairs(root, self.n_components, p, None)
        if len(values) == 0:
            raise ValueError(f"there is no principal component: {one_point(fit.n)}")
        a = balanced(root[:, None] * u / np.sqrt(values), p)
        self.eigenvalues_, self.explained_variance_ = freeze(total * values), freeze(values)
        self.explained_variance_ratio_ = freeze(values / points.variance(p))
        self._expansion_ = points.function(a, -(mean @ a))
        self._mean_ = freeze(points.combined(p[:, None])[:, 0].copy())

    @property
    def n_components_(self) -> int:
        """How many components there are."""
        check_is_fitted(self)
        return len(self.eigenvalues_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> Floats:
        """The scores of samples, a column for each component.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            As in `fit`; of a precomputed kernel, its values between these and the training samples.
        """
        return self._decision(X)

    def inverse_transform(self, scores: Any) -> Floats:
        """Samples whose images are nearest to the points of feature space with these scores.

        Exact for a linear kernel. For a Gaussian it is the fixed point of Mika and others (1999), a local optimum.

        Parameters
        ----------
        scores : array of shape (n_samples, n_components_)
            As `transform` gives them.
        """
        check_is_fitted(self)
        given = check_array(scores, input_name="scores", dtype=np.float64)
        if given.shape[1] != self.n_components_:
            raise ValueError(f"scores have {given.shape[1]} columns, but there are {self.n_components_} components")
        return pre_images(self._expansion_, self._mean_, given)
