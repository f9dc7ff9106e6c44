"""Base class of feature maps: scikit-learn transformers whose inner products approximate a kernel."""

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

# Largest number of dense columns: 100 rows of them take about a gigabyte.
MOST_COLUMNS = 10**6


class FeatureMap(TransformerMixin, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Transformer whose features have a kernel's values as inner products, exactly or approximately."""

    _FITTED = fitted(kernel_=BoundKernel(required=True))

    kernel: KernelLike
    kernel_: Kernel
    _takes_sparse = True

    def fit(self, X: Samples, y: object = None) -> Self:
        """Fit the feature map: compute the kernel's parameters from X and prepare the features.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.
        y : ignored
            Not used; present for compatibility with scikit-learn.

        Returns
        -------
        self
            Fitted feature map.
        """
        fitted = blank_copy(self)
        X = fitted._read(X, reset=True)
        fitted.kernel_ = as_kernel(self.kernel).bind(X)
        fitted._prepare(X)
        return adopt_fit(self, fitted)

    def transform(self, X: Samples) -> Samples:
        """Compute the features of samples, a row for each.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        array or CSR matrix of shape (n_samples, n_features_out)
            Features.
        """
        check_is_fitted(self)
        return self._features(self._read(X, reset=False))

    def get_feature_names_out(self, input_features: object = None) -> Any:
        """Return names of the features: the lower-case class name and a number.

        Parameters
        ----------
        input_features : ignored
            Not used; present for compatibility with scikit-learn.

        Returns
        -------
        array of str
            Names.
        """
        check_is_fitted(self)
        return np.array([f"{type(self).__name__.lower()}{k}" for k in range(self._width())], dtype=object)

    def error(self, X: Samples) -> float:
        """Compute the largest difference between the features' inner products and k on samples.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        float
            Largest absolute difference.
        """
        features = self.transform(X)
        if is_sparse(features):  # drop empty columns, of which there may be very many
            columns_in_use, columns = np.unique(features.indices, return_inverse=True)
            features = type(features)(
                (features.data, columns, features.indptr), shape=(features.shape[0], len(columns_in_use))
            )
        products = features @ features.T
        exact_values = self.kernel_(self._read(X, reset=False))
        return float(np.abs((products.toarray() if is_sparse(products) else products) - exact_values).max())

    def _read(self, X: Samples, reset: bool) -> Samples:
        """Check samples and convert them to float64; raise if the kernel is not one of vectors."""
        if (kernel := as_kernel(self.kernel)).accepts != "vectors":
            raise ValueError(
                f"{kernel!r} is not a kernel of vectors and has no features of this kind; pass it to an estimator, "
                "such as SVC(kernel=…)"
            )
        sparse = "csr" if self._takes_sparse else False
        return validate_data(self, host(X), dtype=np.float64, reset=reset, accept_sparse=sparse)

    def _check_fitted(self) -> None:
        kernel = self.kernel_
        expect(
            kernel.accepts == "vectors" and kernel.bound,
            "kernel_ must be a kernel of vectors, with numbers as parameters",
        )

    def _check_prepared(self, X: Samples) -> None:
        """Prepare the features of a loaded map again; raise if a count in the file differs."""
        fitted_values = dict(vars(self))
        try:
            self._prepare(X)
        except (ValueError, OverflowError) as error:
            raise ModelFormatError(str(error)) from None
        for name, value in fitted_values.items():
            expect(not is_count(value) or getattr(self, name) == value, f"{name} must be {getattr(self, name)!r:.40}")

    def _prepare(self, X: Samples) -> None:
        """Set the attributes from which features are computed, such as landmarks or frequencies."""
        raise NotImplementedError

    def _features(self, X: Samples) -> Samples:
        """Compute the features of checked samples."""
        raise NotImplementedError

    def _width(self) -> int:
        """Return the number of features that `transform` makes."""
        raise NotImplementedError

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        return tags


def n_columns_made(model: FeatureMap) -> int:
    """Return the number of columns of a fitted map's dense features; 0 for an unfitted map."""
    return min(model._width(), MOST_COLUMNS) if hasattr(model, "kernel_") else 0
