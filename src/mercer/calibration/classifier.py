"""Classifiers with probabilities and with sets of classes, from the decision values of a machine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.calibration.calibrated import (
    HELD_OUT,
    Calibrated,
    expect_numbers,
    expect_starts,
    expect_weight,
    one_target,
    splits_of_counted,
)
from mercer.calibration.curves import METHODS, ClassProbabilities, Softmax, Steps, VennAbers, fit_curves
from mercer.calibration.sigmoid import Sigmoids
from mercer.calibration.weighted_ranks import are_counts, share_up_to
from mercer.estimators import SVC
from mercer.estimators.fitting.mixins import ScoresAccuracy
from mercer.estimators.fitting.pipeline.dataclass_spec import OneOf
from mercer.estimators.fitting.pipeline.state import Array, Flag, Unsaved, expect, fitted
from mercer.model_selection.held_out.folds import splits_of_classes
from mercer.model_selection.held_out.machines import FoldLines, decision_values, machine_of, out_of_fold, without_names
from mercer.runtime.parameters import one_of
from mercer.samples import checks as samples
from mercer.samples.arrays import Floats, Indices, freeze
from mercer.samples.engine import like_input, on_host, placed
from mercer.samples.labels import REST, planes, trained_codes, winner

_WHO = ("probability", "machine")


@dataclass(frozen=True, eq=False)
class OwnScores:
    """The sorted scores of each class's samples for that class: class k's stand from starts[k] to starts[k + 1].

    They make sets of classes that hold the true one with a chosen probability, class by class (Mondrian conformal
    prediction). A class's p-value at x is the share of that class's own samples, x counted among them, whose score for
    the class is not above that of x; a sample of weight w counts as w, and x as 1. The set at level α holds the classes
    with a p-value above α. If the scores of the class's samples and of x are exchangeable, the true class is left out
    with probability at most α, whichever it is.
    """

    scores: Floats
    starts: Indices

    def p_values(self, scores: Floats, weight: Floats | None) -> Floats:
        """A column for each class, from scores with a column for each class.

        `weight` has a number for each sample, in the order of `scores`; None means 1.
        """
        out = np.empty_like(scores)
        for k in range(scores.shape[1]):
            mine = slice(self.starts[k], self.starts[k + 1])
            out[:, k] = share_up_to(scores[:, k], self.scores[mine], None if weight is None else weight[mine])
        return out


@dataclass(eq=False, repr=False)
class CalibratedClassifier(ScoresAccuracy, Calibrated):
    """A machine trained on all samples, with probabilities learned from decision values that it did not train on.

    Every fold's machine gives the decision values of the samples that the fold left out, and a curve for each plane
    between classes turns such values into probabilities. One against one, the classes' probabilities are those that fit
    all pairs' best (Wu, Lin, Weng 2004). `model.calibrate(X, y)` makes the same of a machine that is fitted already.

    Parameters
    ----------
    estimator : a classifier of mercer, optional
        What is calibrated; SVC() unless told. It may be the last step of a Pipeline, or stand in `mercer.tabular` or a
        search: all of it is fitted again in every fold, and the search searches again. Of a FrozenEstimator, which was
        trained on other samples, the decision values are taken as they are; there are no folds.
    method : {"sigmoid", "isotonic", "temperature", "venn-abers"}, default="sigmoid"
        "sigmoid": Platt's, two numbers for each plane; its slope is never negative, so that a larger decision value
        never has a smaller probability. "isotonic": any function that does not fall, for a thousand samples and more.
        "temperature": one number for all planes, which leaves the decision where the machine has it. "venn-abers":
        isotonic regression with the new sample counted in both ways; `predict_interval` gives both answers.
    cv : int or splitter, default=5
        Folds that leave every sample out once.
    verbose : bool, default=False
        A line for each fold that is done.
    decides : {"probability", "machine"}, default="probability"
        Who predicts: the most probable class, or the machine itself. They may differ, and do where class weights let a
        rare class win that is rarely the most probable.

    Attributes
    ----------
    estimator_ : the machine, trained on all samples
    classes_ : array of shape (n_classes,)
    curves_
        The curves, with their numbers.
    guarantee_ : str
        What is proven of `predict_set`.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10).fit(X, y).calibrate(X, y)
    >>> model.predict_proba(X[:1]).round(2)
    array([[0.98, 0.01, 0.01]])
    >>> model.predict_set(X[70:71], alpha=0.05).tolist()
    [[False, True, False]]
    """

    _FITTED = fitted(
        classes_=Unsaved(),  # they are those of estimator_
        probabilities_=OneOf(ClassProbabilities, curves=OneOf(Softmax, Steps, VennAbers, Sigmoids), required=True),
        _own_scores_=OneOf(OwnScores, required=True),
        _own_weight_=Array(None),
        _held_out_=Flag(),
    )

    estimator: Any = None
    method: str = "sigmoid"
    cv: Any = 5
    _: KW_ONLY
    verbose: bool = False
    decides: str = "probability"

    _default = SVC

    def _check_parameters(self) -> None:
        one_of("method", self.method, tuple(METHODS))
        one_of("decides", self.decides, _WHO)
        if isinstance(self.cv, str):
            one_of("cv", self.cv, (HELD_OUT,), "a number of folds, a splitter of scikit-learn")
            raise ValueError(
                f"cv={self.cv!r} is for machines that are fitted already: use model.calibrate(X, y, cv='held-out')"
            )

    def _check_saved_parameters(self) -> None:
        super()._check_saved_parameters()
        expect(self.method in METHODS, f"{self.method!r:.40} is no method of calibration")
        expect(self.decides in _WHO, f"{self.decides!r:.40} cannot decide")

    def _check_fitted(self) -> None:
        decides = machine_of(self.estimator_)
        classifies = hasattr(decides, "classes_") and hasattr(decides, "_decision")
        expect(classifies, "a calibrated classifier needs a classifier")
        k = len(decides.classes_)
        between = planes(k, bool(getattr(decides, "_function_per_class", True)))
        found, against_rest = self.probabilities_, between[0][1] == REST
        same = (found.n_classes, found.against_rest) == (k, against_rest)
        expect(same, f"its probabilities must be of {k} classes, as its machine decides")
        curves, n = vars(found.curves), len(between)
        if "starts" in curves:
            expect_starts(curves["starts"], n, len(curves["f"]))
            expect(bool((np.diff(curves["starts"]) > 0).all()), "every curve has at least one corner")
        per_plane = {"slope": n, "offset": n, "unit": n}
        for name, values in curves.items():
            if name != "starts":
                sums = n if name in "WS" else 0  # one more than values for each plane
                expect_numbers(values, name, per_plane.get(name, len(curves.get("f", ())) + sums))
                expect(bool(np.isfinite(values).all()), f"{name} must be finite numbers")
        if "W" in curves:  # a hull of sums that do not rise would never be found
            new_plane = (curves["starts"][1:-1] + np.arange(1, n)) - 1
            rising = np.delete(np.diff(curves["W"]) > 0, new_plane)
            expect(bool(rising.all()), "W must rise on every plane")
        expect_numbers(self._own_scores_.scores, "scores", None)
        expect_starts(self._own_scores_.starts, k, len(self._own_scores_.scores))
        expect_weight(self, "_own_weight_", len(self._own_scores_.scores))

    def _complete_fitted(self) -> None:
        self.estimator, self.classes_ = self.estimator_, machine_of(self.estimator_).classes_

    def _learn(self, model: Any, X: Any, y: Any, sample_weight: Any, cv: Any) -> None:
        machine = machine_of(model)
        if not hasattr(machine, "_decision"):
            raise TypeError(
                f"{type(machine).__name__} is not a classifier of mercer's; "
                "sklearn.calibration.CalibratedClassifierCV calibrates any other"
            )
        one_of("method", self.method, tuple(METHODS))
        X, sample_weight = placed(X), on_host(sample_weight)
        labels, y = machine.classes_, one_target(y, machine)
        weight = samples.weights(sample_weight, len(y))
        counted, codes = weight > 0, np.zeros(len(y), dtype=np.intp)
        codes[counted] = trained_codes(labels, y[counted])  # a class of weight 0 is none of the machine's
        absent = np.setdiff1d(np.arange(len(labels)), codes[counted])
        if len(absent):
            label = labels.tolist()[absent[0]]
            raise ValueError(f"y has no sample of class {label!r}, whose probability is to be learned")
        if isinstance(cv, str):
            one_of("cv", cv, (HELD_OUT,), "a number of folds, a splitter of scikit-learn")
            f = decision_values(model, X)
        else:
            splits = splits_of_counted(
                cv, weight, lambda rows: splits_of_classes(cv, codes[rows], labels, weight[rows])
            )
            lines, own_weight = FoldLines(self.verbose, len(splits)), None if sample_weight is None else weight
            f = out_of_fold(model, X, y, own_weight, splits, lines.done)
        pairs = planes(len(labels), getattr(machine, "_function_per_class", True))
        self.estimator_, self.classes_ = model, labels
        self.probabilities_: ClassProbabilities = fit_curves(self.method, f, codes, weight, pairs, len(labels))
        own = self.probabilities_.own_scores(f[counted], codes[counted])
        order = np.lexsort((own, codes[counted]))
        self._own_scores_ = OwnScores(own[order], np.searchsorted(codes[counted][order], np.arange(len(labels) + 1)))
        if (weight[counted] != 1).any():
            self._own_weight_ = freeze(weight[counted][order])
        self._held_out_ = isinstance(cv, str)
        samples.copy_columns(model, self)

    def _decided(self, X: Any) -> Floats:
        check_is_fitted(self)
        return decision_values(*without_names(self, X))

    @property
    def guarantee_(self) -> str:
        """Statement that is proven about `predict_set`, or "none" and the reason."""
        check_is_fitted(self)
        if "_unproven_" in vars(self):
            return f"none: {self._unproven_}; in practice about 1 − alpha"
        if not vars(self).get("_held_out_", False):
            return (
                "none: with folds the folds' machines stand for the machine, so that the true class is in the set with "
                "probability of about 1 − alpha"
            )
        if not are_counts(vars(self).get("_own_weight_")):
            return (
                "none: weights that are no whole numbers are no numbers of samples; the share of weight is about "
                "1 − alpha"
            )
        own_function = self.probabilities_.against_rest and not isinstance(self.probabilities_.curves, Softmax)
        if len(self.classes_) > 2 and not own_function:
            return (
                "nearly: the true class is in the set with probability at least 1 − alpha but for the curves that make "
                "classes comparable, which were fitted to the same samples"
            )
        return (
            "the true class, whichever it is, is in the set with probability at least 1 − alpha, if the samples and "
            "the new one are exchangeable"
        )

    @property
    def curves_(self) -> Any:
        """The curve of each plane, with its numbers."""
        check_is_fitted(self)
        return self.probabilities_.curves

    @like_input
    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`."""
        f = self._decided(X)
        return self.probabilities_(f)

    @like_input
    def predict_log_proba(self, X: Any) -> Floats:
        """Its logarithm; a probability of zero, which isotonic regression can give, has −inf."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @like_input
    def predict(self, X: Any) -> np.ndarray:
        """The most probable class; where two have the same probability, the one that the machine decides for."""
        if one_of("decides", self.decides, _WHO) == "machine":
            check_is_fitted(self)
            model, X = without_names(self, X)
            return np.asarray(model.predict(X))
        f = self._decided(X)
        p = self.probabilities_(f)
        best = np.argmax(p, axis=1)
        tied = (p == p[np.arange(len(p)), best][:, None]).sum(axis=1) > 1
        if len(self.classes_) == 2 and tied.any():
            best[tied] = winner(f[tied])
        return np.asarray(self.classes_[best])

    def predict_interval(self, X: Any) -> tuple[Floats, Floats]:
        """The two probabilities of the second of two classes that "venn-abers" stands between."""
        f, curves = self._decided(X), self.probabilities_.curves
        if not isinstance(curves, VennAbers) or len(self.classes_) != 2:
            raise ValueError(
                f"intervals of probabilities are there for method='venn-abers' and two classes, not for "
                f"{type(curves).__name__} and {len(self.classes_)} classes, which this fit has"
            )
        low, high = curves.interval(0, f[:, 0])
        return low, high

    def p_values(self, X: Any) -> Floats:
        """For each class, the share of its own samples, by weight, that fit it no better than this one does."""
        scores = self.probabilities_.scores(self._decided(X))
        return self._own_scores_.p_values(scores, vars(self).get("_own_weight_"))

    def predict_set(self, X: Any, alpha: float = 0.1) -> np.ndarray:
        """Which classes cannot be ruled out at level `alpha`: flags of shape (n_samples, n_classes).

        The true class is left out with probability at most alpha, whichever it is, if the machine was calibrated on
        samples that it was not trained on (cv="held-out"). With folds the scores of the folds' machines stand for those
        of the machine, so that this holds nearly; `guarantee_` says what is proven here. A set may be empty: the sample
        fits no class.
        """
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha!r} must be between 0 and 1: the share of samples whose class may be missed")
        return np.asarray(self.p_values(X) > alpha)
