"""Classifiers with probabilities and prediction sets, from the decision values of a machine."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.calibration.calibrated import (
    HELD_OUT,
    Calibrated,
    expect_numbers,
    expect_starts,
    expect_weight,
    one_target,
    weighted_splits,
)
from mercer.calibration.curves import METHODS, ClassProbabilities, IsotonicCurves, Softmax, VennAbers, fit_curves
from mercer.calibration.sigmoid import Sigmoids
from mercer.calibration.weighted_ranks import are_counts, share_up_to
from mercer.estimators import SVC
from mercer.estimators.fitting.mixins import ScoresAccuracy
from mercer.estimators.fitting.pipeline.dataclass_spec import OneOf
from mercer.estimators.fitting.pipeline.state import Array, Flag, Unsaved, expect, fitted
from mercer.model_selection.held_out.folds import class_splits
from mercer.model_selection.held_out.machines import (
    FoldProgress,
    decision_values,
    machine_of,
    out_of_fold,
    without_names,
)
from mercer.runtime.parameters import one_of
from mercer.samples import checks
from mercer.samples.arrays import Floats, Indices, freeze
from mercer.samples.engine import like_input, on_host, to_engine
from mercer.samples.labels import REST, planes, trained_codes, winner

_DECIDES = ("probability", "machine")


@dataclass(frozen=True, eq=False)
class ClassScores:
    """Scores of the calibration samples for their own class; scores[starts[k] : starts[k + 1]] are class k's, sorted.

    They define prediction sets that contain the true class with a chosen probability, class by class (Mondrian
    conformal prediction). The p-value of a class at x is the share of the samples of that class, including x, whose
    score for the class does not exceed that of x; a sample of weight w counts as w samples, and x as one. The set at
    level α contains the classes with a p-value above α. If the scores of the samples of the class and of x are
    exchangeable, the true class is missing with probability at most α, whichever class it is.
    """

    STORED_NAME: ClassVar[str] = "OwnScores"  # name in model files

    scores: Floats
    starts: Indices

    def p_values(self, scores: Floats, weight: Floats | None) -> Floats:
        """Return the p-value of each class, from scores with a column for each class.

        `weight` has a number for each stored score, in their order; None means 1.
        """
        out = np.empty_like(scores)
        for k in range(scores.shape[1]):
            of_class = slice(self.starts[k], self.starts[k + 1])
            class_weight = None if weight is None else weight[of_class]
            out[:, k] = share_up_to(scores[:, k], self.scores[of_class], class_weight)
        return out


@dataclass(eq=False, repr=False)
class CalibratedClassifier(ScoresAccuracy, Calibrated):
    """A classifier trained on all samples, with probabilities learnt from held-out decision values.

    The machine of every fold computes the decision values of the samples that the fold holds out, and a curve for each
    decision function turns such values into probabilities. One against one, class probabilities are coupled from those
    of all pairs (Wu, Lin, Weng 2004). `model.calibrate(X, y)` does the same for a fitted machine.

    Parameters
    ----------
    estimator : a classifier of mercer, optional
        Machine to calibrate; None means SVC(). It may be the last step of a Pipeline, or inside `mercer.tabular` or a
        search: all of it is fitted again in every fold, and the search is repeated. A FrozenEstimator, which was
        trained on other samples, is not fitted again; its decision values are used without folds.
    method : {"sigmoid", "isotonic", "temperature", "venn-abers"}, default="sigmoid"
        Calibration curve. "sigmoid": Platt's sigmoid, two numbers for each decision function; its slope is never
        negative, so that a larger decision value never has a smaller probability. "isotonic": any nondecreasing
        function, for a thousand samples and more. "temperature": one number for all decision functions, which keeps the
        machine's predictions, except those by votes (three or more classes one against one).
        "venn-abers": isotonic regression with the new sample added once in each class; `predict_interval` returns both
        probabilities.
    cv : int or splitter, default=5
        Folds that hold out every sample once.
    verbose : bool, default=False
        Whether to print a line after each fold.
    decides : {"probability", "machine"}, default="probability"
        Whether `predict` returns the most probable class or the prediction of the machine. They may differ, for example
        if class weights favour a rare class.

    Attributes
    ----------
    estimator_ : estimator
        The machine, trained on all samples.
    classes_ : array of shape (n_classes,)
        Class labels.
    curves_ : object
        Calibration curves with their parameters.
    guarantee_ : str
        Statement that is proven about `predict_set`.

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
        classes_=Unsaved(),  # estimator_ has them
        probabilities_=OneOf(
            ClassProbabilities, curves=OneOf(Softmax, IsotonicCurves, VennAbers, Sigmoids), required=True
        ),
        _own_scores_=OneOf(ClassScores, required=True),
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
        one_of("decides", self.decides, _DECIDES)
        if isinstance(self.cv, str):
            one_of("cv", self.cv, (HELD_OUT,), "a number of folds, a splitter of scikit-learn")
            raise ValueError(f"cv={self.cv!r} is for fitted machines: use model.calibrate(X, y, cv='held-out')")

    def _check_saved_parameters(self) -> None:
        super()._check_saved_parameters()
        expect(self.method in METHODS, f"{self.method!r:.40} is no method of calibration")
        expect(self.decides in _DECIDES, f"{self.decides!r:.40} cannot decide")

    def _check_fitted(self) -> None:
        """Raise ModelFormatError if attributes that were read from a file do not fit together."""
        # 1. The machine is a classifier, and the probabilities are those of its classes.
        machine = machine_of(self.estimator_)
        is_classifier = hasattr(machine, "classes_") and hasattr(machine, "_decision")
        expect(is_classifier, "a calibrated classifier needs a classifier")
        k = len(machine.classes_)
        pairs = planes(k, bool(getattr(machine, "_function_per_class", True)))
        probabilities, is_against_rest = self.probabilities_, pairs[0][1] == REST
        kinds_agree = (probabilities.n_classes, probabilities.against_rest) == (k, is_against_rest)
        expect(kinds_agree, f"its probabilities must be of {k} classes, as its machine decides")
        # 2. Every decision function has a curve.
        curves, n = vars(probabilities.curves), len(pairs)
        if "starts" in curves:
            expect_starts(curves["starts"], n, len(curves["f"]))
            expect(bool((np.diff(curves["starts"]) > 0).all()), "every curve has at least one corner")
        lengths = {"slope": n, "offset": n, "unit": n}
        for name, values in curves.items():
            if name != "starts":
                n_extra = n if name in "WS" else 0  # cumulative sums have one more entry than values for each function
                expect_numbers(values, name, lengths.get(name, len(curves.get("f", ())) + n_extra))
                expect(bool(np.isfinite(values).all()), f"{name} must be finite numbers")
        if "W" in curves:  # the search for convex hulls needs rising sums
            between_functions = (curves["starts"][1:-1] + np.arange(1, n)) - 1
            sums_rise = np.delete(np.diff(curves["W"]) > 0, between_functions)
            expect(bool(sums_rise.all()), "W must rise for every decision function")
        # 3. Every class has scores, and every score a weight.
        expect_numbers(self._own_scores_.scores, "scores", None)
        expect_starts(self._own_scores_.starts, k, len(self._own_scores_.scores))
        expect_weight(self, "_own_weight_", len(self._own_scores_.scores))

    def _complete_fitted(self) -> None:
        self.estimator, self.classes_ = self.estimator_, machine_of(self.estimator_).classes_

    def _learn(self, model: Any, X: Any, y: Any, sample_weight: Any, cv: Any) -> None:
        """Learn the curves and the scores of the samples from held-out decision values of a fitted model."""
        # 1. Read the samples.
        machine = machine_of(model)
        if not hasattr(machine, "_decision"):
            raise TypeError(
                f"{type(machine).__name__} is not a classifier of mercer; use "
                "sklearn.calibration.CalibratedClassifierCV"
            )
        one_of("method", self.method, tuple(METHODS))
        X, sample_weight = to_engine(X), on_host(sample_weight)
        labels, y = machine.classes_, one_target(y, machine)
        weight = checks.weights(sample_weight, len(y))
        has_weight, codes = weight > 0, np.zeros(len(y), dtype=np.intp)
        codes[has_weight] = trained_codes(labels, y[has_weight])  # the machine does not know a class of weight 0
        absent_classes = np.setdiff1d(np.arange(len(labels)), codes[has_weight])
        if len(absent_classes):
            label = labels.tolist()[absent_classes[0]]
            raise ValueError(f"y has no sample of class {label!r}, so its probability cannot be learnt")
        # 2. Compute the held-out decision values.
        if isinstance(cv, str):
            one_of("cv", cv, (HELD_OUT,), "a number of folds, a splitter of scikit-learn")
            f = decision_values(model, X)
        else:
            splits = weighted_splits(cv, weight, lambda rows: class_splits(cv, codes[rows], labels, weight[rows]))
            progress, fold_weight = FoldProgress(self.verbose, len(splits)), None if sample_weight is None else weight
            f = out_of_fold(model, X, y, fold_weight, splits, progress.done)
        # 3. Fit the curves, and sort the scores of the samples of each class.
        pairs = planes(len(labels), getattr(machine, "_function_per_class", True))
        self.estimator_, self.classes_ = model, labels
        self.probabilities_: ClassProbabilities = fit_curves(self.method, f, codes, weight, pairs, len(labels))
        scores = self.probabilities_.true_class_scores(f[has_weight], codes[has_weight])
        order = np.lexsort((scores, codes[has_weight]))
        self._own_scores_ = ClassScores(
            scores[order], np.searchsorted(codes[has_weight][order], np.arange(len(labels) + 1))
        )
        if (weight[has_weight] != 1).any():
            self._own_weight_ = freeze(weight[has_weight][order])
        self._held_out_ = isinstance(cv, str)
        checks.copy_columns(model, self)

    def _decision_values(self, X: Any) -> Floats:
        """Return the machine's decision values; raise NotFittedError before `fit`."""
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
                "none: the scores come from the machines of the folds, not from the final machine; in practice the "
                "true class is in the set with probability of about 1 − alpha"
            )
        if not are_counts(vars(self).get("_own_weight_")):
            return (
                "none: fractional weights do not count samples; in practice the weighted share of sets with the true "
                "class is about 1 − alpha"
            )
        function_per_class = self.probabilities_.against_rest and not isinstance(self.probabilities_.curves, Softmax)
        if len(self.classes_) > 2 and not function_per_class:
            return (
                "nearly: the true class would be in the set with probability at least 1 − alpha if the calibration "
                "curves had been fitted to other samples"
            )
        return (
            "the true class, whichever it is, is in the set with probability at least 1 − alpha, if the samples and "
            "the new one are exchangeable"
        )

    @property
    def curves_(self) -> Any:
        """Calibration curves of the decision functions, with their parameters."""
        check_is_fitted(self)
        return self.probabilities_.curves

    @like_input
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, in the order of `classes_`."""
        f = self._decision_values(X)  # raises NotFittedError before probabilities_ is used
        return self.probabilities_(f)

    @like_input
    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithm of each probability; −inf for 0, which isotonic regression can give."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @like_input
    def predict(self, X: Any) -> np.ndarray:
        """Predict the most probable class; if both of two classes are equally probable, the machine decides."""
        if one_of("decides", self.decides, _DECIDES) == "machine":
            check_is_fitted(self)
            model, X = without_names(self, X)
            return np.asarray(model.predict(X))
        f = self._decision_values(X)
        p = self.probabilities_(f)
        best = np.argmax(p, axis=1)
        is_tied = (p == p[np.arange(len(p)), best][:, None]).sum(axis=1) > 1
        if len(self.classes_) == 2 and is_tied.any():
            best[is_tied] = winner(f[is_tied])
        return np.asarray(self.classes_[best])

    def predict_interval(self, X: Any) -> tuple[Floats, Floats]:
        """Return the lower and the upper probability of the second class, for "venn-abers" and two classes."""
        f, curves = self._decision_values(X), self.probabilities_.curves
        if not isinstance(curves, VennAbers) or len(self.classes_) != 2:
            raise ValueError(
                f"intervals of probabilities need method='venn-abers' and two classes; this fit has "
                f"{type(curves).__name__} and {len(self.classes_)} classes"
            )
        low, high = curves.interval(0, f[:, 0])
        return low, high

    def p_values(self, X: Any) -> Floats:
        """Return the p-value of each class: the weighted share of its samples that fit the class no better than x."""
        scores = self.probabilities_.scores(self._decision_values(X))
        return self._own_scores_.p_values(scores, vars(self).get("_own_weight_"))

    def predict_set(self, X: Any, alpha: float = 0.1) -> np.ndarray:
        """Return prediction sets: flags of shape (n_samples, n_classes) for classes not ruled out at level `alpha`.

        The true class is missing with probability at most alpha, whichever it is, if the machine was calibrated on
        samples that it was not trained on (cv="held-out"). With folds the scores come from the machines of the folds,
        so that this holds only approximately; `guarantee_` states what is proven. A set may be empty: then the sample
        fits no class.
        """
        if not 0.0 < alpha < 1.0:
            raise ValueError(f"alpha={alpha!r} must be between 0 and 1: the share of samples whose class may be missed")
        return np.asarray(self.p_values(X) > alpha)
