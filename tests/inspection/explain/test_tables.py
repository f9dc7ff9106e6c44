"""Shapley values of a table's columns against their definition over all subsets of columns; whatever is around f."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
)
from sklearn.svm import SVR as ScikitSVR

import mercer
from mercer import SVC, SVDD, SVR, LinearSVC, OneClassSVM, QuantileSVR, RLSRegressor, TunedSVC, tabular, unwrap
from mercer.inspection.explain import explain
from mercer.kernels import Gaussian, Laplacian, Linear, Polynomial
from reference.shapley import by_all_subsets

N = 60


def made(n=N, seed=0):
    """Eight columns: three categories, a truth value, a date, and numbers; with holes."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "age": rng.normal(45, 12, n).round(1),
            "plan": rng.choice(["basic", "plus", "pro"], n),
            "city": rng.choice(["Bonn", "Hof", "Ulm", "Zug"], n),
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), "D"),
            "colour": rng.choice(["red", "blue"], n),
            "active": rng.random(n) < 0.5,
            "visits": rng.poisson(6, n).astype(float),
            "score": rng.normal(size=n),
        }
    )
    table.loc[::7, "age"] = np.nan
    table.loc[::9, "plan"] = None
    return table


TABLE = made()
Y = (TABLE["plan"] == "pro") * TABLE["visits"] + 2 * np.sin(TABLE["score"]) + (TABLE["city"] == "Hof")
Y = 100 + 10 * Y.to_numpy(dtype=float)
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
BACKGROUND = TABLE.iloc[:5]
ROWS = TABLE.iloc[[14, 18, 30]].copy()  # with holes
ROWS.iloc[2, 1] = "new"  # a category that training has not seen
Z = (Y - Y.mean()) / Y.std()
WEIGHTS = np.array([1.0, 2.0, 0.0, 0.5, 3.0])


def frame(mixed, like):
    """Rows of objects as a frame with the types of another one."""
    return pd.DataFrame(
        {name: pd.Series(list(cells)).astype(like[name].dtype) for name, cells in zip(like, mixed.T, strict=True)}
    )


def functions(model, table):
    """f of the machine inside, a column for each function, through nothing of what explains."""
    asked = unwrap(model)
    machine, rows = asked.machine, table
    for step in asked.steps:
        rows = step.encode(rows) if hasattr(step, "encode") else step.transform(rows)
    if hasattr(machine, "decision_function"):
        shape = {"decision_function_shape": "ovo"} if hasattr(machine, "decision_function_shape") else {}
        return np.reshape(machine.set_params(**shape).decision_function(rows), (len(table), -1))
    return np.reshape(model.predict(table), (len(table), -1))


def assert_exact(model, rows=ROWS, background=BACKGROUND, weight=None, tolerance=1e-10):
    found = explain(model, rows, background, background_weight=weight)
    f = functions(model, rows)
    size = max(1.0, np.abs(f).max())
    values = found.values.reshape(*found.values.shape[:2], -1)
    assert values.shape == (*rows.shape, f.shape[1])
    assert found.feature_names == list(rows)
    others = background.to_numpy(dtype=object)
    for i, row in enumerate(rows.to_numpy(dtype=object)):
        expected, base = by_all_subsets(lambda mixed: functions(model, frame(mixed, rows)), row, others, weight)
        np.testing.assert_allclose(values[i], expected, atol=tolerance * size, rtol=0)
        np.testing.assert_allclose(found.base_values.reshape(len(rows), -1)[i], base, atol=tolerance * size, rtol=0)
    assert found.error < tolerance * size
    return found


KERNELS = {
    "Gaussian": Gaussian(gamma=0.1),
    "Laplacian": Laplacian(gamma=0.1),
    "Linear": Linear(),
    "Polynomial": Polynomial(degree=3, gamma=0.1, coef0=0.7),
    "sum": Gaussian(gamma=0.2) + 0.3 * Linear() + Laplacian(gamma=0.1),
    "product": Linear() * Gaussian(gamma=0.05),
}


@pytest.mark.parametrize("name", KERNELS)
def test_columns_of_a_table_equal_all_subsets_of_columns(name):
    model = tabular(SVR(kernel=KERNELS[name], C=3.0)).fit(TABLE, Y)
    assert_exact(model, weight=WEIGHTS)


MACHINES = {
    "SVC": lambda: tabular(SVC(C=3.0)).fit(TABLE, LABELS == "high"),
    "SVC of three classes": lambda: tabular(SVC(C=3.0)).fit(TABLE, LABELS),
    "SVC against the rest": lambda: tabular(SVC(C=3.0, multiclass="ovr")).fit(TABLE, LABELS),
    "LinearSVC": lambda: tabular(LinearSVC()).fit(TABLE, LABELS),
    "OneClassSVM": lambda: tabular(OneClassSVM(nu=0.3)).fit(TABLE),
    "SVDD": lambda: tabular(SVDD(nu=0.3)).fit(TABLE),
    "quantiles": lambda: tabular(QuantileSVR(quantiles=[0.2], C=3.0)).fit(TABLE, Y),
    "two targets": lambda: tabular(RLSRegressor(lam=0.1)).fit(TABLE, np.stack([Y, 1000 * np.sin(Y)], axis=1)),
    "a search inside": lambda: tabular(TunedSVC({"C": [1.0, 5.0]}, cv=2)).fit(TABLE, LABELS == "high"),
    "a search around": lambda: GridSearchCV(tabular(SVC()), {"estimator__C": [1.0, 5.0]}, cv=2).fit(
        TABLE, LABELS == "high"
    ),
    "calibrated": lambda: tabular(SVC(C=3.0)).fit(TABLE, LABELS).calibrate(TABLE, LABELS, cv=2),
    "calibrated inside": lambda: tabular(mercer.CalibratedClassifier(SVC(), cv=2)).fit(TABLE, LABELS == "low"),
    "intervals of a table": lambda: mercer.CalibratedRegressor(tabular(SVR(C=3.0)), cv=2).fit(TABLE, Y),
    "frozen": lambda: FrozenEstimator(tabular(SVC(C=3.0)).fit(TABLE, LABELS == "low")),
    "scaled again": lambda: tabular(make_pipeline(MinMaxScaler(), SVR(C=3.0)), missing="drop").fit(TABLE, Y),
    "other columns": lambda: tabular(SVR(C=3.0), drop=["city"], categorical=["visits"], standardise=False).fit(
        TABLE, Z
    ),
    "one compressed": lambda: mercer.compress(tabular(SVC(C=3.0)).fit(TABLE, LABELS == "high"), 10),
}


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_and_what_may_be_around_it(name):
    assert_exact(MACHINES[name](), rows=ROWS.iloc[[0, 2]], background=BACKGROUND.iloc[:3])


def test_the_values_of_a_category_are_not_the_sum_of_those_of_its_levels():
    model = tabular(SVC(C=3.0)).fit(TABLE, LABELS == "high")
    inside = model.estimator_.explain(model.encode(ROWS), model.encode(BACKGROUND)).values
    titles = model.get_feature_names_out()
    summed = np.stack(
        [
            inside[
                :, [str(t).partition("=")[0].partition(":")[0].removesuffix(" is missing") == name for t in titles]
            ].sum(1)
            for name in TABLE
        ],
        axis=1,
    )
    values = model.explain(ROWS, BACKGROUND).values
    np.testing.assert_allclose(summed.sum(axis=1), values.sum(axis=1), atol=1e-12)
    assert np.abs(summed - values).max() > 1e-3


def test_a_column_that_is_left_out_is_worth_nothing():
    table = TABLE.assign(customer_id=np.arange(len(TABLE)) + 1000, same=1.0)
    with pytest.warns(UserWarning, match="customer_id"):
        model = tabular(SVR(C=3.0)).fit(table, Y)
    rows, others = table.iloc[[14, 18]], table.iloc[:3]
    found = model.explain(rows, others)
    assert found.feature_names[-2:] == ["customer_id", "same"]
    assert (found.values[:, -2:] == 0).all()
    plain = tabular(SVR(C=3.0)).fit(TABLE, Y).explain(rows[list(TABLE)], others[list(TABLE)])
    np.testing.assert_array_equal(found.values[:, :-2], plain.values)
    without = model.explain(rows.drop(columns="customer_id"), others)
    np.testing.assert_array_equal(without.values, found.values)
    assert without.data[0, -2] is None


def test_a_wide_category_that_is_kept_sparse():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "code": rng.choice([f"{letter}-code" for letter in "abcdefghijklmnopqrstuvwxyzäöüßéèêàâçñøåæœ"[:40]], 90),
            "other": rng.choice(list("abcdefgh"), 90),
            "x": rng.normal(size=90),
        }
    )
    model = tabular(SVR(C=3.0)).fit(table, np.arange(90.0) % 7)
    assert not isinstance(model.encode(table), np.ndarray)
    assert_exact(model, rows=table.iloc[50:52], background=table.iloc[:4])


def test_rows_may_come_from_any_library_and_in_any_order():
    model = tabular(SVC(C=3.0)).fit(TABLE, LABELS == "high")
    values = model.explain(ROWS, BACKGROUND).values
    other = pl.DataFrame(
        {name: [None if cell != cell else cell for cell in cells] for name, cells in BACKGROUND.items()}
    )
    np.testing.assert_array_equal(model.explain(ROWS[list(ROWS)[::-1]], other).values, values)
    assert model.explain(ROWS, BACKGROUND).data[0, 2] == ROWS.iloc[0, 2]
    array = tabular(SVC(C=3.0)).fit(TABLE.to_numpy(dtype=object), LABELS == "high")
    found = array.explain(ROWS.to_numpy(dtype=object), BACKGROUND.to_numpy(dtype=object))
    np.testing.assert_allclose(found.values, values, atol=1e-12)
    assert found.feature_names[0] == "x0"


def test_one_row_of_background_and_a_row_that_is_the_background():
    model = tabular(SVC(C=3.0)).fit(TABLE, LABELS == "high")
    assert_exact(model, rows=ROWS.iloc[:1], background=BACKGROUND.iloc[:1])
    assert (model.explain(BACKGROUND.iloc[:1], BACKGROUND.iloc[:1]).values == 0).all()


# --- Pipelines of scikit-learn ----------------------------------------------------------------------------------------

WORDS = ["late parcel", "wrong size", "late and wrong", "fine", "fine size"]
TEXTS = TABLE[["age", "plan", "city", "visits", "score"]].assign(
    text=[WORDS[k % 5] for k in range(N)], plan=TABLE["plan"].fillna("none")
)
NUMBERS = ["visits", "age", "score"]


def columns(*parts, **options):
    return make_column_transformer(*parts, **options)


STEPS = {
    "one-hot, imputed and scaled": lambda: columns(
        (OneHotEncoder(handle_unknown="ignore"), ["plan", "city"]),
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), NUMBERS),
    ),
    "first level left out, rare ones joined": lambda: columns(
        (OneHotEncoder(drop="first", min_frequency=15, handle_unknown="infrequent_if_exist"), ["city", "plan"]),
        (SimpleImputer(), ["score", "age"]),
    ),
    "words": lambda: columns(
        (TfidfVectorizer(), "text"),
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), ["city", "plan"]),
        (StandardScaler(), ["visits"]),
    ),
    "a column twice": lambda: columns(
        (StandardScaler(), ["visits", "score"]),
        (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["score"]),
        (SplineTransformer(4), ["score", "visits"]),
    ),
    "remainder": lambda: ColumnTransformer(
        [("t", OneHotEncoder(handle_unknown="ignore"), ["plan", "city", "text"]), ("age", SimpleImputer(), ["age"])],
        remainder="passthrough",
    ),
    "chosen": lambda: make_pipeline(
        columns((SimpleImputer(), NUMBERS), (OneHotEncoder(), ["text"])),
        StandardScaler(),
        SelectKBest(f_regression, k=4),
    ),
    "union": lambda: make_pipeline(
        columns((SimpleImputer(), NUMBERS)),
        FeatureUnion([("a", StandardScaler()), ("b", FunctionTransformer(np.tanh)), ("c", "passthrough")]),
    ),
    "pca of one column": lambda: columns((PCA(1), ["score"]), (PolynomialFeatures(3), ["visits"])),
}


@pytest.mark.parametrize("name", STEPS)
def test_pipelines_of_columns(name):
    model = make_pipeline(STEPS[name](), SVR(C=3.0)).fit(TEXTS, Z)
    rows, others = TEXTS.iloc[[14, 31]], TEXTS.iloc[:3]
    found = assert_exact(model, rows=rows, background=others)
    np.testing.assert_array_equal(unwrap(model).explain(rows, others).values, found.values)


def test_a_pipeline_of_numbers_and_one_around_a_table():
    X = TABLE[["visits", "score"]].to_numpy()
    model = make_pipeline(StandardScaler(), "passthrough", SVC(C=3.0)).fit(X, LABELS == "high")
    found = explain(model, X[:4], X[10:20])
    inside = model[-1].explain(model[:-1].transform(X[:4]), model[:-1].transform(X[10:20]))
    np.testing.assert_array_equal(found.values, inside.values)
    np.testing.assert_array_equal(found.data, X[:4])
    assert_exact(make_pipeline(FunctionTransformer(), tabular(SVR(C=3.0))).fit(TABLE, Y))


@pytest.mark.parametrize(
    "step", [PCA(2), Normalizer(), PolynomialFeatures(), KNNImputer(), FunctionTransformer(np.cumsum)]
)
def test_what_mixes_columns_is_refused(step):
    X = np.abs(TABLE[["visits", "score"]].to_numpy()) + 1
    model = (
        make_pipeline(step, SVR()).fit(X, Z)
        if not isinstance(step, FunctionTransformer)
        else make_pipeline(FunctionTransformer(lambda A: A[:, ::-1]), SVR()).fit(X, Z)
    )
    with pytest.raises(ValueError, match=f"{type(step).__name__} may mix columns.*model\\[-1\\].explain"):
        explain(model, X[:2], X[:3])


def test_what_is_no_machine_is_refused():
    for model in (
        ScikitSVR().fit(TABLE[["score"]], Z),
        make_pipeline(StandardScaler(), ScikitSVR()).fit(TABLE[["score"]], Z),
        tabular(mercer.KernelPCA(2)).fit(TABLE),
    ):
        with pytest.raises(TypeError, match="not a mercer estimator that predicts"):
            explain(model, ROWS, BACKGROUND)
    assert not hasattr(tabular(mercer.KernelPCA(2)), "explain")
    assert not hasattr(tabular(SVR()), "margins")
