"""What the feature maps share: a kernel bound to the samples, and the error of their inner products."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer.estimators.fitting.pipeline.class_spec import DeclaresState
from mercer.estimators.fitting.pipeline.state import BoundKernel, expect, fitted, is_count
from mercer.kernels import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.runtime.errors import ModelFormatError
from mercer.runtime.refitting import adopt_fit, blank_copy
from mercer.samples.arrays import Samples, host, is_sparse

# As many columns as 100 rows of 8 bytes fill a gigabyte with.
MOST_COLUMNS = 10**6


class FeatureMap(TransformerMixin, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """A transformer whose features have a kernel's values as their inner products, exactly or nearly."""

    _FITTED = fitted(kernel_=BoundKernel(required=True))

    kernel: KernelLike
    kernel_: Kernel
    _takes_sparse = True

    def fit(self, X: Samples, y: object = None) -> Self:
        """Bind the kernel to X, and draw or list what the features are made of.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : ignored
            Nothing is learnt from targets.
        """
        fitted = blank_copy(self)
        X = fitted._read(X, reset=True)
        fitted.kernel_ = as_kernel(self.kernel).bind(X)
        fitted._prepare(X)
        return adopt_fit(self, fitted)

    def transform(self, X: Samples) -> Samples:
        """The features of each sample, a row each.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        check_is_fitted(self)
        return self._features(self._read(X, reset=False))

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Names for the features, made of that of the class and a number.

        Parameters
        ----------
        input_features : ignored
            The names do not depend on those of the samples' features.
        """
        check_is_fitted(self)
        return np.array([f"{type(self).__name__.lower()}{k}" for k in range(self._width())], dtype=object)

    def error(self, X: Samples) -> float:
        """The largest difference between the features' inner products and k on samples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        """
        features = self.transform(X)
        if is_sparse(features):  # without the columns that are empty, of which there may be any number
            used, columns = np.unique(features.indices, return_inverse=True)
            features = type(features)((features.data, columns, features.indptr), shape=(features.shape[0], len(used)))
        products = features @ features.T
        exact = self.kernel_(self._read(X, reset=False))
        return float(np.abs((products.toarray() if is_sparse(products) else products) - exact).max())

    def _read(self, X: Samples, reset: bool) -> Samples:
        if (kernel := as_kernel(self.kernel)).accepts != "vectors":
            raise ValueError(
                f"{kernel!r} is not a kernel of vectors, and has no features of this kind; give it to a machine, such "
                "as SVC(kernel=…)"
            )
        sparse = "csr" if self._takes_sparse else False
        return validate_data(self, host(X), dtype=np.float64, reset=reset, accept_sparse=sparse)

    def _check_fitted(self) -> None:
        kernel = self.kernel_
        expect(kernel.accepts == "vectors" and kernel.bound, "kernel_ must be a kernel of vectors, with numbers")

    def _check_prepared(self, X: Samples) -> None:
        """Prepare again what follows from the kernel and the number of features; counts have to agree with a file's."""
        learnt = dict(vars(self))
        try:
            self._prepare(X)
        except (ValueError, OverflowError) as error:
            raise ModelFormatError(str(error)) from None
        for name, value in learnt.items():
            expect(not is_count(value) or getattr(self, name) == value, f"{name} must be {getattr(self, name)!r:.40}")

    def _prepare(self, X: Samples) -> None:
        """Draw or list what the features are made of."""
        raise NotImplementedError

    def _features(self, X: Samples) -> Samples:
        raise NotImplementedError

    def _width(self) -> int:
        """How many features there are."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


def n_columns_made(model: FeatureMap) -> int:
    """Number of columns of dense features, of a fitted map; 0 of another."""
    return min(model._width(), MOST_COLUMNS) if hasattr(model, "kernel_") else 0
