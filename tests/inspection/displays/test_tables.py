"""Pictures of what stands around a machine: tables with categories and dates, Pipelines, searches, calibrations."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

import mercer
from mercer import SVC, SVR, QuantileSVR, RLSRegressorCV, TunedSVC, tabular
from mercer.inspection.displays import (
    ConvergenceDisplay,
    DecisionDisplay,
    ExplanationDisplay,
    GramDisplay,
    IntervalDisplay,
    MarginDisplay,
    PartialDependenceDisplay,
    PathDisplay,
    ReliabilityDisplay,
    TuningDisplay,
)

pyplot = pytest.importorskip("matplotlib.pyplot")
N = 60
RNG = np.random.default_rng(0)
TABLE = pd.DataFrame(
    {
        "plan": RNG.choice(["basic", "plus", "pro"], N),
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 400, N), "D"),
        "visits": RNG.poisson(6, N).astype(float),
        "active": RNG.random(N) < 0.5,
    }
)
TABLE.loc[::9, "plan"] = None
TABLE.loc[::11, "visits"] = np.nan
Y = 1000.0 * ((TABLE["plan"] == "pro") + 0.2 * TABLE["visits"].fillna(6) + 0.01 * RNG.normal(size=N)).to_numpy()
LABELS = np.where(np.median(Y) < Y, "much", "little")


@pytest.fixture(autouse=True)
def _closed():
    yield
    pyplot.close("all")


CLASSIFIERS = {
    "table": lambda: tabular(SVC(C=5.0)).fit(TABLE, LABELS),
    "search in a table": lambda: tabular(TunedSVC({"C": [1.0, 5.0]}, cv=2)).fit(TABLE, LABELS),
    "calibrated table": lambda: tabular(SVC(C=5.0)).fit(TABLE, LABELS).calibrate(TABLE, LABELS, cv=2),
    "Pipeline": lambda: make_pipeline(make_column_transformer((OneHotEncoder(), ["plan", "active"])), SVC()).fit(
        TABLE, LABELS
    ),
}


def ticks(side):
    return [one.get_text() for one in side.get_ticklabels()]


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_every_picture_of_a_classifier(name):
    model = CLASSIFIERS[name]()
    for features in (("plan", "active"), ("plan", "since"), ("since", "visits")):
        display = DecisionDisplay.from_estimator(model, TABLE, LABELS, features=features, resolution=8)
        grid = display.to_frame()
        cells = {other: TABLE[other] for other in TABLE if other not in features}
        for other, column in cells.items():
            typical = column.mean() if other == "visits" else np.sort(column)[N // 2] if other == "since" else None
            grid[other] = column.mode()[0] if typical is None else typical
        np.testing.assert_array_equal(grid["class"], model.predict(grid[list(TABLE)]))
    assert MarginDisplay.from_estimator(model, TABLE, LABELS).alpha.max() > 0
    assert GramDisplay.from_estimator(model, TABLE, LABELS).K.shape == (N, N)
    shown = PartialDependenceDisplay.from_estimator(model, TABLE, "plan")
    assert ticks(shown.ax_.xaxis)[:4] == ["basic", "plus", "pro", "missing"]
    drawn = ExplanationDisplay.from_estimator(model, TABLE[:9], TABLE[9:15], kind="beeswarm")
    assert {"plan", "active"} <= set(drawn.to_frame()["feature"])
    ConvergenceDisplay.from_estimator(model, TABLE, LABELS)
    if name != "calibrated table":
        PathDisplay.from_compression(model, TABLE, LABELS, n_vectors=(0.3, 0.6))


def test_categories_and_dates_on_the_axes():
    model = tabular(SVC(C=5.0)).fit(TABLE, LABELS)
    display = DecisionDisplay.from_estimator(model, TABLE, LABELS, features=("plan", "since"), resolution=9)
    assert ticks(display.ax_.xaxis) == ["basic", "plus", "pro", "missing"]
    assert display.xx0.shape == (9, 4)
    levels = ["basic", "plus", "pro"]
    places = [levels.index(cell) if isinstance(cell, str) else 3 for cell in TABLE["plan"]]
    assert display.points[:, 0].tolist() == places
    days = (TABLE["since"] - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
    np.testing.assert_allclose(display.points[:, 1], days)
    offsets = np.concatenate([part.get_offsets() for part in display.ax_.collections if hasattr(part, "get_offsets")])
    assert np.abs(offsets[:, 0] - np.round(offsets[:, 0])).max() < 0.31
    many = TABLE.assign(code=[f"c{k % 45}" for k in range(N)])
    wide = tabular(SVC(), categorical=["code"]).fit(many, LABELS)
    with pytest.raises(ValueError, match=r"'code' has 45 categories, and an axis has room for 40"):
        DecisionDisplay.from_estimator(wide, many, features=("code", "visits"), resolution=5)


def test_a_category_that_training_has_not_seen_has_a_place():
    model = tabular(SVC(C=5.0)).fit(TABLE, LABELS)
    table = TABLE.assign(plan="new")
    display = DecisionDisplay.from_estimator(model, table, features=("plan", "visits"), resolution=5)
    assert ticks(display.ax_.xaxis) == ["basic", "plus", "pro", "new", "missing"]


def test_intervals_of_a_table():
    model = mercer.CalibratedRegressor(tabular(SVR(C=5.0)), cv=3).fit(TABLE, Y)
    for feature in ("plan", "since", "visits", None):
        table, y = (TABLE, Y) if feature != "visits" else (TABLE[TABLE["visits"].notna()], Y[TABLE["visits"].notna()])
        display = IntervalDisplay.from_estimator(model, table, y, feature=feature)
        assert display.coverage > 0.7
    quantiles = tabular(QuantileSVR(quantiles=[0.1, 0.9], C=5.0)).fit(TABLE, Y)
    assert IntervalDisplay.from_estimator(quantiles, TABLE, Y, feature="since").low.min() > -1000


def test_pictures_of_what_is_inside():
    assert PathDisplay.from_ridge_path(tabular(RLSRegressorCV()).fit(TABLE, Y)).to_frame() is not None
    search = tabular(TunedSVC({"C": [1.0, 5.0]}, cv=2)).fit(TABLE, LABELS)
    assert len(TuningDisplay.from_search(search).to_frame()) == 2
    with pytest.raises(TypeError, match="has searched nothing"):
        TuningDisplay.from_search(tabular(SVC()).fit(TABLE, LABELS))
    calibrated = tabular(mercer.CalibratedClassifier(SVC(), cv=2)).fit(TABLE, LABELS)
    assert ReliabilityDisplay.from_estimator(calibrated, TABLE, LABELS, n_bins=3).counts.sum() == N


def test_one_sample_of_a_table_is_told_in_its_cells():
    model = tabular(SVC(C=5.0)).fit(TABLE, LABELS)
    drawn = model.explain(TABLE[1:2], TABLE[5:9]).plot()
    names = ticks(drawn.ax_.yaxis)
    assert f"plan = {TABLE['plan'][1]}" in names
    assert f"since = {TABLE['since'][1].date()}" in names
    assert f"visits = {TABLE['visits'][1]:g}" in names


def test_contours_with_a_category():
    model = tabular(SVR(C=5.0)).fit(TABLE, Y)
    found = model.partial_dependence(TABLE, ("visits", "plan"), grid=([1.0, 5.0], ["pro", "basic"]))
    drawn = found.plot()
    shown = drawn.contour_.get_array().reshape(2, 2)
    np.testing.assert_array_equal(shown, found.average[:, ::-1].T)
    assert model.partial_dependence(TABLE, ("since", "visits")).plot().contour_ is not None


def test_the_first_two_columns_of_use_are_drawn_unless_others_are_asked_for():
    """Not an identifier that the model never sees; what has no room on an axis is told before the model is asked."""
    table = pd.DataFrame({"key": [f"k{k:03d}" for k in range(N)], **TABLE})
    model = tabular(SVC(), drop=["key"]).fit(table, LABELS)
    assert DecisionDisplay.from_estimator(model, table, resolution=5).names == ("plan", "since")
    model.decision_function = None  # which a refusal does not ask
    with pytest.raises(ValueError, match="'key' has 60 categories, and an axis has room for 40"):
        DecisionDisplay.from_estimator(model, table, features=("key", "visits"), resolution=5)
