"""`mercer.easy`: honest figures of rows that no search has seen, and one object that predicts, explains and saves."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split

import mercer
from mercer.files.export.c.export import export_c
from mercer.inspection.easy import easy as easy_module
from mercer.model_selection.scoring import balanced_soft_accuracy, soft_accuracy
from mercer.model_selection.tune import tune
from mercer.tables.encodings import Numbers


def customers(n=90, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "age": rng.normal(45, 12, n).round(1),
            "plan": rng.choice(["basic", "plus", "pro"], n),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"),
        }
    )
    table.loc[::9, "age"] = np.nan
    f = 0.08 * (table["age"].fillna(45) - 45) + 1.5 * (table["plan"] == "pro") + 0.4 * rng.normal(size=n)
    return table, f.to_numpy()


@pytest.fixture(scope="module")
def classes():
    table, f = customers()
    return table.assign(left=np.where(f > 0.4, "yes", "no"))


@pytest.fixture(scope="module")
def model(classes):
    return mercer.easy(classes, target="left")


def test_the_figures_are_those_of_nested_cross_validation(classes, model):
    X, y = classes.drop(columns="left"), classes["left"].to_numpy()
    answers = np.empty(len(y), dtype=object)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    plain = mercer.tabular(mercer.SVC(), drop=["id"])
    for train, test in folds.split(X, y):
        found = mercer.tune(plain, X.iloc[train], y[train], grid="quick", cv=folds, scoring=soft_accuracy, refit=False)
        best = clone(plain).set_params(**found.best_params_).fit(X.iloc[train], y[train])
        answers[test] = best.predict(X.iloc[test])
    assert model.figures.accuracy == pytest.approx(np.mean(answers == y))
    assert model.judged_by.startswith("nested cross-validation")


def test_no_pattern_is_found_where_there_is_none():
    rng = np.random.default_rng(1)
    noise = pd.DataFrame(rng.normal(size=(80, 5)), columns=list("abcde"))
    y = np.arange(80) % 2
    found = mercer.tune(mercer.tabular(mercer.SVC()), noise, y, grid="quick", refit=False, skip=False)
    assert np.max(found.cv_results_["mean_test_score"]) > 0.55  # the best of many is sold as more than it is
    model = mercer.easy(noise.assign(y=rng.permutation(y)), target="y")
    assert abs(model.figures.accuracy - 0.5) < 0.15
    assert "hardly predict 'y'" in model.hints[0] or "80 rows are too few to tell" in model.hints[0]


def test_the_model_has_seen_all_rows_and_predicts_as_it_is_saved(classes, model, tmp_path):
    assert model.table.estimator_.shape_fit_[0] == len(classes)
    assert model.shape == (90, 4)
    model.save(tmp_path / "m.mercer")
    again = mercer.load(tmp_path / "m.mercer")
    np.testing.assert_array_equal(again.predict(classes), model.predict(classes))
    np.testing.assert_array_equal(again.predict_proba(classes), model.predict_proba(classes))
    np.testing.assert_array_equal(model.predict(classes), model.table.predict(classes))
    told = "none: its parameters were chosen by a search over all rows; in practice about 1 − alpha"
    assert model.guarantee_ == mercer.load(tmp_path / "m.mercer").guarantee_ == told


def test_what_matters_is_told_in_the_users_columns(classes, model):
    assert set(model.importance) == {"id", "age", "plan", "since"}
    assert sum(model.importance.values()) == pytest.approx(1)
    assert model.importance["id"] == 0  # left out
    assert max(model.importance, key=model.importance.get) in ("age", "plan")
    found = model.explain(classes.drop(columns="left").iloc[:3])
    assert found.values.shape == (3, 4)
    f = model.table.decision_function(classes.iloc[:3])
    np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), f, rtol=1e-9)
    pytest.importorskip("matplotlib").use("Agg")
    assert model.plot().ax_ is not None


def test_the_report_begins_with_five_lines(model):
    lines = str(model).splitlines()
    assert lines[0].startswith(f"mercer {mercer.__version__}: 'left' from 4 columns of 90 rows")
    numbered = [line for line in lines if line[15:17] in [f"{k} " for k in range(1, 6)]]
    assert len(numbered) == 5
    assert "on held-out rows (always predicting" in numbered[0]
    assert "the final model is trained on all 90 rows; its fit is optimal to within" in numbered[3]
    assert max(map(len, lines)) <= 100
    told = model.to_dict()
    assert told["score"]["held_out"] == model.figures.accuracy
    assert (told["rows"], len(told["columns"])) == (90, 4)
    assert "accuracy" in repr(model)


def test_many_rows_are_judged_by_a_quarter_held_out(monkeypatch):
    monkeypatch.setattr(easy_module, "_MAX_NESTED_ROWS", 50)
    monkeypatch.setattr(easy_module, "_MOST_SEARCH_ROWS", 60)
    table, f = customers(200)
    table["left"] = np.where(f > 0.4, "yes", "no")
    model = mercer.easy(table, target="left", drop=["id"])
    train, test = train_test_split(np.arange(200), test_size=0.25, stratify=table["left"], random_state=0)
    params = {f"estimator__{name}": getattr(model.table.estimator_, name) for name in ("C", "gamma")}
    X, y = table.drop(columns=["id", "left"]), table["left"].to_numpy()
    part = mercer.tabular(mercer.SVC()).set_params(**params).fit(X.iloc[train], y[train])
    right = np.mean(part.predict(X.iloc[test]) == y[test])
    assert model.figures.accuracy == pytest.approx(right)
    assert model.figures.matrix.sum() == 50
    assert model.table.estimator_.shape_fit_[0] == 200
    assert "searched on 60 of 150 rows" in model.search


def test_numbers_have_intervals_and_their_unit():
    table, f = customers(60)
    y = 200_000 + 50_000 * f
    model = mercer.easy(table.assign(price=y), target="price")
    assert model.kind_reason == "a regression, since the target has fractions"
    with pytest.raises(ValueError, match=r"such as 0\.5, which are not classes; use machine='svr'"):
        mercer.easy(table, target=np.resize([0.5, 1.5], 60), machine="svc")
    low, high = model.predict_interval(table)
    assert np.mean((low <= y) & (y <= high)) > 0.8
    assert model.figures.r2 > 0.5
    assert model.figures.usual_error > model.figures.error
    assert "mean absolute error" in str(model)
    assert not any(hasattr(model, name) for name in ("predict_proba", "predict_set", "p_values", "classes_", "margins"))


def test_a_rare_class_counts_as_much_as_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=200) > 1.6, "fraud", "fine")
    assert 5 < np.sum(y == "fraud") < 15
    model = mercer.easy(pd.DataFrame(X, columns=list("abc")).assign(y=y), target="y")
    assert model.table.estimator_.class_weight == "balanced"
    assert model.figures.balanced_accuracy > 0.8
    assert "balanced accuracy 9" in model.figures.headline
    frame = pd.DataFrame(X, columns=list("abc"))
    np.testing.assert_array_equal(model.predict(frame), model.table.predict(frame))  # the machine decides, not p > ½
    assert np.sum(model.predict(frame) == "fraud") > np.sum(model.predict_proba(frame)[:, 1] > 0.5)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"target": "lefd"}, r"the table has no column 'lefd' \(did you mean 'left'\?\); it has 'id', 'age'"),
        ({}, {"target": "left", "machine": "forest"}, "machine='forest' must be one of 'auto', 'svc', 'svr'"),
        ({}, {"target": "left", "class_weight": "even"}, "class_weight='even' must be"),
        ({}, {"target": "left", "machine": "svr"}, "a regression needs numbers"),
        ({"left": [None, *["a", "b"] * 44, "a"]}, {"target": "left"}, "row 1 of the column 'left' is empty"),
        ({"left": ["a", "b"] * 44 + ["c", "a"]}, {"target": "left"}, "the class 'c' has a single row"),
        ({}, {"target": [1, 2, 3]}, "the table has 90 rows, but target has 3"),
        ({"left": "a"}, {"target": "left"}, "the target is 'a' in every row"),
        ({"left": 3.5}, {"target": "left"}, "the target is '3.5' in every row"),
        ({"left": ["a"] * 88 + ["b"] * 2}, {"target": "left"}, "'b' has 2 rows, but a search .* take 3"),
        ({"left": [1e250, *np.linspace(0.51, 1, 89)]}, {"target": "left"}, "row 1 of the target is 1e.250"),
        ({"age": [*["31", "32"] * 22, "<5", *["33"] * 45]}, {"target": "left"}, "table: row 45 of .* 'age' holds '<5'"),
    ],
)
def test_what_cannot_be_is_told(classes, change, options, message):
    with pytest.raises(ValueError, match=message):
        mercer.easy(classes.assign(**change), **options)


def test_few_rows(classes):
    with pytest.raises(
        ValueError, match="6 rows are too few for a search and a test on other rows, which need at least 10"
    ):
        mercer.easy(classes[["age", "plan"]][:6].assign(y=np.arange(6) + 0.5), target="y")
    model = mercer.easy(classes[["age"]][:10].assign(y=np.arange(10) + 0.5), target="y")
    assert np.isfinite(model.figures.r2)


def test_what_the_model_can_be_asked_easy_answers(classes, model, tmp_path):
    X, y = classes.drop(columns="left"), classes["left"]
    assert "plan at 3 values" in repr(model.partial_dependence(X, "plan"))
    assert len(model.reasons(X[:2])) == 2
    assert model.score(X, y) == model.model.score(X, y)
    with pytest.raises(ValueError, match="intervals of probabilities need method='venn-abers'"):
        model.predict_interval(X)
    with pytest.raises(AttributeError, match="no attribute 'predict_sets'"):
        model.predict_sets(X)
    assert model.classes_.tolist() == model.model.classes_.tolist()
    np.testing.assert_array_equal(model.predict_set(X), model.model.predict_set(X))
    np.testing.assert_array_equal(model.p_values(X), model.model.p_values(X))
    np.testing.assert_array_equal(model.predict_log_proba(X), model.model.predict_log_proba(X))
    assert model.guarantee_ == model.model.guarantee_
    assert model.signed_distance(X).shape == (len(X),)
    mercer.save(model, tmp_path / "m.mercer")
    np.testing.assert_array_equal(mercer.load(tmp_path / "m.mercer").predict(X), model.predict(X))
    with pytest.raises(TypeError, match="EasyModel is calibrated for the model that it holds"):
        mercer.compress(model, 0.1)
    with pytest.raises(TypeError, match="a C file"):
        export_c(model)
    assert not hasattr(model, "fit")
    again = pickle.loads(pickle.dumps(model))
    assert str(again) == str(model)


def test_the_model_that_is_kept_was_searched_on_all_rows(monkeypatch):
    searched = []

    def recorded(estimator, X, y, **options):
        searched.append((len(y), options["scoring"]))
        return tune(estimator, X, y, **options)

    monkeypatch.setattr(easy_module, "tune", recorded)
    monkeypatch.setattr(easy_module, "_MAX_NESTED_ROWS", 60)
    monkeypatch.setattr(easy_module, "_MOST_SEARCH_ROWS", 100)
    x = np.random.default_rng(0).normal(size=120)
    for n, rows in ((80, [60, 80]), (120, [90])):  # a large table would be searched twice for little
        searched.clear()
        mercer.easy(x[:n, None], target=np.where(x[:n] > 0, "a", "b"))
        assert searched == [(count, soft_accuracy) for count in rows]
    searched.clear()
    mercer.easy(x[:80, None], target=np.arange(80) < 6)
    assert {scoring for _, scoring in searched} == {balanced_soft_accuracy}


def test_folds_read_a_column_with_some_words_as_the_whole_table_does():
    rng = np.random.default_rng(0)
    income = rng.normal(50, 10, 36).round(1).astype(str).astype(object)
    income[rng.choice(36, 6, replace=False)] = "unknown"  # a sixth of all rows, more than a fifth of some fold's
    table = pd.DataFrame({"income": income, "age": rng.normal(size=36).round(3)})
    model = mercer.easy(table.assign(left=np.where(table["age"] > 0, "yes", "no")), target="left")
    assert [type(fold.columns_[0]) for fold in model.training.held_out.models] == [Numbers] * 5
    assert isinstance(model.table.columns_[0], Numbers)
    assert model.table.columns_[0].n_holes == 6


@pytest.mark.parametrize("words", [8, 9])
def test_a_column_of_numbers_may_hold_a_fifth_of_words(words):
    cells = np.arange(40.5).astype(str).astype(object)[:40]
    cells[:words] = "unknown"
    table, y = pd.DataFrame({"income": cells}), np.arange(40) % 2
    machine = mercer.tabular(mercer.SVC())
    if words == 8:
        with pytest.warns(mercer.errors.GuessWarning, match="read as missing values"):
            machine.fit(table, y)
        assert isinstance(machine.columns_[0], Numbers)
    else:
        with pytest.raises(ValueError, match="31 rows hold numbers"):
            machine.fit(table, y)
