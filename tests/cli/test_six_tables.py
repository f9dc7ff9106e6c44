"""Six tables as people have them, trained on without a flag (or with the one that the error names), against pipelines
that somebody made by hand in scikit-learn for each; and their models, asked of tables that are written otherwise."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mercer
from mercer.cli.main import main


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def customers(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 10_000,
            "age": rng.normal(45, 12, n).round(1),
            "income": rng.lognormal(10, 0.5, n).round(),
            "visits": rng.poisson(5, n),
            "plan": rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.3, 0.2]),
            "city": rng.choice(["Köln", "Gießen", "Hof", "Bonn", "Lübeck"], n),
            "active": rng.random(n) < 0.6,
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1600, n), unit="D"),
        }
    )
    days = (frame["since"] - pd.Timestamp("2021-01-01")).dt.days
    f = 0.06 * (frame["age"] - 45) + 1.2 * (frame["plan"] == "pro") - 0.8 * (frame["city"] == "Hof")
    f += 0.5 * frame["active"] + 0.001 * days + np.log(frame["income"]) - 10
    return frame, f.to_numpy(), rng


def mixed(n=4000):
    frame, f, rng = customers(n)
    return frame.assign(y=np.where(f + 0.5 * rng.normal(size=n) > 0.3, "stays", "leaves"))


def with_holes():
    frame = mixed()
    rng = np.random.default_rng(7)
    for name in ("age", "income", "plan", "city"):
        frame[name] = frame[name].mask(rng.random(len(frame)) < 0.1)
    return frame


def large():
    return mixed(20_000)


def rare(share=0.04):
    frame, f, rng = customers(2400)
    f = f + 0.3 * rng.normal(size=len(f))
    return frame.assign(y=np.where(f > np.quantile(f, 1 - share), "fraud", "fine"))


def prices():
    frame, f, rng = customers(1600)
    y = 200_000 + 60_000 * f + 15_000 * rng.normal(size=len(f))
    y[rng.choice(len(f), 16, replace=False)] *= 5
    return frame.assign(y=y.round(2))


NUMBERS, NAMES = ["age", "income", "visits", "days"], ["plan", "city", "active"]


def by_hand(machine):
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    names = make_pipeline(SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder(handle_unknown="ignore"))
    columns = make_column_transformer((numbers, NUMBERS), (names, NAMES), sparse_threshold=0)
    return make_pipeline(columns, machine)


def score_by_hand(frame, machine, test=0.25):
    """On the rows that the command holds out."""
    frame = frame.assign(
        days=(frame["since"] - pd.Timestamp("2021-01-01")).dt.days,
        **{name: frame[name].astype(object).where(frame[name].notna(), None) for name in NAMES},
    )
    frame["active"] = frame["active"].astype(str)
    regression = isinstance(machine, mercer.SVR)
    train, test = train_test_split(frame, test_size=test, stratify=None if regression else frame["y"], random_state=0)
    model = by_hand(machine)
    if regression:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
    return model.fit(train, train["y"]).score(test, test["y"])


def told(words, capsys, code=0):
    assert main(words) == code
    out, err = capsys.readouterr()
    return err if code else json.loads(out)


TABLES = {
    "mixed types and an id": mixed,
    "10 % holes": with_holes,
    "20,000 rows": pytest.param(large, marks=pytest.mark.thorough),
    "4 % minority": rare,
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
def test_classes(make, capsys):
    frame = make()
    frame.to_csv("t.csv", index=False)
    report = told(["train", "t.csv", "--target", "y", "--json"], capsys)
    assert report["accuracy"]["test"] == pytest.approx(score_by_hand(frame, mercer.SVC()), abs=0.01)
    assert "dropped: an identifier" in report["columns"]["customer_id"]
    assert predicted_otherwise(frame, capsys)


def test_a_rare_class(capsys):
    rare().to_csv("t.csv", index=False)
    words = ["train", "t.csv", "--target", "y", "--json"]
    plain, balanced = told(words, capsys), told([*words, "--class-weight", "balanced"], capsys)
    assert plain["majority"] == {"class": "fine", "accuracy": 0.96}
    assert balanced["balanced_accuracy"] > plain["balanced_accuracy"] + 0.05
    assert balanced["per_class"]["fraud"]["recall"] > plain["per_class"]["fraud"]["recall"]


def test_decimal_commas_and_semicolons_in_latin_1(folder, capsys):
    frame = with_holes()
    frame.to_csv("t.csv", index=False)
    frame.to_csv("german.csv", index=False, sep=";", decimal=",", encoding="latin-1", date_format="%d.%m.%Y")
    plain = told(["train", "t.csv", "--target", "y", "--json"], capsys)
    report = told(["train", "german.csv", "--target", "y", "--json"], capsys)
    assert report["read_as"] == {"separator": ";", "decimal": ",", "encoding": "cp1252"}
    assert report["accuracy"] == plain["accuracy"]
    told(["predict", "german.csv", "german.mercer", "german.out", "--json", "--plain"], capsys)
    told(["predict", "t.csv", "t.mercer", "plain.out", "--json", "--plain"], capsys)
    assert (folder / "german.out").read_text() == (folder / "plain.out").read_text()
    told(["predict", "german.csv", "german.mercer", "german_out.csv", "--json"], capsys)
    told(["predict", "t.csv", "t.mercer", "out.csv", "--json"], capsys)
    written = pd.read_csv("german_out.csv", sep=";", encoding="latin-1")  # as the table that was asked about
    assert written["predicted"].tolist() == pd.read_csv("out.csv")["predicted"].tolist()
    assert written.columns.tolist() == [*frame.columns, "predicted"]


def test_prices_with_outliers(capsys):
    frame = prices()
    frame.to_csv("t.csv", index=False)
    words = ["train", "t.csv", "--target", "y", "--json"]
    assert "for regression add --machine svr" in told([*words, "--machine", "svc"], capsys, 1)
    report = told(words, capsys)  # numbers with fractions are no classes
    assert report["machine"] == "SVR"
    assert report["score"]["test"] == pytest.approx(score_by_hand(frame, mercer.SVR()), abs=0.02)
    assert report["mean_absolute_error"]["test"] < 0.7 * report["mean_absolute_error"]["median"]
    assert predicted_otherwise(frame, capsys)


def predicted_otherwise(frame, capsys):
    """Columns reordered and one missing, a hole in every row, new categories; as good as can be expected."""
    test = frame.iloc[:200]
    others = test[[*reversed(frame.columns.drop(["y", "customer_id"]))]].astype(object)
    for row, name in zip(others.index, others.columns[np.arange(len(others)) % others.shape[1]], strict=True):
        others.loc[row, name] = None
    others.loc[others.index[::5], "city"] = "Ulm"
    others.assign(note="new").to_csv("others.csv", index=False)
    told(["predict", "others.csv", "t.mercer", "others.out", "--json"], capsys)
    answers = pd.read_csv("others.out")["predicted"]
    if frame["y"].dtype.kind == "f":
        return np.corrcoef(answers, test["y"])[0, 1] > 0.4
    return (answers.to_numpy() == test["y"].to_numpy()).mean() > max(
        0.7, test["y"].value_counts(normalize=True).max() - 0.1
    )
