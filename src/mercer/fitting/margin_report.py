"""What classifiers made of hyperplanes tell about themselves, and how they take new samples in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.arrays import Flags, Floats, Indices, freeze, is_sparse, take
from mercer.data.labels import Pair, between, codes_among, names_of, plane_coefficients, planes
from mercer.margins import Margins, NearestPoints, SeveralMargins, divide


class MarginReport:
    """Margins and signed distances; for a Machine whose outputs are hyperplanes."""

    def signed_distance(self, X: Any) -> Floats:
        """f(x)/‖w‖: how far each sample is from the plane f = 0 in feature space, and on which side.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples,), or (n_samples, n_planes) for several classes
            In the order of `decision_function_shape="ovo"`, or one against the rest. Infinite or NaN where w = 0 and
            there is no plane.
        """
        values = self._decision(X)  # type: ignore[attr-defined]  # Machine's
        distances = divide(values, self.rkhs_norm_)  # type: ignore[attr-defined]
        return distances[:, 0] if distances.shape[1] == 1 else distances

    def margins(self, X: Any, y: Any) -> Margins | SeveralMargins:
        """Functional and geometric margins, slacks, errors and distances of samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            Labels that the machine knows.

        Returns
        -------
        Margins
            For several classes, SeveralMargins: a sequence of Margins, one per plane. Which vectors are free, bounded
            or neither is told where X and y are the samples that the machine was fitted on, by machines that keep α.
        """
        check_is_fitted(self)
        model: Any = self
        codes = codes_among(model.classes_, y)
        check_consistent_length(X, codes)
        values, norms = model._decision(X), np.atleast_1d(model.rkhs_norm_)
        parts: list[Margins] = []
        for k, pair in enumerate(model._planes()):
            rows, signs = between(pair, codes)
            part = Margins(
                classes=names_of(pair, model.classes_.tolist())[::-1],
                rows=rows,
                decision_values=freeze(values[rows, k].copy()),
                signs=freeze(signs),
                rkhs_norm=float(norms[k]),
                b=float(model.intercept_[k]),
                inverse_rho_squared={"|w|²": float(norms[k]) ** 2},
            )
            parts.append(part)
        parts = model._with_duals(parts, X, codes)
        if len(parts) == 1:
            return parts[0]
        return SeveralMargins(freeze(model.classes_[codes]), tuple(parts), np.asarray(model.predict(X) != y))

    def _planes(self) -> list[Pair]:
        """The classes on the positive and on the negative side of each plane."""
        raise NotImplementedError

    def _with_duals(self, parts: list[Margins], X: Any, codes: Indices) -> list[Margins]:
        """With what α tells beside, where a machine keeps it."""
        return parts


class Separating(MarginReport):
    """What α adds: dual status, nearest points of the hulls, and training that goes on."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add samples to those known and train on all of them, from the last solution on.

        The result is that of `fit` on all samples in the order in which they came, to the tolerance, and `support_`
        counts in that order. The machine must therefore keep a copy of all samples; `fit` keeps one only with
        warm_start=True, and without it the first call of partial_fit starts anew, with a warning.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            At least two classes must have come by the end of the first call; others may come later.
        classes : array, optional
            Labels that are expected; another one in y is refused. `classes_` are those that have come so far.
        sample_weight : array of shape (n_samples,), optional

        Returns
        -------
        self
        """
        if classes is not None:
            unexpected = np.setdiff1d(np.asarray(y).ravel(), np.asarray(classes))
            if len(unexpected):
                raise ValueError(f"y holds {unexpected.tolist()}, which are not among classes={list(classes)}")
        return super().partial_fit(X, y, sample_weight)  # type: ignore[misc,no-any-return]  # Machine's

    def _planes(self) -> list[Pair]:
        return _pairs(self)

    def _with_duals(self, parts: list[Margins], X: Any, codes: Indices) -> list[Margins]:
        model: Any = self
        trained_on, found = _is_training_set(model, X, codes), []
        for k, part in enumerate(parts):
            alpha_sum = float(np.abs(_signed_duals(model, k)).sum())
            standings = model._standing_[:, [k]].toarray().ravel()[part.rows].astype(np.int8) if trained_on else None
            part = replace(
                part,
                alpha_sum=alpha_sum,
                inverse_rho_squared=_inverse_rho_squared(model, k, part.rkhs_norm, alpha_sum),
                b_interval=_interval(model._b_range_[k]),
                standings=standings,
            )
            found.append(part)
        return found

    def nearest_points(self) -> NearestPoints | tuple[NearestPoints, ...]:
        """The nearest points of the classes' hulls, whose perpendicular bisector the plane is parallel to.

        For a hard margin, or where all slacks are zero, these are the convex hulls; otherwise hulls reduced by the
        bounds on α, in which no sample counts for more than 2C_i/Σα.

        Returns
        -------
        NearestPoints, or a tuple of them, one per pair, for several classes
        """
        check_is_fitted(self)
        model: Any = self
        if getattr(model, "slack", "l1") == "l2":
            raise ValueError(
                "nearest_points needs slack='l1': with 2-norm slack the hulls lie in a space with one more dimension "
                "per sample"
            )
        linear = (recipe := model.kernel_.recipe()) is not None and recipe.linear
        found = []
        for k, pair in enumerate(_pairs(model)):
            beta = _signed_duals(model, k)
            half = 0.5 * float(np.abs(beta).sum())
            if abs(float(beta.sum())) > 1e-6 * half:
                raise ValueError(
                    "nearest_points needs a machine with bias: without one the two classes' α have different sums, "
                    "and w is no difference of two points of the hulls"
                )
            sides = np.stack([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
            coefficients = sides / sides.sum(axis=1, keepdims=True)
            norm = float(np.atleast_1d(model.rkhs_norm_)[k])
            found.append(
                NearestPoints(
                    classes=names_of(pair, model.classes_.tolist()),
                    rows=model.support_,
                    coefficients=freeze(coefficients),
                    distance=norm / half,
                    points=freeze(np.asarray(coefficients @ model.support_vectors_)) if linear else None,
                )
            )
        return found[0] if len(found) == 1 else tuple(found)


def _pairs(model: Any) -> list[Pair]:
    """The classes on the positive and on the negative side of each plane."""
    k, n_planes = len(model.classes_), len(model._expansion_.b)
    multiclass = getattr(model, "multiclass", "ovo")
    found = planes(k, multiclass != "ovo")
    if k > 2 and (multiclass not in ("ovo", "ovr") or len(found) != n_planes):
        raise ValueError(without_planes("multiclass", multiclass, "'ovo' or 'ovr'"))
    return found


def without_planes(parameter: str, value: Any, use: str) -> str:
    """Why a joint machine has no margins."""
    return (
        f"{parameter}={value!r} trains all classes jointly: it has no planes between two sides, and so neither margins "
        f"nor nearest points of two hulls; use {parameter}={use}"
    )


def _signed_duals(model: Any, k: int) -> Floats:
    """β of plane k for each of `support_`."""
    return plane_coefficients(model.dual_coef_, model.n_support_, _pairs(model), k)


def _inverse_rho_squared(model: Any, k: int, norm: float, alpha_sum: float) -> dict[str, float]:
    """1/ρ² by each formula that holds for this machine; the sums over slacks are the certificate's."""
    forms = {"|w|²": norm**2}
    if not hasattr(model, "C") or getattr(model, "bias", True) is not True:
        return forms
    if np.isinf(model.C):
        return forms | {"Σα": alpha_sum}
    certificate = model.certificate_.parts[k] if model.certificate_.parts else model.certificate_
    if getattr(model, "slack", "l1") == "l2":
        ridge = 2 * (alpha_sum - 0.5 * norm**2 - certificate.dual)
        return forms | {"Σα − Σα²/C": alpha_sum - ridge}
    return forms | {"Σα − ΣCξ": alpha_sum - (certificate.primal - 0.5 * norm**2)}


def _interval(ends: Floats) -> tuple[float, float] | None:
    low, high = ends.tolist()
    return None if np.isnan(low) or np.isnan(high) else (low, high)


def _is_training_set(model: Any, X: Any, codes: Indices) -> bool:
    """Whether these are the rows trained on, as far as the support vectors, which are all that matters, tell."""
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n != model.shape_fit_[0]:
        return False
    expected = np.repeat(np.arange(len(model.classes_)), model.n_support_)
    if not np.array_equal(codes[model.support_], expected):
        return False
    if model.kernel_.accepts == "gram":
        return True
    X = model._samples(X, model.kernel_, reset=False)
    return bool(np.all(_same(take(X, model.support_), model.support_vectors_)))


def _same(left: Any, right: Any) -> Flags:
    if is_sparse(left) or is_sparse(right):
        if is_sparse(left) and is_sparse(right):
            return np.asarray((left != right).nnz == 0)
        left, right = (part.toarray() if is_sparse(part) else part for part in (left, right))
    return np.asarray(np.asarray(left) == np.asarray(right))
