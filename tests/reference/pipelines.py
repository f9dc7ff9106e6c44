"""Pipelines after scikit-learn's user guide around mercer's estimators, two dozen of them, with rows for each."""

import warnings
from functools import cache

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.ensemble import VotingClassifier, VotingRegressor
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest, VarianceThreshold, chi2, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import mercer

IRIS, KINDS = load_iris(return_X_y=True)
WINE, WINES = load_wine(return_X_y=True)
DIABETES, PROGRESS = (part[:120] for part in load_diabetes(return_X_y=True))
HOLES = np.where(np.random.default_rng(0).random(IRIS.shape) < 0.1, np.nan, IRIS)
NAMES = np.array(["setosa", "versicolor", "virginica"])[KINDS]
TEXTS = [
    "the quick brown fox jumps over the lazy dog",
    "God is love, and love is all there is",
    "OpenGL on the GPU is fast, and shaders are faster",
    "the lazy dog sleeps; the fox does not",
    "graphics cards draw triangles on the screen",
    "all you need is love",
] * 4
TOPICS = ["animals", "faith", "graphics", "animals", "graphics", "faith"] * 4


def table():
    """A table with numbers, holes, categories and a text, as a DataFrame or, without pandas, not at all."""
    import pandas

    rng = np.random.default_rng(1)
    n = 80
    return pandas.DataFrame(
        {
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n)),
            "fare": rng.exponential(30.0, n),
            "embarked": rng.choice(["S", "C", "Q"], n),
            "sex": rng.choice(["male", "female"], n),
            "pclass": rng.integers(1, 4, n),
            "remark": rng.choice(["late again", "on time", "never seen"], n),
        }
    )


def survived(frame):
    return ((frame["sex"] == "female") ^ (frame["fare"] > 60)).to_numpy().astype(int)


def mixed():
    """The user guide's example of columns of several types."""
    numbers = Pipeline([("imputer", SimpleImputer(strategy="median")), ("scaler", StandardScaler())])
    words = Pipeline([("encoder", OneHotEncoder(handle_unknown="ignore")), ("selector", SelectKBest(chi2, k=3))])
    columns = ColumnTransformer([("num", numbers, ["age", "fare"]), ("cat", words, ["embarked", "sex", "pclass"])])
    return Pipeline([("preprocessor", columns), ("classifier", mercer.SVC())]), table(), survived(table())


def tabular():
    """A table as it comes."""
    return mercer.tabular(mercer.SVC(), text=["remark"], categorical=["pclass"]), table(), survived(table())


def selected():
    columns = make_column_transformer(
        (
            make_pipeline(SimpleImputer(add_indicator=True), RobustScaler()),
            make_column_selector(dtype_include=np.number),
        ),
        (OneHotEncoder(min_frequency=20, handle_unknown="infrequent_if_exist"), ["embarked", "sex"]),
        (TfidfVectorizer(), "remark"),
    )
    return make_pipeline(columns, mercer.LinearSVC()), table(), survived(table())


def ordinal():
    columns = make_column_transformer(
        (OrdinalEncoder(), ["embarked", "sex"]), ("drop", ["remark"]), remainder=SimpleImputer(strategy="mean")
    )
    return make_pipeline(columns.set_output(transform="pandas"), mercer.RLSClassifier()), table(), survived(table())


def frozen():
    inner = make_pipeline(StandardScaler(), mercer.SVC()).fit(IRIS, NAMES)
    return CalibratedClassifierCV(FrozenEstimator(inner), method="isotonic"), IRIS, NAMES


def voting():
    parts = [
        ("rbf", mercer.SVC()),
        ("linear", make_pipeline(StandardScaler(), mercer.LinearSVC())),
        ("out", "drop"),
        ("rls", mercer.RLSClassifier()),
    ]
    return VotingClassifier(parts, weights=[2, 1, 0, 1]), IRIS, NAMES


def soft_voting():
    parts = [(f"gamma {g}", CalibratedClassifierCV(mercer.SVC(gamma=g), cv=3)) for g in (0.1, 1.0)]
    return VotingClassifier(parts, voting="soft"), IRIS, NAMES


def nested():
    inner = FeatureUnion([("svd", TruncatedSVD(2, random_state=0)), ("keep", "passthrough")])
    outer = make_union(make_pipeline(MinMaxScaler(), inner), PCA(0.9, whiten=True), Normalizer())
    return make_pipeline(SimpleImputer(), outer, mercer.NuSVC(nu=0.2)), HOLES, KINDS


def indicated():
    union = FeatureUnion([("features", SimpleImputer(strategy="mean")), ("indicators", MissingIndicator())])
    return make_pipeline(union, mercer.SVC(kernel="laplacian")), HOLES, KINDS


def target_scaled():
    scaler = QuantileTransformer(n_quantiles=50, output_distribution="normal")
    return TransformedTargetRegressor(mercer.SVR(C=10.0), transformer=scaler), DIABETES, PROGRESS


def voting_regressor():
    parts = [("svr", mercer.SVR(C=100.0)), ("rls", make_pipeline(PowerTransformer(), mercer.RLSRegressor()))]
    return VotingRegressor(parts), DIABETES, PROGRESS


def words(kernel="cosine"):
    pipe = Pipeline([("vect", CountVectorizer(ngram_range=(1, 2), min_df=2)), ("tfidf", TfidfTransformer())])
    return Pipeline([*pipe.steps, ("clf", mercer.SVC(kernel=kernel))]), TEXTS, TOPICS


def letters():
    vectors = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, dtype=np.float32)
    return make_pipeline(vectors, TruncatedSVD(5, random_state=0), Normalizer(), mercer.SVC()), TEXTS, TOPICS


PIPELINES = {
    "scaled": lambda: (make_pipeline(StandardScaler(), mercer.SVC(C=2.0)), WINE, WINES),
    "reduced": lambda: (Pipeline([("reduce_dim", PCA(3)), ("clf", mercer.SVC())]), IRIS, NAMES),
    "randomized": lambda: (
        make_pipeline(StandardScaler(), PCA(4, svd_solver="randomized", random_state=0), mercer.SVC()),
        WINE,
        WINES,
    ),
    "polynomial": lambda: (
        Pipeline([("poly", PolynomialFeatures(3, interaction_only=True)), ("linear", mercer.RLSRegressor())]),
        DIABETES[:, :5],
        PROGRESS,
    ),
    "binned": lambda: (
        make_pipeline(KBinsDiscretizer(4, strategy="uniform"), mercer.LinearSVC()),
        IRIS,
        KINDS,
    ),
    "words": words,
    "hashed": lambda: (make_pipeline(HashingVectorizer(n_features=256), mercer.LinearSVC()), TEXTS, TOPICS),
    "letters": letters,
    "mixed": mixed,
    "tabular": tabular,
    "selected": selected,
    "ordinal": ordinal,
    "nested": nested,
    "indicated": indicated,
    "calibrated": lambda: (
        make_pipeline(
            StandardScaler(),
            CalibratedClassifierCV(mercer.SVC(), cv=StratifiedKFold(3, shuffle=True, random_state=0)),
        ),
        IRIS,
        NAMES,
    ),
    "frozen": frozen,
    "voting": voting,
    "soft voting": soft_voting,
    "voting regressor": voting_regressor,
    "logarithm": lambda: (
        TransformedTargetRegressor(
            make_pipeline(FunctionTransformer(np.cbrt), mercer.NystromRLS(random_state=0)),
            func=np.log,
            inverse_func=np.exp,
        ),
        DIABETES,
        PROGRESS,
    ),
    "target scaled": target_scaled,
    "features of a kernel": lambda: (
        make_pipeline(
            MaxAbsScaler(),
            make_union(RBFSampler(n_components=20, random_state=0), Nystroem(n_components=10, random_state=0)),
            mercer.PegasosSVC(random_state=0),
        ),
        IRIS,
        KINDS,
    ),
    "chosen": lambda: (
        make_pipeline(VarianceThreshold(1e-4), SelectKBest(f_regression, k=4), mercer.QuantileSVR([0.1, 0.9])),
        DIABETES,
        PROGRESS,
    ),
    "outliers": lambda: (make_pipeline(RobustScaler(), mercer.OneClassSVM(nu=0.1)), IRIS, None),
}


@cache
def fitted(name):
    """The pipeline of this name, and rows to ask it about."""
    model, rows, target = PIPELINES[name]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(rows, target), rows


def answers(model, rows):
    """Everything that it says of the rows, as bytes."""
    said = {}
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            answer = np.asarray(getattr(model, method)(rows))
            said[method] = (
                str(answer.dtype),
                answer.shape,
                answer.tobytes().hex() if answer.dtype != object else answer.tolist(),
            )
    return said
