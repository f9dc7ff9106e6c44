"""Kernel canonical correlation analysis of two views of the same samples.

    maximise  cov(f(x), g(y))  subject to  var f(x) + κ‖f‖² = 1,  var g(y) + κ‖g‖² = 1

where covariance and variances have the normalised weights p_i = w_i/Σw. With the eigenpairs (s, U) of
√p_i ⟨φ(x_i) − μ, φ(x_j) − μ⟩ √p_j for either view, the solutions are the singular vectors L and R of

    D_x U_x' U_y D_y,   D = diag √(s/(s + κ))

with √p_i f(x_i) = U_x D_x L, and likewise for g. For linear kernels and κ → 0 this is Hotelling's analysis.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from scipy import linalg
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.estimators.fitting.pipeline.class_spec import ClassSpec, check_state, declared, state_of
from mercer.estimators.fitting.pipeline.fit import Fit
from mercer.estimators.fitting.pipeline.state import Array, AttributeSpec, expect, fitted
from mercer.estimators.unsupervised.learner import SampleReader, UnsupervisedMachine
from mercer.estimators.unsupervised.points import Points, points_of, single_point_message, sum_to_zero
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, kernel_accepts
from mercer.places.eigenpairs import n_positive, signs
from mercer.places.expansion import Expansion
from mercer.runtime.parameters import integer, positive
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats, freeze, is_sparse
from mercer.samples.engine import like_input
from mercer.solvers.solution import ProgressReporter


class _View(SampleReader):
    """The second view of a KernelCCA, whose samples are read like those of any machine."""

    @classmethod
    def of(cls, model: Any) -> _View:
        """Return the unfitted second view of a KernelCCA."""
        shared_names = ("degree", "gamma", "coef0", "n_landmarks", "cache_size", "random_state", "n_jobs")
        kernel = model.kernel if model.kernel_y is None else model.kernel_y
        return cls(kernel=kernel, **{name: getattr(model, name) for name in shared_names})

    def rows(self, y: Any) -> Any:
        """Return y with two dimensions; a one-dimensional array becomes one column."""
        if kernel_accepts(self.kernel) != "vectors" or is_sparse(y) or hasattr(y, "columns"):
            return y
        y = np.asarray(y)
        return y.reshape(-1, 1) if y.ndim == 1 else y

    def scores(self, y: Any) -> Floats:
        """Return the values of the functions of this view at new samples."""
        return self._decision(self.rows(y))


@dataclass(frozen=True)
class _SecondView(AttributeSpec):
    """Spec of the second view, whose attributes are stored under names that begin with "y."."""

    def keys(self, name: str) -> tuple[str, ...]:
        return tuple(f"y.{key}" for attribute, spec in declared(_View).items() for key in spec.keys(attribute))

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        """Return what a file stores for the attribute, by the names of its entries."""
        header, arrays = state_of(value)
        return {f"y.{key}": part for key, part in (header["fitted"] | arrays).items()}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Build the attribute's value from what a file stores for it."""
        second = _View.of(model)
        ClassSpec.of(_View).set_fitted(second, {key.removeprefix("y."): part for key, part in parts.items()})
        return second

    def check(self, name: str, value: Any, model: Any) -> None:
        """Raise ModelFormatError unless the value fits this spec."""
        check_state(value)
        n_second, n_first = len(value._expansion_.b), len(model._expansion_.b)
        expect(n_second == n_first, f"the first view has {n_first} functions and the second {n_second}")


@shared_docs
@dataclass(eq=False, repr=False)
class KernelCCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedMachine):  # type: ignore[misc]  # scikit-learn is untyped
    """Kernel canonical correlation analysis: maximally correlated functions of two views of the samples.

    Maximises cov(f(x), g(y)) over functions with var f + κ‖f‖² = var g + κ‖g‖² = 1, one pair after another. Without κ a
    kernel of high dimension would find a correlation of 1 in any data. Each view may consist of vectors, strings or a
    kernel matrix, according to its kernel.

    Parameters
    ----------
    n_components : int, default=2
        Number of pairs of functions; fewer are computed if the views have fewer dimensions.
    kappa : float, default=0.01
        Regularisation strength κ > 0, the factor of ‖f‖² relative to the variance.
    kernel : str, Kernel or callable, default="rbf"
        Kernel of the first view, as in `SVC`.
    kernel_y : str, Kernel, callable or None, default=None
        Kernel of the second view; None means the same as for the first.
    %(named kernel)s
    %(samples of a space)s

    Attributes
    ----------
    correlations_ : array of shape (n_components_,)
        Correlations between the scores of the two views on the training samples.
    regularized_correlations_ : array of shape (n_components_,)
        Maxima of cov(f(x), g(y)) under the constraints.
    n_components_ : int
        Number of pairs of functions.
    kernel_ : Kernel
        Kernel of the first view with numerical parameters.
    kernel_y_ : Kernel
        Kernel of the second view with numerical parameters.
    n_features_in_ : int
        Number of features of the first view.
    feature_names_in_ : array of shape (n_features_in_,)
        Names of the features of the first view, if they are all strings.

    See Also
    --------
    KernelPCA : Principal components of a single view.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelCCA
    >>> rng = np.random.default_rng(0)
    >>> angle = rng.uniform(0, 2 * np.pi, 300)
    >>> X = np.column_stack([np.cos(angle), np.sin(angle)])
    >>> y = (angle - np.pi) ** 2  # not a linear function of X
    >>> KernelCCA(1, kappa=0.01).fit(X, y).correlations_.round(2)
    array([1.])
    """

    n_components: int = 2
    _: KW_ONLY
    kappa: float = 0.01
    kernel_y: KernelLike | None = None

    _FITTED = fitted(
        correlations_=Array("outputs", required=True),
        regularized_correlations_=Array("outputs", required=True),
        _second_=_SecondView(required=True),
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        integer("n_components", self.n_components, 1, "the number of pairs of functions")
        positive("kappa", self.kappa, "without it any data have a correlation of 1 in a space of high dimension")

    @shared_docs
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:  # type: ignore[override]  # y is the second view
        """Fit the functions to two views of the same samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            First view: vectors, a list of strings or a square kernel matrix, according to its kernel.
        y : array or CSR matrix of shape (n_samples, n_targets), or array of shape (n_samples,)
            Second view: vectors, numbers, a list of strings or a square kernel matrix, according to its kernel.
        %(repetitions)s
        """
        super().fit(X, y, sample_weight)
        return self

    def _learn_from(self, X: Any, y: Any, sample_weight: Any, report: ProgressReporter) -> None:
        """Solve the problem of the module docstring for the views X and y."""
        if y is None:
            raise ValueError("KernelCCA requires y to be passed, but the target y is None: it is the second view")
        # 1. Read both views.
        second_view = _View.of(self)
        fit_x = Fit.of(self, X, None, sample_weight)
        y = second_view.rows(y)
        check_consistent_length(fit_x.X, y)
        with _naming_second_view():
            fit_y = Fit.of(second_view, y, None, sample_weight)
        assert fit_x.kernel is not None
        assert fit_y.kernel is not None
        p = fit_x.weight / fit_x.weight.sum()
        # 2. Compute the eigenpairs of each view. Four matrices: K, its scaled copy, its eigenvectors and LAPACK's work
        #    space.
        points_x, points_y = (points_of(fit, self.n_landmarks, 4, report) for fit in (fit_x, fit_y))
        report(lambda: f"eigenvectors of two views of {len(p):,} samples")
        view_x, view_y = _ViewSpectrum.of(points_x, p), _ViewSpectrum.of(points_y, p)
        # 3. Compute the singular vectors of D_x U_x'U_y D_y, and scale the functions to unit variance.
        D_x, D_y = (np.sqrt(view.values / (view.values + self.kappa)) for view in (view_x, view_y))
        left, rho, right = linalg.svd(D_x[:, None] * (view_x.U.T @ view_y.U) * D_y, full_matrices=False)
        k = min(self.n_components, n_positive(rho, len(p)))
        if k == 0:
            raise ValueError(
                "the views are uncorrelated: no function of one view is correlated with a function of the other"
            )
        left, right = D_x[:, None] * left[:, :k], D_y[:, None] * right[:k].T
        deviation_x, deviation_y = np.linalg.norm(left, axis=0), np.linalg.norm(right, axis=0)
        self.regularized_correlations_ = freeze(rho[:k].copy())
        self.correlations_ = freeze(rho[:k] / (deviation_x * deviation_y))
        sign = signs(view_x.U @ left)
        self.kernel_, self._expansion_ = fit_x.kernel, view_x.functions(sign * left / deviation_x)
        second_view.kernel_, second_view._expansion_ = fit_y.kernel, view_y.functions(sign * right / deviation_y)
        self._second_ = second_view

    def _merges(self, X: Any, budget: int) -> bool:
        return False  # two rows that are equal in one view may differ in the other

    @property
    def kernel_y_(self) -> Kernel:
        """Kernel of the second view with numerical parameters."""
        check_is_fitted(self)
        return self._second_.kernel_

    @property
    def n_components_(self) -> int:
        """Number of pairs of functions."""
        check_is_fitted(self)
        return len(self.correlations_)

    @like_input
    def transform(self, X: Any, y: Any = None) -> Any:
        """Compute the scores of the first view and, if y is given, of the second.

        Scores have unit variance on the training samples.

        Parameters
        ----------
        X : array, CSR matrix or sequence of samples
            First view, as in `fit`.
        y : array, CSR matrix or sequence of samples, optional
            Second view, as in `fit`.

        Returns
        -------
        x_scores : array of shape (n_samples, n_components_)
            Scores f(x) of the first view.
        y_scores : array of shape (n_samples, n_components_)
            Scores g(y) of the second view; only if y is given.
        """
        scores = self._decision(X)
        if y is None:
            return scores
        with _naming_second_view():
            return scores, self._second_.scores(y)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


@dataclass(frozen=True, eq=False)
class _ViewSpectrum:
    """Points of a view, with the eigenpairs of their weighted and centred Gram matrix."""

    points: Points
    root: Floats  # √p
    mean: Floats  # inner products of the mean with all points
    values: Floats  # eigenvalues
    U: Floats  # eigenvectors

    @classmethod
    def of(cls, points: Points, p: Floats) -> _ViewSpectrum:
        """Compute the eigenpairs of a view with normalised weights p; raise ValueError if the view does not vary."""
        root = np.sqrt(p)
        values, U = points.eigenpairs(root, None, p, None)
        if len(values) == 0:
            raise ValueError(f"a view does not vary: {single_point_message(points.n)}")
        return cls(points, root, points.products(p[:, None])[:, 0], values, U)

    def functions(self, C: Floats) -> Expansion:
        """Return the functions whose values at the samples, times √p, are U C."""
        a = sum_to_zero(self.root[:, None] * (self.U @ (C / self.values[:, None])), self.root**2)
        return self.points.function(a, -(self.mean @ a))


@contextmanager
def _naming_second_view() -> Iterator[None]:
    """Make errors about invalid samples say that the second view has them."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise type(error)(f"y, the second view, is not valid (called X here): {error}") from error
