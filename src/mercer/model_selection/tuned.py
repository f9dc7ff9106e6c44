"""Estimators that choose their parameters: `fit` calls `tune`, and `predict` uses the best machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, OutlierMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from mercer.estimators import SVC, SVR, OneClassSVM
from mercer.estimators.fitting.mixins import ScoresAccuracy, ScoresR2
from mercer.estimators.fitting.pipeline.class_spec import DeclaresState
from mercer.estimators.fitting.pipeline.state import (
    AttributeSpec,
    Flag,
    NestedEstimator,
    Number,
    Parameters,
    Text,
    expect,
    fitted,
)
from mercer.estimators.fitting.reports.notebook import ShowsCertificate
from mercer.estimators.fitting.wrapper_mixin import ModelMethods
from mercer.model_selection.result import SearchInterrupted, TuningResult
from mercer.model_selection.tune import tune
from mercer.runtime.available import available_if
from mercer.runtime.refitting import adopt_fit, blank_copy
from mercer.runtime.shared_docs import shared_docs
from mercer.samples.arrays import Floats

_NUMBER = Number(or_none=True, finite=False, required=True)


@dataclass(frozen=True)
class _Results(AttributeSpec):
    """Spec of `cv_results_`; files omit the columns of parameters, which follow from the list of points."""

    def to_plain(self, name: str, value: Any) -> dict[str, Any]:
        return {name: {key: column for key, column in value.items() if not key.startswith("param_")}}

    def from_plain(self, name: str, parts: dict[str, Any], model: Any) -> Any:
        """Return `cv_results_` from a file, with the columns of parameters made from the list of points."""
        results = parts[name]
        has_points = isinstance(results, dict) and isinstance(results.get("params"), list)
        expect(has_points, f"{name} must have the points of a search")
        columns = {}
        names = sorted({key for point in results["params"] for key in point})
        # Each name becomes a column as long as the list of points: a small file with other names at every point would
        # make huge columns.
        n_entries = sum(map(len, results["params"]))
        limit = 16 * n_entries + 10_000
        expect(
            len(names) * len(results["params"]) <= limit, f"{name} has {len(names)} parameters in {n_entries} values"
        )
        for parameter in names:
            column: Any = np.ma.array(np.empty(len(results["params"]), dtype=object), mask=True)
            for k, point in enumerate(results["params"]):
                if parameter in point:
                    column[k] = point[parameter]
            columns[f"param_{parameter}"] = column
        return results | columns


def _machine_has(name: str) -> Callable[[Any], bool]:
    """Return a function that tells whether the best machine or, before `fit`, the machine to tune has a method."""

    def check(tuned: Any) -> bool:
        return hasattr(getattr(tuned, "best_estimator_", None) or tuned._machine(), name)

    return check


def _best_attribute(name: str, doc: str) -> Any:
    """Return a property with the value of a fitted attribute of the best machine."""

    def value(tuned: Any) -> Any:
        return getattr(tuned.best_estimator_, name)

    return property(value, doc=doc)


@dataclass(eq=False, repr=False)
class Tuned(ModelMethods, ShowsCertificate, MetaEstimatorMixin, DeclaresState, BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Base class of estimators that choose their parameters by `tune`."""

    _FITTED = fitted(
        best_index_=_NUMBER,
        best_score_=_NUMBER,
        n_splits_=_NUMBER,
        search_gap_=_NUMBER,
        search_gap_reason_=Text(required=True),
        shared_=Text(required=True),
        choice_=Text(required=True),
        complete_=Flag(required=True),
        best_params_=Parameters(required=True),
        best_estimator_=NestedEstimator(methods=("predict",), required=True),
        cv_results_=_Results(required=True),
    )

    grid: Any = None
    _: KW_ONLY
    estimator: Any = None
    cv: Any = 5
    scoring: Any = None
    criterion: str = "folds"
    skip: Any = True
    one_standard_error: bool = False
    n_jobs: int | None = None
    max_time: float | None = None
    verbose: bool = False

    _default: ClassVar[Any]  # class of the machine if `estimator` is None

    def _parameters_to_save(self) -> dict[str, Any]:
        """Return the parameters; a `cv` or `scoring` that is neither a number nor a string is not saved."""
        params = super()._parameters_to_save()
        if not isinstance(params["cv"], int | str | None):
            params["cv"] = vars(self).get("n_splits_", 5)
        if not isinstance(params["scoring"], int | str | None):
            params["scoring"] = None
        return params

    def _check_saved_parameters(self) -> None:
        """Accept all parameters: `fit` checks them."""

    def _machine(self) -> Any:
        """Return the unfitted machine whose parameters are tuned."""
        return self._default() if self.estimator is None else self.estimator

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Choose parameters by cross-validation and train the best machine on all samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            Training samples.
        y : array of shape (n_samples,)
            Targets; None for a novelty detector.
        **params
            `sample_weight`, and `groups` for splitters that need groups.

        Returns
        -------
        self
            The fitted estimator. If the fit is interrupted, it stays unchanged and the exception has the `result`.
        """
        options = self.get_params(deep=False)
        del options["estimator"]
        result = tune(clone(self._machine()), X, y, **options, **params)
        if result.interrupted_:
            raise SearchInterrupted(result)
        if result.best_estimator_ is None:
            raise TimeoutError(
                f"max_time={self.max_time:g} s ended before any point of the grid had a score in every fold; raise "
                "max_time, or try fewer points"
            )
        fitted = blank_copy(self)
        fitted._adopt_result(result)
        return adopt_fit(self, fitted)

    def _adopt_result(self, result: TuningResult) -> None:
        """Set the fitted attributes from the result of a search."""
        self.best_index_, self.best_params_ = result.best_index_, result.best_params_
        self.best_estimator_, self.best_score_ = result.best_estimator_, result.best_score_
        self.choice_ = result.choice_
        self.cv_results_, self.n_splits_, self.complete_ = result.cv_results_, result.n_splits_, result.complete_
        self.search_gap_, self.search_gap_reason_ = result.search_gap_, result.search_gap_reason_
        self.shared_ = result.shared_

    @property
    def result_(self) -> TuningResult:
        """The result of the search, with `plot` and `at`."""
        check_is_fitted(self, "best_estimator_")
        return TuningResult(**{name: getattr(self, name) for name in self._FITTED})

    def _best(self) -> Any:
        """Return the best machine; raise NotFittedError before `fit`."""
        check_is_fitted(self, "best_estimator_")
        return self.best_estimator_

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "best_estimator_")

    def predict(self, X: Any) -> Any:
        """Predict each sample by the best machine."""
        return self._best().predict(X)

    @available_if(_machine_has("decision_function"))
    def decision_function(self, X: Any) -> Floats:
        """Return the decision values of the best machine."""
        values: Floats = self._best().decision_function(X)
        return values

    def _inner_model(self) -> Any:
        return self._machine()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._machine()).input_tags
        return tags

    # --- fitted attributes of the best machine; AttributeError if it has none ----------------------------------------

    certificate_ = _best_attribute("certificate_", "Certificate of the best machine.")
    classes_ = _best_attribute("classes_", "The class labels.")
    class_weight_ = _best_attribute("class_weight_", "The weight of each class.")
    n_features_in_ = _best_attribute("n_features_in_", "The number of features that the best machine was fitted on.")
    feature_names_in_ = _best_attribute("feature_names_in_", "The names of the features, if the samples had names.")
    kernel_ = _best_attribute("kernel_", "The kernel, with numbers for all its parameters.")
    support_ = _best_attribute("support_", "The indices of the support vectors among the samples.")
    support_vectors_ = _best_attribute("support_vectors_", "The support vectors.")
    n_support_ = _best_attribute("n_support_", "The number of support vectors; for a classifier, of each class.")
    dual_coef_ = _best_attribute("dual_coef_", "The coefficients of the support vectors.")
    intercept_ = _best_attribute("intercept_", "The bias of each decision function.")
    coef_ = _best_attribute("coef_", "The weight of each feature, for a linear kernel.")
    offset_ = _best_attribute("offset_", "The threshold of a novelty detector's scores.")
    function_ = _best_attribute("function_", "The decision functions as elements of the kernel's space.")
    rkhs_norm_ = _best_attribute("rkhs_norm_", "The norm ‖w‖ of each decision function.")
    n_iter_ = _best_attribute("n_iter_", "The number of steps of the solver.")
    n_kernel_values_ = _best_attribute("n_kernel_values_", "The number of kernel values that the fit computed.")
    converged_ = _best_attribute("converged_", "True if the fit reached its tolerance.")
    stop_reason_ = _best_attribute("stop_reason_", "The reason why the solver stopped.")
    fit_status_ = _best_attribute("fit_status_", "0 if the fit reached its tolerance, as scikit-learn's SVC has it.")
    shape_fit_ = _best_attribute("shape_fit_", "The shape of the samples that the best machine was fitted on.")


@shared_docs
class TunedSVC(ScoresAccuracy, Tuned):
    """Support vector classification that chooses C and the kernel's parameters by cross-validation.

    Parameters
    ----------
    %(grid of a search)s
    estimator : SVC or Pipeline that ends in one, optional
        Estimator with the parameters that are not searched; None means SVC().
    %(options of a search)s

    Attributes
    ----------
    best_estimator_ : SVC
        %(best machine)s
    %(outcome of a search)s

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mercer import TunedSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TunedSVC({"C": [0.1, 1, 10, 100], "gamma": [0.1, 1]}).fit(X, y)
    >>> model.best_score_ > 0.95, model.certificate_.proves
    (True, 'optimality')
    """

    _default = SVC


@shared_docs
class TunedSVR(ScoresR2, Tuned):
    """Support vector regression that chooses C, ε and the kernel's parameters by cross-validation.

    Parameters
    ----------
    %(grid of a search)s
    estimator : SVR or Pipeline that ends in one, optional
        Estimator with the parameters that are not searched; None means SVR().
    %(options of a search)s

    Attributes
    ----------
    best_estimator_ : SVR
        %(best machine)s
    %(outcome of a search)s

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import TunedSVR
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-3, 3, size=(80, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    >>> model = TunedSVR({"C": [1, 10, 100, 1000], "gamma": [0.3, 1]}).fit(X, y)
    >>> bool(model.best_score_ > 0.9)
    True
    """

    _default = SVR


@shared_docs
class TunedOneClassSVM(OutlierMixin, Tuned):  # type: ignore[misc]  # scikit-learn is untyped
    """Novelty detection that chooses ν and the kernel's parameters by cross-validation.

    With labels y = ±1, −1 for outliers, the score is the balanced accuracy on held-out samples. Without labels it is
    −|share of held-out outliers − ν|: with an overfitted kernel, far more held-out samples than a share ν are outliers.

    Parameters
    ----------
    %(grid of a search)s
    estimator : OneClassSVM or Pipeline that ends in one, optional
        Estimator with the parameters that are not searched; None means OneClassSVM().
    %(options of a search)s

    Attributes
    ----------
    best_estimator_ : OneClassSVM
        %(best machine)s
    %(outcome of a search)s

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import TunedOneClassSVM
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(size=(150, 2)), rng.uniform(-6, 6, size=(20, 2))])
    >>> y = np.repeat([1, -1], [150, 20])
    >>> TunedOneClassSVM({"nu": [0.02, 0.1, 0.2, 0.5]}).fit(X, y).best_params_
    {'nu': 0.1}
    """

    _default = OneClassSVM

    @available_if(_machine_has("score_samples"))
    def score_samples(self, X: Any) -> Floats:
        """Return the score that is compared with `offset_`."""
        values: Floats = self._best().score_samples(X)
        return values
