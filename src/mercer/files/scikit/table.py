"""The classes of scikit-learn that a ``.mercer`` file may hold, and what each of them learns.

A new class is one row: its module, its fitted attributes with their kinds, and, where attributes depend on each other
or on parameters, a function that checks it (mercer.files.scikit.checks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from mercer.files.scikit import checks
from mercer.files.scikit.checks import CONFIG, Categories, Edges, Fitted, Made, Model, Plain, Vocabulary
from mercer.fitting.pipeline.state import Array, Count, Flag, Kind, Labels, ListOf, Names, Number, Places, Text, Unsaved

Check = Callable[[Fitted], None]


def _given(model: Fitted) -> Plain:
    """The parameters of an estimator, or of a plain object, all of whose attributes are."""
    return dict(model.get_params(deep=False)) if hasattr(model, "get_params") else dict(vars(model))


def _without_memory(model: Fitted) -> Plain:
    return {**_given(model), "memory": None}  # a folder on this computer, of use only for another fit


@dataclass(frozen=True)
class Row:
    """One class: how its state goes to a file and back."""

    module: str
    fitted: Mapping[str, Kind]
    given: Callable[[Fitted], Plain] = _given  # its parameters
    holds: str = ""  # the attribute with its fitted machines, if only one has them
    optional: tuple[str, ...] = ()  # attributes that only some fits leave
    needs: Mapping[str, str] = field(default_factory=dict)  # the attribute without which a parameter cannot be true
    params: Check = checks.nothing  # raises ModelFormatError for parameters that would do harm
    whole: Check = checks.nothing  # and for attributes that contradict each other
    finish: Check = checks.nothing  # makes what follows from the rest, and is not in the file

    def but(self, **changes: Any) -> Row:
        """This row with some of it changed."""
        return replace(self, **changes)

    def always_has(self, name: str) -> bool:
        """Return True if every fit leaves this attribute."""
        return not (isinstance(self.fitted[name], Unsaved) or name in EVERY or name in self.optional)


EVERY: Final = {"n_features_in_": Count(), "feature_names_in_": Names(), "_sklearn_output_config": CONFIG}


def row(module: str, **fitted: Kind) -> Row:
    """A row of fitted attributes by name, beside those that every class may have."""
    return Row(module, {**EVERY, **fitted})


def _row(module: str, **fitted: Kind) -> Row:
    return row(f"sklearn.{module}", **fitted)


def _floats(*shape: str | None, or_none: bool = False) -> Kind:
    """Numbers of any width, NaN and infinity among them."""
    return Array(*shape, kinds="f", or_none=or_none)


_FEATURES: Final = _floats("n_features_in_")
_FEATURES_OR_NONE: Final = _floats("n_features_in_", or_none=True)
_SEEN: Final = Array("n_features_in_", kinds="iuf", single=True)
_PER_COMPONENT: Final = _floats("n_components_")
_GROUPS: Final = {
    "_infrequent_enabled": Flag(),
    "_infrequent_indices": ListOf(Places(), "n_features_in_", or_none=True),
    "_default_to_infrequent_mappings": ListOf(Places(), "n_features_in_", or_none=True),
}
_GROUPED: Final = ("_infrequent_indices", "_default_to_infrequent_mappings")
_TEXT: Final = {"vocabulary_": Vocabulary(), "fixed_vocabulary_": Flag(), "_stop_words_id": Unsaved()}
_DROPPED: Final = Array("n_features_in_", kinds="O", or_none=True)
_CATEGORIES: Final = ListOf(Categories(), "n_features_in_")
_TRANSFORMER: Final = Model(methods=("transform",))


def _calibrated(**values: Any) -> Any:
    from sklearn.calibration import _CalibratedClassifier

    return _CalibratedClassifier(**values)


SCIKIT: Final[dict[str, Row]] = {
    # Columns of numbers.
    "StandardScaler": _row(
        "preprocessing",
        mean_=_FEATURES_OR_NONE,
        var_=_FEATURES_OR_NONE,
        scale_=_FEATURES_OR_NONE,
        n_samples_seen_=_SEEN,
    ).but(needs={"with_mean": "mean_", "with_std": "scale_"}),
    "MinMaxScaler": _row(
        "preprocessing",
        **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _FEATURES),
        n_samples_seen_=_SEEN,
    ),
    "MaxAbsScaler": _row("preprocessing", max_abs_=_FEATURES, scale_=_FEATURES, n_samples_seen_=_SEEN),
    "RobustScaler": _row("preprocessing", center_=_FEATURES_OR_NONE, scale_=_FEATURES_OR_NONE).but(
        needs={"with_centering": "center_", "with_scaling": "scale_"}
    ),
    "Normalizer": _row("preprocessing"),
    "Binarizer": _row("preprocessing"),
    "QuantileTransformer": _row(
        "preprocessing",
        n_quantiles_=Count(),
        references_=_floats("n_quantiles_"),
        quantiles_=_floats("n_quantiles_", "n_features_in_"),
    ),
    "PowerTransformer": _row("preprocessing", lambdas_=_FEATURES, _scaler=_TRANSFORMER).but(
        optional=("_scaler",), needs={"standardize": "_scaler"}
    ),
    "KBinsDiscretizer": _row(
        "preprocessing", bin_edges_=Edges(), n_bins_=Array("n_features_in_", kinds="i"), _encoder=_TRANSFORMER
    ).but(optional=("_encoder",), whole=checks.bins),
    "PolynomialFeatures": _row(
        "preprocessing", _min_degree=Count(), _max_degree=Count(), n_output_features_=Count(), _n_out_full=Count()
    ).but(whole=checks.polynomial),
    "FunctionTransformer": _row("preprocessing").but(params=checks.function_transformer),
    "PCA": _row(
        "decomposition",
        n_components_=Count(),
        n_samples_=Count(),
        mean_=_FEATURES,
        components_=_floats("n_components_", "n_features_in_"),
        explained_variance_=_PER_COMPONENT,
        explained_variance_ratio_=_PER_COMPONENT,
        singular_values_=_PER_COMPONENT,
        noise_variance_=Number(finite=False),
        _fit_svd_solver=Text(),
    ),
    "TruncatedSVD": _row(
        "decomposition",
        components_=_floats(None, "n_features_in_"),
        explained_variance_=_floats(None),
        explained_variance_ratio_=_floats(None),
        singular_values_=_floats(None),
    ),
    "Nystroem": _row(
        "kernel_approximation",
        components_=_floats(None, "n_features_in_"),
        normalization_=_floats("_n_features_out", "_n_features_out"),
        component_indices_=Places(),
        _n_features_out=Count(),
    ).but(whole=checks.nystroem),
    "RBFSampler": _row(
        "kernel_approximation",
        random_weights_=_floats("n_features_in_", "_n_features_out"),
        random_offset_=_floats("_n_features_out"),
        _n_features_out=Count(),
        _gamma=Number(finite=False),
    ),
    "SelectKBest": _row("feature_selection", scores_=_FEATURES, pvalues_=_FEATURES_OR_NONE),
    "SelectPercentile": _row("feature_selection", scores_=_FEATURES, pvalues_=_FEATURES_OR_NONE),
    "VarianceThreshold": _row("feature_selection", variances_=_FEATURES),
    # Missing cells and categories.
    "SimpleImputer": _row(
        "impute",
        statistics_=Array("n_features_in_", kinds="fiubOU"),
        indicator_=Model(methods=("transform",), words=(None,)),
        _fit_dtype=checks.DTYPE,
        _fill_dtype=checks.DTYPE,
    ).but(needs={"add_indicator": "indicator_"}),
    "MissingIndicator": _row("impute", features_=Places("_n_features"), _n_features=Count(), _precomputed=Flag()).but(
        whole=checks.indicator
    ),
    "OneHotEncoder": _row(
        "preprocessing",
        categories_=_CATEGORIES,
        drop_idx_=_DROPPED,
        _drop_idx_after_grouping=_DROPPED,
        _n_features_outs=ListOf(Count(), "n_features_in_"),
        **_GROUPS,
    ).but(optional=_GROUPED, params=checks.number_type, whole=checks.one_hot),
    "OrdinalEncoder": _row("preprocessing", categories_=_CATEGORIES, _missing_indices=Kind(), **_GROUPS).but(
        optional=_GROUPED, params=checks.number_type, whole=checks.ordinal
    ),
    # Texts.
    "CountVectorizer": _row("feature_extraction.text", **_TEXT).but(params=checks.texts),
    "TfidfVectorizer": _row("feature_extraction.text", **_TEXT, _tfidf=_TRANSFORMER).but(
        params=checks.texts, whole=checks.tfidf
    ),
    "TfidfTransformer": _row("feature_extraction.text", idf_=_FEATURES).but(
        optional=("idf_",), needs={"use_idf": "idf_"}
    ),
    "HashingVectorizer": _row("feature_extraction.text", _stop_words_id=Unsaved()).but(params=checks.texts),
    # Models made of others.
    "Pipeline": _row("pipeline").but(given=_without_memory, params=checks.pipeline),
    "FeatureUnion": _row("pipeline", _transformers_feature_names_out=Unsaved()).but(params=checks.union),
    "ColumnTransformer": _row(
        "compose",
        transformers_=Kind(),
        _columns=Kind(),
        _transformer_to_input_indices=Kind(),
        _remainder=Kind(),
        sparse_output_=Flag(),
        output_indices_=Kind(),
        _transformers_feature_names_out=Unsaved(),
    ).but(params=checks.column_parts, whole=checks.columns),
    "make_column_selector": _row("compose").but(params=checks.selector),
    "TransformedTargetRegressor": _row(
        "compose",
        regressor_=Model(methods=("predict",)),
        transformer_=Model(methods=("inverse_transform",)),
        _training_dim=checks.DIMENSIONS,
    ),
    "CalibratedClassifierCV": _row(
        "calibration",
        calibrated_classifiers_=Made(_calibrated, frozenset({"estimator", "calibrators", "classes", "method"})),
        classes_=Labels(alone=True),
    ).but(whole=checks.calibrated),
    "_SigmoidCalibration": _row("calibration", a_=Number(finite=False), b_=Number(finite=False)),
    "_TemperatureScaling": _row("calibration", beta_=Number(finite=False)),
    "IsotonicRegression": _row(
        "isotonic",
        increasing_=Flag(),
        X_min_=Number(finite=False),
        X_max_=Number(finite=False),
        X_thresholds_=_floats(None),
        y_thresholds_=_floats("X_thresholds_"),
        f_=Unsaved(),
    ).but(whole=checks.isotonic, finish=checks.isotonic_function),
    "FrozenEstimator": _row("frozen").but(params=checks.frozen),
    "VotingClassifier": _row(
        "ensemble",
        classes_=Labels(alone=True),
        estimators_=ListOf(Model(methods=("predict", "classes_"))),
        le_=Unsaved(),
        named_estimators_=Unsaved(),
    ).but(params=checks.voters, whole=checks.voting_classes, finish=checks.voting_names),
    "VotingRegressor": _row(
        "ensemble", estimators_=ListOf(Model(methods=("predict",))), named_estimators_=Unsaved()
    ).but(params=checks.voters, whole=checks.voting, finish=checks.voting_names),
    # How the samples were split: of use for another fit.
    "KFold": _row("model_selection"),
    "StratifiedKFold": _row("model_selection"),
}
