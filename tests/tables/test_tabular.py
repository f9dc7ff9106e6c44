"""`mercer.tabular`: what each kind of column becomes, what prediction does with other tables, scikit-learn's rules.

Cells and columns of numbers: tests/tables/test_reading.py. The machine inside: tests/tables/test_unwrap.py.
Tools: tests/tools. Files: tests/files/mercer_file/test_description.py, tests/files/scikit/test_pipelines.py.
Names of columns: tests/behaviour/test_names_of_columns.py. Explanations: tests/inspection/explain/test_tables.py.
Folds: tests/calibration/test_learnt_again.py. Commands: tests/cli/test_easy.py.
"""

import copy
import datetime
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mercer
from contracts import scikit_learn_checks
from mercer.files.mercer_file.model_file import describe_model, rebuild_model
from mercer.runtime.errors import GuessWarning, ModelFormatError


def customers(n=120, seed=0):
    """A table with a column of each kind, as lists with None for missing values, and a label that depends on some."""
    rng = np.random.default_rng(seed)
    age = rng.normal(45, 12, n).round(1)
    plan = rng.choice(["basic", "plus", "pro"], n)
    since = [datetime.datetime(2019, 1, 1) + datetime.timedelta(days=int(d)) for d in rng.integers(0, 1500, n)]
    table = {
        "customer_id": [int(i) for i in rng.permutation(n) + 1000],
        "age": [None if i % 10 == 3 else float(a) for i, a in enumerate(age)],
        "plan": [None if i % 15 == 4 else str(p) for i, p in enumerate(plan)],
        "active": [bool(b) for b in rng.random(n) < 0.5],
        "since": since,
        "visits": [int(v) for v in rng.poisson(6, n)],
    }
    label = np.where(0.1 * (age - 45) + 2 * (plan == "pro") + 0.3 * rng.normal(size=n) > 0.5, "stays", "leaves")
    return table, label


def changed(table, **columns):
    return {**table, **columns}


MAKERS = {"pandas": pd.DataFrame, "polars": pl.DataFrame}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_table_as_it_comes(make):
    table, label = customers()
    with pytest.warns(UserWarning, match="'customer_id' is dropped: an identifier") as seen:
        model = mercer.tabular(mercer.SVC()).fit(make(table), label)
    assert seen[0].filename == __file__
    assert [type(one).__name__ for one in model.columns_] == [
        "DroppedColumn",
        "Numbers",
        "Levels",
        "Levels",
        "Dates",
        "Numbers",
    ]
    assert model.feature_names_in_.tolist() == list(table)
    assert model.score(make(table), label) > 0.9
    told = model.columns_told()
    width = max(map(len, table)) + 2
    assert [line[:width] for line in told.splitlines()] == [name.ljust(width) for name in table]
    assert "12 missing values filled with the median" in told
    assert "3 levels (basic, plus, pro); 8 missing values, a level of their own" in told
    assert model.estimator_.certificate_.relative_gap < 0.01
    assert len(model.get_feature_names_out()) == model.encode(make(table)).shape[1]


def test_the_numbers_are_those_of_scikit_learn():
    table, _ = customers()
    frame = pd.DataFrame(table)
    X = mercer.tabular(mercer.SVC(), only=["age", "plan", "visits"]).fit(frame, customers()[1]).encode(frame)
    by_hand = make_column_transformer(
        (make_pipeline(SimpleImputer(strategy="median"), StandardScaler()), ["age", "visits"]),
        (OneHotEncoder(sparse_output=False), ["plan"]),
    ).fit_transform(frame)
    np.testing.assert_allclose(X[:, [0, -1]], by_hand[:, :2], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(X[:, 1], frame["age"].isna())
    np.testing.assert_array_equal(X[:, 2:6], by_hand[:, 2:])


def test_words_are_those_of_scikit_learn():
    texts = ["the red fox", "a red red house", "the house by the sea", "Fox, and sea!", None, "nothing else"]
    model = mercer.tabular(mercer.SVC(), text=["note"]).fit(pd.DataFrame({"note": texts}), [0, 1, 1, 0, 0, 1])
    by_hand = TfidfVectorizer(min_df=2, token_pattern=r"(?u)\b\w+\b").fit_transform([t or "" for t in texts])
    X = model.encode(pd.DataFrame({"note": texts}))
    np.testing.assert_allclose(X.toarray() if hasattr(X, "toarray") else X, by_hand.toarray(), rtol=1e-12)


@pytest.mark.parametrize("n_words", [3, 60])
def test_a_row_has_one_answer_whatever_comes_with_it(n_words):
    """Dense or CSR: rows without a single word among them are encoded as all the others are."""
    table, label = customers()
    notes = [f"w{i % n_words} w{i % 7}" if i % 2 else "" for i in range(120)]
    frame = pd.DataFrame(table).drop(columns="customer_id").assign(note=notes)
    model = mercer.tabular(mercer.SVC(), text=["note"]).fit(frame, label)
    assert {type(model.encode(frame)), type(model.encode(frame[::2]))} == {type(model.encode(frame[1::2]))}
    whole = model.decision_function(frame)
    np.testing.assert_array_equal(model.decision_function(frame[::2]), whole[::2])
    np.testing.assert_array_equal([model.decision_function(frame[i : i + 1])[0] for i in range(9)], whole[:9])


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_other_tables_in_prediction(make):
    table, label = customers()
    model = mercer.tabular(mercer.SVC(), drop=["customer_id"]).fit(make(table), label)
    expected = model.decision_function(make(table))
    turned = {name: table[name] for name in reversed(table) if name != "customer_id"}
    np.testing.assert_array_equal(model.decision_function(make({**turned, "more": [1] * 120})), expected)
    new = make(changed(table, plan=["team"] * 120, age=[None] * 119 + [30.0], since=[None] * 119 + [table["since"][0]]))
    assert np.isfinite(model.decision_function(new)).all()
    without = {name: column for name, column in table.items() if name not in ("age", "plan")}
    with pytest.raises(ValueError, match="lacks the columns 'age', 'plan' that the model was trained on"):
        model.predict(make(without))
    with pytest.raises(ValueError, match="row 2 of the column 'visits' holds '2x', which is not a number"):
        model.predict(make(changed(table, visits=["1", "2x"] + ["3"] * 118)))
    words = make(changed(table, visits=["many", *map(str, table["visits"][1:])]))
    with pytest.warns(GuessWarning, match="'visits' holds 'many' beside numbers: read as missing values"):
        values = model.decision_function(words)
    filled = make(changed(table, visits=[float(np.median(table["visits"])), *table["visits"][1:]]))
    np.testing.assert_array_equal(values, model.decision_function(filled))


def test_a_hole_in_a_column_that_had_none():
    table, label = customers()
    model = mercer.tabular(mercer.SVC(), drop=["customer_id"]).fit(pd.DataFrame(table), label)
    visits = table["visits"]
    holed = pd.DataFrame(changed(table, visits=[None, *visits[1:]]))
    filled = pd.DataFrame(changed(table, visits=[float(np.median(visits)), *visits[1:]]))
    np.testing.assert_array_equal(model.decision_function(holed), model.decision_function(filled))


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (["1", "2.5", "", "3e2"] * 10, "Numbers"),
        (["1", "2", "?", "NA"] * 10, "Numbers"),
        (["007", "123", "045", "123"] * 10, "Levels"),
        (["10115", "20095", "01067", "50667", "80331"] * 8, "Levels"),  # most begin without a zero
        (["4", "6", "8", "4", "6", "8", "4", "6", "8", "rotary"] * 4, "Levels"),
        (["4", "6", "8", "rotary", "turbine"] * 8, "Levels"),
        ([*map(str, range(38)), "k.A.", "-"], "Numbers"),
        ([f"the {w} is {v} and {u}" for w in ("bill", "phone") for v in "abcde" for u in "vwxy"], "Words"),
        (["true", "FALSE", None, "True"] * 10, "Levels"),
        ([f"2024-03-{d:02d}" for d in range(1, 29)] + [None] * 12, "Dates"),
        ([f"{d:02d}.03.2024" for d in range(1, 29)] + [None] * 12, "Dates"),
        ([f"{d}/3/2024 10:30" for d in range(1, 29)] + [None] * 12, "Dates"),
        ([f"3/{d}/2024" for d in range(1, 29)] + [None] * 12, "Dates"),
        (["03/04/2024", "05/06/2024"] * 20, "DroppedColumn"),
        ([f"user{i}" for i in range(40)], "DroppedColumn"),
        ([f"a long text number {i}" for i in range(40)], "DroppedColumn"),
        (["same"] * 40, "DroppedColumn"),
        ([None] * 40, "DroppedColumn"),
        ([datetime.date(2024, 1, d) for d in range(1, 21)] * 2, "Dates"),
    ],
)
def test_what_a_column_is_taken_for(column, kind):
    other = [float(i) for i in range(40)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"x": column, "z": other}), [0, 1] * 20)
    assert type(model.columns_[0]).__name__ == kind, model.columns_[0].description


@pytest.mark.parametrize("n_padded", [1, 30, 40])
def test_padded_integers_are_numbers_where_the_user_or_training_says_so(n_padded):
    rng = np.random.default_rng(0)
    padded = [f"{k:05d}" if i < n_padded else str(k) for i, k in enumerate(rng.integers(1, 99999, 40))]
    padded[0], z, y = "00042", rng.normal(size=40), [0, 1] * 20
    table, plain = (pd.DataFrame({"a": a, "z": z}) for a in (padded, [int(cell) for cell in padded]))
    with pytest.warns(GuessWarning, match="no numbers but codes, such as '0.*; name it in drop .* in numeric"):
        assert mercer.tabular(mercer.SVC()).fit(table, y).columns_[0].description.startswith("dropped")
    reference = mercer.tabular(mercer.SVC()).fit(plain, y)
    np.testing.assert_array_equal(reference.decision_function(table), reference.decision_function(plain))
    named = mercer.tabular(mercer.SVC(), numeric=["a"]).fit(table, y)
    np.testing.assert_array_equal(named.decision_function(table), reference.decision_function(plain))


def test_a_padded_integer_in_one_fold_only():
    """The other folds read numbers, and predict for the row of the code 01234."""
    rng = np.random.default_rng(0)
    codes = [str(k) for k in rng.integers(10000, 99999, 40)]
    codes[7] = "01234"
    table = pd.DataFrame({"a": codes, "z": rng.normal(size=40)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = mercer.easy(table, target=[0, 1] * 20)
        assert len(model.training.held_out.rows) == 40
        assert (
            mercer.CalibratedClassifier(mercer.tabular(mercer.SVC()), cv=4).fit(table, [0, 1] * 20).predict(table).size
        )


def test_new_rows_may_hold_more_words_than_numbers():
    """A row is read alike whatever the other rows hold; words are missing values, as in training."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": [*map(str, rng.normal(size=39).round(2)), "unknown"], "z": rng.normal(size=40)})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = mercer.tabular(mercer.SVC()).fit(table, [0, 1] * 20)
        new = pd.DataFrame({"a": ["unknown", "k.A.", "0.5", "unknown"], "z": [0.0, 1.0, 2.0, 3.0]})
        expected = model.decision_function(new.assign(a=[np.nan, np.nan, 0.5, np.nan]))
        np.testing.assert_array_equal(model.decision_function(new), expected)
        table["a"] = [str(k) if k % 3 else "unknown" for k in range(40)]
        with pytest.raises(ValueError, match="name the column in numeric, categorical or drop"):
            mercer.tabular(mercer.SVC()).fit(table, [0, 1] * 20)
        assert mercer.tabular(mercer.SVC(), numeric=["a"]).fit(table, [0, 1] * 20).columns_[0].n_holes == 14


def test_declared_categories_and_durations():
    """What a frame says of a column counts: integers of a categorical column are no numbers, a duration is one."""
    codes = [1, 2, 3] * 10
    frame = pd.DataFrame({"a": pd.Categorical(codes), "b": pd.to_timedelta(range(30), unit="h")})
    model = mercer.tabular(mercer.SVC()).fit(frame, [0, 1] * 15)
    assert [type(one).__name__ for one in model.columns_] == ["Levels", "Numbers"]
    assert model.columns_[1].centre == 14.5 * 3600
    frame = pl.DataFrame({"a": pl.Series([str(c) for c in codes], dtype=pl.Categorical), "b": codes})
    model = mercer.tabular(mercer.SVC()).fit(frame, [0, 1] * 15)
    assert [type(one).__name__ for one in model.columns_] == ["Levels", "Numbers"]


def test_day_and_month_are_told_apart():
    days = [f"{d}/3/2024" for d in range(1, 29)]
    months = [f"3/{d}/2024" for d in range(1, 29)]
    iso = [f"2024-03-{d:02d}" for d in range(1, 29)]
    encoded = [
        mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"x": dates}), [0, 1] * 14).encode(pd.DataFrame({"x": dates}))
        for dates in (days, months, iso)
    ]
    np.testing.assert_array_equal(encoded[0], encoded[2])
    np.testing.assert_array_equal(encoded[1], encoded[2])


CODES = ["zip", "ZIP code", "plz", "PLZ", "postcode", "postal_code", "country code", "ProductCode", "HomePlz"]


@pytest.mark.parametrize("name", CODES)
def test_codes_by_name(name):
    frame = pd.DataFrame({name: [10115, 20095, 80331] * 10, "x": np.linspace(0, 1, 30) ** 2})
    with pytest.warns(GuessWarning, match="holds numbers and is read as a category; .* else in numeric"):
        model = mercer.tabular(mercer.SVC()).fit(frame, [0, 1] * 15)
    assert model.columns_[0].levels == ("10115", "20095", "80331")
    assert type(mercer.tabular(mercer.SVC(), numeric=[name]).fit(frame, [0, 1] * 15).columns_[0]).__name__ == "Numbers"
    silent = mercer.tabular(mercer.SVC(), categorical=[name]).fit(frame, [0, 1] * 15)
    np.testing.assert_array_equal(silent.encode(frame), model.encode(frame))
    scattered = frame.assign(**{name: np.arange(30) * 7})  # a code of which hardly one comes again tells nothing
    assert type(mercer.tabular(mercer.SVC()).fit(scattered, [0, 1] * 15).columns_[0]).__name__ == "Numbers"


def test_words_among_numbers_are_asked_about_once():
    cells = [*map(str, range(38)), "k.A.", "-"]
    frame, y = pd.DataFrame({"x": cells}), np.arange(40) % 2
    model = mercer.tabular(mercer.SVC())
    with pytest.warns(
        GuessWarning, match="'x' holds 'k.A.', '-' beside numbers: read as missing values; name it in numeric"
    ) as w:
        model.fit(frame, y)
    assert len(w) == 1
    missing = mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"x": [*range(38), None, None]}), y)
    assert model.columns_ == missing.columns_
    with pytest.warns(GuessWarning, match="'k.A.', '-' beside numbers") as w:
        mercer.tune(model, frame, y, grid={"C": [1, 10]})
    assert len(w) == 1  # not for every fold
    with pytest.warns(GuessWarning, match="'k.A.', '-' beside numbers") as w:
        mercer.tune(model, frame, y)  # the default grid needs the encoded table before the search
    assert len([one for one in w if one.category is GuessWarning]) == 1
    with pytest.warns(GuessWarning, match="'k.A.', '-' beside numbers") as w:
        mercer.CalibratedClassifier(model, cv=3).fit(frame, y)
    assert len(w) == 1
    assert mercer.tabular(mercer.SVC(), numeric=["x"]).fit(frame, y).columns_ == missing.columns_


def test_words_in_new_rows_are_warned_about_once():
    frame, y = pd.DataFrame({"x": [*map(str, range(40))]}), np.arange(40) + 0.5
    model = mercer.CalibratedRegressor(mercer.tabular(mercer.SVR()), cv=4).fit(frame, y)
    with pytest.warns(GuessWarning, match="'x' holds 'k.A.' beside numbers: read as missing values") as w:
        model.predict_interval(pd.DataFrame({"x": ["3", "4", "5", "6", "k.A."]}))
    assert len(w) == 1  # not for the machine of every fold


@pytest.mark.parametrize(
    "name",
    ["", "Unnamed: 0", "index", "id", "ID", "customer_id", "CustomerId", "orderID", "nr", "Objekt-Nr", "OrderNr"],
)
def test_identifiers_by_name(name):
    frame = pd.DataFrame({name: range(30), "x": np.linspace(0, 1, 30) ** 2})
    with pytest.warns(UserWarning, match="an identifier"):
        model = mercer.tabular(mercer.SVC()).fit(frame, [0, 1] * 15)
    assert model.encode(frame).shape == (30, 1)
    kept = mercer.tabular(mercer.SVC(), only=[name, "x"]).fit(frame, [0, 1] * 15)
    assert kept.encode(frame).shape == (30, 2)


@pytest.mark.parametrize("name", ["paid", "period", "width", "valid", "price", "idea", "normal"])
def test_no_identifiers_by_name(name):
    frame = pd.DataFrame({name: range(30)})
    assert mercer.tabular(mercer.SVC()).fit(frame, [0, 1] * 15).encode(frame).shape == (30, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"drop": ["plam"]}, "drop names the column 'plam', which the table lacks; it has 'customer_id'"),
        ({"drop": ["plan"], "categorical": ["plan"]}, "'plan' is named in two options"),
        ({"missing": "fill"}, "missing='fill' must be 'impute' or 'drop'"),
        ({"only": ["customer_id"], "drop": ["age"]}, None),
        ({"drop": list(customers()[0])}, "no column is left to learn from"),
    ],
)
def test_column_options(options, message):
    table, label = customers()
    model = mercer.tabular(mercer.SVC(), **options)
    if message is None:
        assert model.fit(pd.DataFrame(table), label).encode(pd.DataFrame(table)).shape[1] == 1
        return
    with pytest.raises(ValueError, match=message):
        model.fit(pd.DataFrame(table), label)


def test_mistakes_in_a_column_are_named():
    frame = pd.DataFrame({"x": ["1", "2", "3x", "4", "5"], "z": range(5)})
    with pytest.raises(ValueError, match=r"row 3 of the column 'x' holds '3x', but 4 rows hold numbers; .*categorical"):
        mercer.tabular(mercer.SVC()).fit(frame, [0, 1, 0, 1, 0])
    assert mercer.tabular(mercer.SVC(), categorical=["x"]).fit(frame, [0, 1, 0, 1, 0]).encode(frame).shape == (5, 6)
    frame = pd.DataFrame({"x": [1.0, np.inf, 2.0]})
    with pytest.raises(ValueError, match="row 2 of the column 'x' is inf"):
        mercer.tabular(mercer.SVC()).fit(frame, [0, 1, 0])
    with pytest.raises(TypeError, match="drop='x' must be a list"):
        mercer.tabular(mercer.SVC(), drop="x").fit(frame, [0, 1, 0])


def test_rows_with_missing_values_are_dropped_on_request():
    table, label = customers()
    frame = pd.DataFrame(table).drop(columns="customer_id")
    whole = frame.notna().all(axis=1).to_numpy()
    model = mercer.tabular(mercer.SVC(), missing="drop").fit(frame, label)
    other = mercer.tabular(mercer.SVC()).fit(frame[whole], label[whole])
    assert model.n_rows_dropped_ == (~whole).sum() > 0
    np.testing.assert_array_equal(model.decision_function(frame), other.decision_function(frame))


@pytest.mark.parametrize("unit", [1.0, 1e5, 1e-6])
def test_a_regression_does_not_depend_on_the_unit_of_y(unit):
    table, _ = customers()
    frame = pd.DataFrame(table)[["age", "plan", "visits"]].assign(age=lambda f: f["age"].fillna(45))
    y = 3 * frame["age"] + frame["visits"] ** 2 + 1000
    model = mercer.tabular(mercer.SVR(tol=1e-8)).fit(frame, unit * y)
    inner = make_pipeline(
        make_column_transformer(
            (StandardScaler(), ["age"]), (OneHotEncoder(), ["plan"]), (StandardScaler(), ["visits"])
        ),
        mercer.SVR(tol=1e-8),
    )
    inner[0].set_params(sparse_threshold=0)
    frame_by_hand = frame.assign(plan=frame["plan"].fillna("none"))
    by_hand = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(frame_by_hand, y)
    np.testing.assert_allclose(model.predict(frame) / unit, by_hand.predict(frame_by_hand), rtol=1e-6)
    assert model.score(frame, unit * y) == pytest.approx(by_hand.score(frame_by_hand, y), abs=1e-6)


def test_a_weight_is_a_repetition():
    """Down to the medians and means that columns and y are standardised with."""
    table, _ = customers(60)
    frame = pd.DataFrame(table).drop(columns=["customer_id"])
    y = frame["visits"] ** 1.5 + frame["age"].fillna(0)
    weight = np.arange(60) % 3
    a = mercer.tabular(mercer.SVR(tol=1e-9)).fit(frame, y, sample_weight=weight)
    b = mercer.tabular(mercer.SVR(tol=1e-9)).fit(frame.loc[np.repeat(np.arange(60), weight)], np.repeat(y, weight))
    np.testing.assert_allclose(a.predict(frame), b.predict(frame), rtol=1e-6)


def test_it_is_an_estimator():
    table, label = customers()
    frame = pd.DataFrame(table)
    model = mercer.tabular(mercer.SVC(), drop=["customer_id"])
    assert is_classifier(model)
    assert is_regressor(mercer.tabular(mercer.SVR()))
    assert clone(model).get_params()["estimator__C"] == 1.0
    assert cross_val_score(model, frame, label, cv=3).mean() > 0.8
    search = GridSearchCV(model, {"estimator__C": [0.01, 1], "missing": ["impute", "drop"]}, cv=3).fit(frame, label)
    assert search.best_params_["estimator__C"] == 1
    assert not hasattr(model, "predict_proba")


@pytest.mark.filterwarnings("ignore:all .* samples end at their bound")  # targets of one check are large
@pytest.mark.filterwarnings("ignore:the column .* is dropped")
def test_scikit_learns_checks():
    scikit_learn_checks.hold(mercer.Tabular(mercer.SVC()))


@pytest.mark.filterwarnings("ignore:all .* samples end at their bound")  # targets of one check are large
@pytest.mark.filterwarnings("ignore:the column .* is dropped")
@scikit_learn_checks.of_each_in_turns(
    [
        mercer.Tabular(estimator)
        for estimator in (
            mercer.SVR(),
            mercer.RLSRegressor(),
            mercer.LinearSVC(),
            mercer.OneClassSVM(),
            mercer.KernelPCA(2),
            mercer.KernelKMeans(3, random_state=0),
        )
    ],
    turns=3,
)
def test_scikit_learns_checks_of_other_machines(estimator, share):
    scikit_learn_checks.hold(estimator, share=share)


def test_a_weight_counts_as_so_many_rows_do_to_the_last_bit():
    rng = np.random.default_rng(0)
    X, y, times = rng.normal(size=(30, 3)), rng.normal(size=(30, 2)), rng.integers(1, 5, 30)
    weighted = mercer.tabular(mercer.RLSRegressor()).fit(X, y, times)
    order = rng.permutation(times.sum())
    repeated = mercer.tabular(mercer.RLSRegressor()).fit(np.repeat(X, times, 0)[order], np.repeat(y, times, 0)[order])
    np.testing.assert_array_equal(weighted.encode(X), repeated.encode(X))
    np.testing.assert_array_equal(weighted.target_mean_, repeated.target_mean_)
    np.testing.assert_array_equal(weighted.target_scale_, repeated.target_scale_)
    np.testing.assert_allclose(weighted.target_scale_, np.sqrt(np.cov(np.repeat(y, times, 0).T, bias=True).diagonal()))


def test_what_the_estimator_lacks_the_table_lacks():
    table = pd.DataFrame({"a": [1.0, 2.0, 7.0, 9.0, 3.0], "b": ["x", "y", "x", "y", "y"], "c": [None, 2, 1, 4, 3]})
    components = mercer.tabular(mercer.KernelPCA(2))
    assert not any(hasattr(components, name) for name in ("predict", "decision_function", "labels_", "fit_predict"))
    scores = components.fit_transform(table)
    np.testing.assert_array_equal(scores, mercer.KernelPCA(2).fit_transform(components.encode(table)))
    assert components.get_feature_names_out().tolist() == ["kernelpca0", "kernelpca1"]
    clusters = mercer.tabular(mercer.KernelKMeans(2, random_state=0))
    labels = clusters.fit_predict(table)
    np.testing.assert_array_equal(labels, clusters.labels_)
    assert clusters.transform(table).shape == (5, 2)
    few = mercer.tabular(mercer.KernelKMeans(2, random_state=0), missing="drop")
    assert few.fit_predict(table).shape == (5,)
    assert few.labels_.shape == (4,)
    outliers = mercer.tabular(mercer.OneClassSVM(nu=0.4))
    signs = outliers.fit_predict(table)
    np.testing.assert_array_equal(signs, np.where(outliers.score_samples(table) >= outliers.offset_, 1, -1))
    assert not hasattr(mercer.tabular(mercer.SVC()).fit(table, table["b"]), "transform")


def fitted():
    table, label = customers()
    notes = [f"call {i % 3} of {i % 5}" for i in range(120)]
    frame = pd.DataFrame(table).assign(note=notes)
    model = mercer.tabular(mercer.SVC(), drop=["customer_id"], text=["note"], categorical=["visits"])
    return model.fit(frame, label), frame


def test_saved_and_loaded(tmp_path):
    model, frame = fitted()
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.decision_function(frame), model.decision_function(frame))
    assert again.columns_ == model.columns_
    assert again.get_params()["drop"] == ["customer_id"]
    assert again.feature_names_in_.tolist() == model.feature_names_in_.tolist()
    target = frame["age"].fillna(40) * 1e4
    regression = mercer.tabular(mercer.SVR(), only=["visits", "plan"]).fit(frame, target)
    mercer.save(regression, tmp_path / "r.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "r.mercer").predict(frame), regression.predict(frame))


def test_saved_inside_a_calibration(tmp_path):
    table, label = customers()
    model = CalibratedClassifierCV(mercer.tabular(mercer.SVC(), drop=["customer_id"]), cv=3).fit(
        pd.DataFrame(table), label
    )
    mercer.save(model, tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict_proba(pd.DataFrame(table)), model.predict_proba(pd.DataFrame(table)))


FORGERIES = {
    "a kind of column that is none": lambda s: s["columns_"][1].update(kind="Tabular"),
    "a text for a number": lambda s: s["columns_"][1].update(scale="1"),
    "a number that is not finite": lambda s: s["columns_"][1].update(centre={"$": "float", "value": "inf"}),
    "no scale": lambda s: s["columns_"][1].update(scale=0.0),
    "a field too many": lambda s: s["columns_"][1].update(more=1),
    "a level too few": lambda s: s["columns_"][2]["levels"]["items"].pop(),
    "a level twice": lambda s: s["columns_"][2]["levels"]["items"].__setitem__(
        0, s["columns_"][2]["levels"]["items"][1]
    ),
    "a weight too few": lambda s: s["columns_"][6]["weights"]["items"].pop(),
    "a date that is none": lambda s: s["columns_"][4].update(fill=1e300),
    "a column twice": lambda s: s["columns_"].append(s["columns_"][0]),
    "no columns": lambda s: s.update(columns_=[]),
    "another name": lambda s: s["feature_names_in_"]["items"].__setitem__(0, "other"),
    "a mean of texts": lambda s: s.update(target_mean_="0"),
    "a mean that is not finite": lambda s: s.update(target_mean_={"$": "float", "value": "nan"}),
    "an unknown way to read": lambda s: s.update(reading_={"run": "x"}),
}
FORGED_PARAMETERS = {"drop": [1], "only": "age", "standardise": 1, "missing": "guess"}


def forged(part, change):
    model, _ = fitted()
    arrays = {}
    description = describe_model(model, arrays)
    assert rebuild_model(copy.deepcopy(description), arrays).columns_ == model.columns_
    change(description[part])
    with pytest.raises(ModelFormatError):
        rebuild_model(description, arrays)


@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_forged_state_is_refused(forgery):
    forged("fitted", FORGERIES[forgery])


@pytest.mark.parametrize("name", FORGED_PARAMETERS)
def test_forged_parameters_are_refused(name):
    forged("params", lambda params: params.update({name: FORGED_PARAMETERS[name]}))


@pytest.mark.parametrize("cells", [["57,9", "3.25", "1,5"], ["$5", "€7.50", "$8"], ["1,200", "3,400", "1 200"]])
def test_numbers_in_several_spellings_are_refused(cells):
    table = pd.DataFrame({"area": cells * 10, "rooms": np.arange(30) % 4})
    model = mercer.tabular(mercer.SVC())
    with pytest.raises(
        ValueError, match=r"row [12] of the column 'area' holds .*(some|separate thousands).* categorical"
    ):
        model.fit(table, np.arange(30) % 2)
    model.set_params(drop=["area"]).fit(table, np.arange(30) % 2)


def test_dates_in_iso_beside_another_form():
    dates = ["2024-01-05", "29.06.2024", "2024-03-31", "01.02.2024"] * 6
    y = ["a", "b"] * 12
    model = mercer.tabular(mercer.SVC()).fit(pd.DataFrame({"d": dates}), y)
    same = pd.DataFrame({"d": pd.to_datetime(["2024-01-05", "2024-06-29", "2024-03-31", "2024-02-01"] * 6)})
    np.testing.assert_array_equal(
        model.encode(pd.DataFrame({"d": dates})), mercer.tabular(mercer.SVC()).fit(same, y).encode(same)
    )
    with pytest.warns(GuessWarning, match="may begin with the day or the month"):  # 03/04 still tells nothing
        mercer.tabular(mercer.SVC()).fit(
            pd.DataFrame({"d": ["03/04/2024", "2024-01-05"] * 12, "x": np.arange(24.0)}), y
        )


def test_a_decimal_comma_in_a_frame_is_read():
    table = pd.DataFrame({"amount": ["43,85", "7", "16,05", None] * 6})
    model = mercer.tabular(mercer.SVC()).fit(table, ["a", "b"] * 12)
    numbers = pd.DataFrame({"amount": [43.85, 7, 16.05, None] * 6})
    np.testing.assert_array_equal(
        model.encode(table), mercer.tabular(mercer.SVC()).fit(numbers, ["a", "b"] * 12).encode(numbers)
    )


def test_a_dask_frame_is_refused_and_its_table_is_not():
    dd = pytest.importorskip("dask.dataframe")
    table = pd.DataFrame({"npartitions": np.arange(20.0), "plan": ["basic", "pro"] * 10})
    y, frame = np.arange(20) % 3, dd.from_pandas(table, npartitions=2)
    with pytest.raises(TypeError, match=r"table in memory, not a Dask frame: call its compute\(\) first"):
        mercer.tabular(mercer.SVC()).fit(frame, y)
    model = mercer.tabular(mercer.SVC()).fit(table, y)
    with pytest.raises(TypeError, match="Dask frame"):
        model.predict(frame)
    np.testing.assert_array_equal(model.predict(frame.compute()), model.predict(table))


def test_parameters_that_are_set_later_do_not_change_the_unit_of_predictions():
    table = pd.DataFrame({"a": np.linspace(0.0, 1.0, 30)})
    y = 1000.0 + 50.0 * table["a"]
    model = mercer.tabular(mercer.SVR(C=10.0)).fit(table, y)
    expected, score = model.predict(table), model.score(table, y)
    assert np.abs(expected - y).max() < 20
    for changed in ({"standardise": False}, {"estimator": mercer.SVC()}):
        model.set_params(**changed)
        np.testing.assert_array_equal(model.predict(table), expected)
        assert model.score(table, y) == score


@pytest.mark.parametrize("kind", [int, float, str])
def test_numbers_that_all_are_dates_are_asked_about(kind):
    days = [20200228 + k for k in range(2)] + [20210301 + k for k in range(28)]
    y = np.arange(30) % 2
    frame = pd.DataFrame({"day": [kind(day) for day in days]})
    said = (
        "'day' is read as numbers, though all of them are dates such as 20200228; .* numeric .* else write 2020-02-28"
    )
    with pytest.warns(GuessWarning, match=said) as w:
        mercer.tabular(mercer.SVC()).fit(frame, y)
    assert len(w) == 1
    mercer.tabular(mercer.SVC(), numeric=["day"]).fit(frame, y)


@pytest.mark.parametrize(
    "odd",
    [20210229, 20211301, 20210100, 20210032, 18991231, 21010101, 20210301.5, 7],
    ids=["no leap year", "month 13", "day 0", "day 32", "before 1900", "after 2100", "fraction", "short"],
)
def test_numbers_of_which_one_is_no_date_are_numbers(odd):
    frame = pd.DataFrame({"amount": [*(20210301 + k for k in range(29)), odd]})
    mercer.tabular(mercer.SVC()).fit(frame, np.arange(30) % 2)
