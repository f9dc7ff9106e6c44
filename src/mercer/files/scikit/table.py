"""Table of the scikit-learn classes that a ``.mercer`` file may hold, with their fitted attributes.

Mercer's own classes declare their attributes themselves (fitting/pipeline/state.py); those of scikit-learn are declared
here in the same form. A new class needs one entry: its module, the specs of its fitted attributes, and, if attributes
depend on each other or on parameters, a function that checks them (mercer.files.scikit.checks).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mercer.estimators.fitting.pipeline.class_spec import EVERY, Check, ClassSpec, Plain
from mercer.estimators.fitting.pipeline.state import (
    Array,
    AttributeSpec,
    Count,
    Flag,
    IndexArray,
    Labels,
    ListOf,
    NestedEstimator,
    Number,
    Text,
    Unsaved,
    fitted,
)
from mercer.files.scikit import checks
from mercer.files.scikit.checks import Categories, Edges, Fitted, RebuiltObjects, Vocabulary


@dataclass(frozen=True)
class ScikitClass:
    """Class of scikit-learn: its module, which is imported when a file needs it, and the spec of its attributes."""

    module: str
    spec: ClassSpec


def _parameters(model: Fitted) -> Plain:
    """Return the parameters of an estimator, or all attributes of a plain object."""
    params = dict(model.get_params(deep=False)) if hasattr(model, "get_params") else dict(vars(model))
    if "memory" in params:
        params["memory"] = None  # a folder on this host, needed only for fitting
    return params


def _class(
    module: str,
    attributes: Mapping[str, AttributeSpec] = EVERY,
    *,
    optional: tuple[str, ...] = (),  # attributes that not every fit sets
    check_parameters: Check = checks.check_nothing,  # raises ModelFormatError for harmful parameters
    check: Check = checks.check_nothing,  # raises ModelFormatError for contradictory attributes
    complete: Check = checks.check_nothing,  # sets attributes that follow from others and are not saved
) -> ScikitClass:
    """Return an entry of the table; attributes are required unless they are optional or never saved."""

    def check_all_parameters(model: Fitted) -> None:
        if hasattr(model, "_parameter_constraints"):
            model._validate_params()
        check_parameters(model)

    specs = {
        name: spec if name in optional or name in EVERY or isinstance(spec, Unsaved) else replace(spec, required=True)
        for name, spec in attributes.items()
    }
    return ScikitClass(
        f"sklearn.{module}", ClassSpec({**EVERY, **specs}, _parameters, check_all_parameters, check, complete)
    )


def _floats(*shape: str | None, **options: Any) -> AttributeSpec:
    """Return the spec of an array of floats, which may include NaN and infinity."""
    return Array(*shape, kinds="f", **options)


def _per_feature(needed_by: str = "") -> AttributeSpec:
    """Return the spec of one number per feature, or of None if the parameter `needed_by` is not true."""
    return _floats("n_features_in_", or_none=True, needed_by=needed_by)


_FEATURES: Final = _floats("n_features_in_")
_N_SAMPLES_SEEN: Final = Array("n_features_in_", kinds="iuf", single=True)
_PER_COMPONENT: Final = _floats("n_components_")
_RARE_CATEGORIES: Final = {
    "_infrequent_enabled": Flag(),
    "_infrequent_indices": ListOf(IndexArray(), "n_features_in_", or_none=True),
    "_default_to_infrequent_mappings": ListOf(IndexArray(), "n_features_in_", or_none=True),
}
_OPTIONAL_RARE: Final = ("_infrequent_indices", "_default_to_infrequent_mappings")
_TEXT: Final = fitted(vocabulary_=Vocabulary(), fixed_vocabulary_=Flag(), _stop_words_id=Unsaved())
_DROPPED: Final = Array("n_features_in_", kinds="O", or_none=True)
_CATEGORIES: Final = ListOf(Categories(), "n_features_in_")
_TRANSFORMER: Final = NestedEstimator(methods=("transform",))


def _calibrated(**values: Any) -> Any:
    """Return an object of CalibratedClassifierCV that holds one fold's classifier and calibrators."""
    from sklearn.calibration import _CalibratedClassifier

    return _CalibratedClassifier(**values)


SCIKIT: Final[dict[str, ScikitClass]] = {
    # Columns of numbers.
    "StandardScaler": _class(
        "preprocessing",
        fitted(
            mean_=_per_feature("with_mean"),
            var_=_per_feature(),
            scale_=_per_feature("with_std"),
            n_samples_seen_=_N_SAMPLES_SEEN,
        ),
    ),
    "MinMaxScaler": _class(
        "preprocessing",
        fitted(
            **dict.fromkeys(("scale_", "min_", "data_min_", "data_max_", "data_range_"), _FEATURES),
            n_samples_seen_=_N_SAMPLES_SEEN,
        ),
    ),
    "MaxAbsScaler": _class(
        "preprocessing", fitted(max_abs_=_FEATURES, scale_=_FEATURES, n_samples_seen_=_N_SAMPLES_SEEN)
    ),
    "RobustScaler": _class(
        "preprocessing", fitted(center_=_per_feature("with_centering"), scale_=_per_feature("with_scaling"))
    ),
    "Normalizer": _class("preprocessing"),
    "Binarizer": _class("preprocessing"),
    "QuantileTransformer": _class(
        "preprocessing",
        fitted(
            n_quantiles_=Count(),
            references_=_floats("n_quantiles_"),
            quantiles_=_floats("n_quantiles_", "n_features_in_"),
        ),
    ),
    "PowerTransformer": _class(
        "preprocessing",
        fitted(lambdas_=_FEATURES, _scaler=replace(_TRANSFORMER, needed_by="standardize")),
        optional=("_scaler",),
    ),
    "KBinsDiscretizer": _class(
        "preprocessing",
        fitted(bin_edges_=Edges(), n_bins_=Array("n_features_in_", kinds="i"), _encoder=_TRANSFORMER),
        optional=("_encoder",),
        check=checks.check_bins,
    ),
    "PolynomialFeatures": _class(
        "preprocessing",
        fitted(_min_degree=Count(), _max_degree=Count(), n_output_features_=Count(), _n_out_full=Count()),
        check=checks.check_polynomial,
    ),
    "FunctionTransformer": _class("preprocessing", check_parameters=checks.check_function_transformer),
    "PCA": _class(
        "decomposition",
        fitted(
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
    ),
    "TruncatedSVD": _class(
        "decomposition",
        fitted(
            components_=_floats(None, "n_features_in_"),
            explained_variance_=_floats(None),
            explained_variance_ratio_=_floats(None),
            singular_values_=_floats(None),
        ),
    ),
    "Nystroem": _class(
        "kernel_approximation",
        fitted(
            components_=_floats(None, "n_features_in_"),
            normalization_=_floats("_n_features_out", "_n_features_out"),
            component_indices_=IndexArray(),
            _n_features_out=Count(),
        ),
        check=checks.check_nystroem,
    ),
    "RBFSampler": _class(
        "kernel_approximation",
        fitted(
            random_weights_=_floats("n_features_in_", "_n_features_out"),
            random_offset_=_floats("_n_features_out"),
            _n_features_out=Count(),
            _gamma=Number(finite=False),
        ),
    ),
    "SelectKBest": _class("feature_selection", fitted(scores_=_FEATURES, pvalues_=_per_feature())),
    "SelectPercentile": _class("feature_selection", fitted(scores_=_FEATURES, pvalues_=_per_feature())),
    "VarianceThreshold": _class("feature_selection", fitted(variances_=_FEATURES)),
    # Missing values and categories.
    "SimpleImputer": _class(
        "impute",
        fitted(
            statistics_=Array("n_features_in_", kinds="fiubOU"),
            indicator_=NestedEstimator(methods=("transform",), words=(None,), needed_by="add_indicator"),
            _fit_dtype=checks.DTYPE,
            _fill_dtype=checks.DTYPE,
        ),
    ),
    "MissingIndicator": _class(
        "impute",
        fitted(features_=IndexArray("_n_features"), _n_features=Count(), _precomputed=Flag()),
        check=checks.check_indicator,
    ),
    "OneHotEncoder": _class(
        "preprocessing",
        fitted(
            categories_=_CATEGORIES,
            drop_idx_=_DROPPED,
            _drop_idx_after_grouping=_DROPPED,
            _n_features_outs=ListOf(Count(), "n_features_in_"),
            **_RARE_CATEGORIES,
        ),
        optional=_OPTIONAL_RARE,
        check_parameters=checks.check_number_type,
        check=checks.check_one_hot,
    ),
    "OrdinalEncoder": _class(
        "preprocessing",
        fitted(categories_=_CATEGORIES, _missing_indices=AttributeSpec(), **_RARE_CATEGORIES),
        optional=_OPTIONAL_RARE,
        check_parameters=checks.check_number_type,
        check=checks.check_ordinal,
    ),
    # Texts.
    "CountVectorizer": _class("feature_extraction.text", _TEXT, check_parameters=checks.check_texts),
    "TfidfVectorizer": _class(
        "feature_extraction.text",
        fitted(_TEXT, _tfidf=_TRANSFORMER),
        check_parameters=checks.check_texts,
        check=checks.check_tfidf,
    ),
    "TfidfTransformer": _class(
        "feature_extraction.text", fitted(idf_=replace(_FEATURES, needed_by="use_idf")), optional=("idf_",)
    ),
    "HashingVectorizer": _class(
        "feature_extraction.text", fitted(_stop_words_id=Unsaved()), check_parameters=checks.check_texts
    ),
    # Models made of others.
    "Pipeline": _class("pipeline", check_parameters=checks.check_pipeline),
    "FeatureUnion": _class(
        "pipeline", fitted(_transformers_feature_names_out=Unsaved()), check_parameters=checks.check_union
    ),
    "ColumnTransformer": _class(
        "compose",
        fitted(
            transformers_=AttributeSpec(),
            _columns=AttributeSpec(),
            _transformer_to_input_indices=AttributeSpec(),
            _remainder=AttributeSpec(),
            sparse_output_=Flag(),
            output_indices_=AttributeSpec(),
            _transformers_feature_names_out=Unsaved(),
        ),
        check_parameters=checks.check_column_parts,
        check=checks.check_column_transformer,
    ),
    "make_column_selector": _class("compose", check_parameters=checks.check_selector),
    "TransformedTargetRegressor": _class(
        "compose",
        fitted(
            regressor_=NestedEstimator(methods=("predict",)),
            transformer_=NestedEstimator(methods=("inverse_transform",)),
            _training_dim=checks.DIMENSIONS,
        ),
    ),
    "CalibratedClassifierCV": _class(
        "calibration",
        fitted(
            calibrated_classifiers_=RebuiltObjects(
                _calibrated, frozenset({"estimator", "calibrators", "classes", "method"})
            ),
            classes_=Labels(without_outputs=True),
        ),
        check=checks.check_calibrated,
    ),
    "_SigmoidCalibration": _class("calibration", fitted(a_=Number(finite=False), b_=Number(finite=False))),
    "_TemperatureScaling": _class("calibration", fitted(beta_=Number(finite=False))),
    "IsotonicRegression": _class(
        "isotonic",
        fitted(
            increasing_=Flag(),
            X_min_=Number(finite=False),
            X_max_=Number(finite=False),
            X_thresholds_=_floats(None),
            y_thresholds_=_floats("X_thresholds_"),
            f_=Unsaved(),
        ),
        check=checks.check_isotonic,
        complete=checks.set_isotonic_function,
    ),
    "FrozenEstimator": _class("frozen", check_parameters=checks.check_frozen),
    "VotingClassifier": _class(
        "ensemble",
        fitted(
            classes_=Labels(without_outputs=True),
            estimators_=ListOf(NestedEstimator(methods=("predict", "classes_"))),
            le_=Unsaved(),
            named_estimators_=Unsaved(),
        ),
        check_parameters=checks.check_voters,
        check=checks.check_voting_classes,
        complete=checks.set_voting_names,
    ),
    "VotingRegressor": _class(
        "ensemble",
        fitted(estimators_=ListOf(NestedEstimator(methods=("predict",))), named_estimators_=Unsaved()),
        check_parameters=checks.check_voters,
        check=checks.check_voting,
        complete=checks.set_voting_names,
    ),
    # Splitters, which are parameters of other estimators.
    "KFold": _class("model_selection"),
    "StratifiedKFold": _class("model_selection"),
}
