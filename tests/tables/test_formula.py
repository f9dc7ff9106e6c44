"""Formulas, read by formulaic itself, against machines that were trained on columns made by hand."""

import sys

import numpy as np
import pytest

from mercer import SVC, SVR, RLSRegressor
from mercer.runtime.errors import MissingExtraError
from mercer.tables.formula import fit_formula

pd = pytest.importorskip("pandas")

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.normal(size=40), "b": RNG.normal(size=40)})
TABLE["y"] = TABLE.a - TABLE.b**2
SIZE = np.digitize(TABLE.a, [-0.5, 0.5])
LABELS = {
    "text": np.where(TABLE.a > 0, "up", "down"),
    "string": pd.array(np.where(TABLE.a > 0, "up", "down"), dtype="string"),
    "category": pd.Categorical(np.where(TABLE.a > 0, "up", "down"), categories=["up", "never", "down"]),
    "bool": (TABLE.a > 0).to_numpy(),
    "int": SIZE * 10,
    "uint8": SIZE.astype(np.uint8),
    "Int64": pd.array(SIZE, dtype="Int64"),
    "category of int": pd.Categorical(SIZE),
}


def of_columns(model, names, y=TABLE.y):
    """The machine trained and asked on columns as they stand."""
    rows = np.asarray(TABLE[names], dtype=float)
    return model.fit(rows, y).predict(rows)


def test_a_formula_names_columns_and_what_becomes_of_them():
    found = fit_formula(SVR(C=10), "y ~ a + I(b**2)", TABLE)
    rows = np.column_stack([TABLE.a, TABLE.b**2])
    np.testing.assert_array_equal(found.predict(TABLE), SVR(C=10).fit(rows, TABLE.y).predict(rows))


@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("left", ["k", "C(k)"])
def test_labels_come_back_as_they_were_given(kind, left):
    found = fit_formula(SVC(C=100), f"{left} ~ a + b", TABLE.assign(k=LABELS[kind]))
    given = np.asarray(LABELS[kind]).tolist()
    answers = found.predict(TABLE).tolist()
    assert {type(answer) for answer in answers} == {type(label) for label in given}
    assert answers == of_columns(SVC(C=100), ["a", "b"], np.asarray(given)).tolist()
    assert np.mean([one == other for one, other in zip(answers, given, strict=True)]) > 0.9
    assert len(found.decision_function(TABLE)) == 40


def test_classes_of_an_expression():
    found = fit_formula(SVC(C=100), "C(y > 0) ~ a + b", TABLE)
    assert found.model.classes_.tolist() == [False, True]


def test_a_point_is_all_other_columns():
    kept = TABLE.assign(c=TABLE.a * TABLE.b)
    for formula, written in [
        ("y ~ .", "y ~ a + b + c"),
        ("y ~ . - a", "y ~ b + c"),
        ("exp(y) ~ .", "exp(y) ~ a + b + c"),
        ("y ~ . + a:b - c", "y ~ a + b + a:b"),
    ]:
        expected = fit_formula(RLSRegressor(), written, kept).predict(kept)
        np.testing.assert_array_equal(fit_formula(RLSRegressor(), formula, kept).predict(kept), expected)
    np.testing.assert_array_equal(fit_formula(SVR(), "y ~ .", TABLE).predict(TABLE), of_columns(SVR(), ["a", "b"]))


def test_predictions_are_in_the_unit_of_the_left_side():
    positive = TABLE.assign(y=np.exp(TABLE.y))
    found = fit_formula(RLSRegressor(), "log(y) ~ a + b", positive).predict(positive)
    np.testing.assert_allclose(found, of_columns(RLSRegressor(), ["a", "b"]), rtol=1e-12)
    two = fit_formula(RLSRegressor(), "y + log(y) ~ a", positive).predict(positive)
    np.testing.assert_allclose(two[:, 1], of_columns(RLSRegressor(), ["a"]), rtol=1e-12)


def test_states_of_transformations_are_those_of_training():
    found = fit_formula(RLSRegressor(), "y ~ center(a) + poly(b, 2)", TABLE)
    np.testing.assert_allclose(found.predict(TABLE.tail(3)), found.predict(TABLE)[-3:], rtol=1e-12)


@pytest.mark.parametrize("missing", [np.nan, None])
def test_no_row_is_lost_where_a_cell_is_missing(missing):
    data = TABLE.assign(kind=LABELS["text"])
    model = fit_formula(SVR(), "y ~ a + C(kind)", data)
    for column, value in [("a", np.nan), ("kind", missing)]:
        new = data.head(5).copy()
        new[column] = new[column].astype(object if column == "kind" else float)
        new.loc[[1, 3], column] = value
        with pytest.raises(ValueError, match=f"column '{column}' has missing values in rows 1, 3"):
            model.predict(new)
        with pytest.raises(ValueError, match=f"column '{column}' has missing values in rows 1, 3"):
            fit_formula(SVR(), "y ~ a + C(kind)", new)
    held = TABLE.copy()
    held.loc[7, "b"] = np.nan  # which the formula does not name
    assert len(fit_formula(SVR(), "y ~ a", held).predict(held)) == 40
    held.loc[2, "y"] = np.nan
    with pytest.raises(ValueError, match="column 'y' has missing values in row 2"):
        fit_formula(SVR(), "y ~ a", held)
    with pytest.raises(ValueError, match=r"log\(a\) is NaN or infinite in rows"):
        fit_formula(SVR(), "y ~ log(a)", TABLE)


@pytest.mark.parametrize("factor", ["kind", "C(kind)"])
def test_a_level_that_training_did_not_see_is_named(factor):
    data = TABLE.assign(kind=LABELS["text"])
    model = fit_formula(SVR(), f"y ~ a + {factor}", data)
    with pytest.raises(ValueError, match=r"level that training did not see .*\['down', 'up'\].*'sideways'"):
        model.predict(data.head(3).assign(kind=["up", "sideways", "down"]))


def test_other_frames():
    pytest.importorskip("pyarrow")  # which formulaic asks polars for
    pl = pytest.importorskip("polars")
    data = TABLE.assign(kind=LABELS["text"])
    other = pl.DataFrame({name: data[name].to_numpy() for name in ("a", "b", "y")} | {"kind": data.kind.to_list()})
    expected = fit_formula(SVC(), "kind ~ a + b", data).predict(data).tolist()
    found = fit_formula(SVC(), "kind ~ a + b", other)
    assert found.predict(other).tolist() == found.predict(data).tolist() == expected
    with pytest.raises(ValueError, match="column 'a' has missing values in row 1"):
        found.predict(pl.DataFrame({"a": [0.0, None], "b": [0.0, 0.0]}))


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("a + b", "left and a right side"),
        ("~ a + b", "left and a right side"),
        ("y ~ a | b", "several parts"),
        ("a:kind ~ b", "no classes"),
        ("a + kind ~ b", "no classes"),
    ],
)
def test_formulas_that_no_machine_takes(formula, words):
    with pytest.raises(ValueError, match=words):
        fit_formula(SVR(), formula, TABLE.assign(kind=LABELS["text"]))


def test_it_says_what_it_needs(monkeypatch):
    with pytest.raises(ValueError, match=r"needs the column 'b'; the table has \['a'\]"):
        fit_formula(SVR(), "y ~ a + b", TABLE).predict(TABLE[["a"]])
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(MissingExtraError, match=r"mercer\[formula\]"):
        fit_formula(SVR(), "y ~ a", TABLE)
