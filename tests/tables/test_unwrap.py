"""What a machine can be asked, asked of what stands around it: in the columns, categories and units of the user."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import mercer
from mercer import SVC, SVR, LinearSVR, OneClassSVM, RLSRegressor, TunedSVC, TunedSVR, tabular, unwrap
from mercer.files.export.c.export import export_c
from mercer.inspection.explain import partial_dependence, reasons
from mercer.notes.theory import insight
from mercer.tables.frame import with_columns

N = 70
RNG = np.random.default_rng(3)
TABLE = pd.DataFrame(
    {
        "plan": RNG.choice(["basic", "plus", "pro"], N),
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, N), "D"),
        "visits": RNG.poisson(6, N).astype(float),
        "active": RNG.random(N) < 0.5,
        "note": RNG.choice(["late parcel", "wrong size", "all fine", "late again"], N),
    }
)
TABLE.loc[::9, "plan"] = None
TABLE.loc[::11, "visits"] = np.nan
NUMBERS = pd.DataFrame({"a": RNG.normal(3, 2, N), "b": RNG.normal(size=N), "c": RNG.normal(-5, 9, N)})
Y = 1000.0 + 100 * ((TABLE["plan"] == "pro") + 0.2 * TABLE["visits"].fillna(6) + NUMBERS["b"]).to_numpy()
LABELS = np.where(np.median(Y) < Y, "much", "little")
ENCODER = make_column_transformer((OneHotEncoder(), ["plan", "note"]), (StandardScaler(), ["since"]))

AROUND = {
    "table": lambda: tabular(SVC(C=5.0), text=["note"]).fit(TABLE, LABELS),
    "regression": lambda: tabular(SVR(C=5.0)).fit(TABLE, Y),
    "search in a table": lambda: tabular(TunedSVC({"C": [1.0, 5.0]}, cv=2)).fit(TABLE, LABELS),
    "search of tables": lambda: GridSearchCV(tabular(SVC()), {"estimator__C": [1.0, 5.0]}, cv=2).fit(TABLE, LABELS),
    "calibrated": lambda: tabular(SVC(C=5.0)).fit(TABLE, LABELS).calibrate(TABLE, LABELS, cv=2),
    "Pipeline": lambda: make_pipeline(ENCODER, SVC(C=5.0)).fit(TABLE, LABELS),
    "tuned Pipeline": lambda: TunedSVC({"C": [1.0, 5.0]}, estimator=make_pipeline(ENCODER, SVC()), cv=2).fit(
        TABLE, LABELS
    ),
    "Pipeline that mixes": lambda: make_pipeline(ENCODER, PCA(3), SVC(C=5.0)).fit(TABLE, LABELS),
    "novelty": lambda: tabular(OneClassSVM(nu=0.3)).fit(TABLE),
}


def f(model, table):
    asked = unwrap(model)
    if hasattr(asked.machine, "decision_function"):
        return asked.machine.decision_function(asked.rows(table))
    return model.predict(table)


# --- partial dependence -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AROUND)
def test_partial_dependence_sets_cells_of_the_table(name):
    model = AROUND[name]()
    weight = np.arange(N) % 3.0
    for column in ("plan", "since", "note"):
        grid = None if column != "note" else ["all fine", "wrong size"]
        found = partial_dependence(
            model, TABLE, column, grid=grid, sample_weight=weight, individual=True, grid_resolution=4
        )
        assert found.feature_names == (column,)
        for k, cell in enumerate(found.grid[0]):
            changed = TABLE.assign(**{column: pd.Series([cell] * N).astype(TABLE[column].dtype)})
            np.testing.assert_allclose(found.individual[:, k], f(model, changed), atol=1e-9)
        np.testing.assert_allclose(found.average, weight @ found.individual / weight.sum(), atol=1e-9)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_partial_dependence_sets_dates_in_the_unit_of_the_column(unit):
    """A Pipeline reads dates as numbers, which count nanoseconds in pandas 2 and microseconds in pandas 3."""
    table = TABLE.assign(since=TABLE["since"].astype(f"datetime64[{unit}]"))
    model = make_pipeline(clone(ENCODER), SVC(C=5.0)).fit(table, LABELS)
    found = partial_dependence(model, table, "since", individual=True, grid_resolution=3)
    for k, cell in enumerate(found.grid[0]):
        changed = table.assign(since=pd.Series([cell] * N).astype(f"datetime64[{unit}]"))
        np.testing.assert_allclose(found.individual[:, k], f(model, changed), atol=1e-9)


def test_new_dates_keep_the_time_zone_of_the_column():
    table = pd.DataFrame({"since": TABLE["since"].dt.tz_localize("Europe/Berlin")}).set_axis(range(10, 10 + N))
    cells = np.array(["2020-07-01T10:00"] * N, dtype="datetime64[us]")  # UTC, as every array of dates in mercer
    changed = with_columns(table, {0: cells})
    assert changed.dtypes["since"] == table.dtypes["since"]
    assert changed["since"].iloc[0] == pd.Timestamp("2020-07-01 12:00", tz="Europe/Berlin")


def test_the_grid_of_a_category_has_its_levels_and_the_hole():
    model = AROUND["table"]()
    assert model.partial_dependence(TABLE, "plan").grid[0].tolist()[:3] == ["basic", "plus", "pro"]
    assert len(model.partial_dependence(TABLE[:1], 0).grid[0]) == 4
    assert model.partial_dependence(TABLE, "since", grid_resolution=5).grid[0].dtype.kind == "M"
    two = model.partial_dependence(TABLE, ("plan", "visits"), grid_resolution=3)
    assert two.average.shape == (4, 3)
    assert list(two.to_frame()) == ["plan", "visits", "much"]
    with pytest.raises(ValueError, match="'note' is text and has no grid by itself; pass one as grid"):
        model.partial_dependence(TABLE, "note")
    with pytest.raises(ValueError, match="there is no feature 'size'; the features are plan, since"):
        model.partial_dependence(TABLE, "size")


def test_numbers_are_in_their_own_unit():
    model = make_pipeline(StandardScaler(), SVR(C=100.0)).fit(NUMBERS, Y)
    found = unwrap(model).partial_dependence(NUMBERS, "c", grid_resolution=5)
    assert found.grid[0].min() < -10
    plain = model[-1].partial_dependence(
        model[0].transform(NUMBERS), 2, grid=(found.grid[0] - model[0].mean_[2]) / model[0].scale_[2]
    )
    np.testing.assert_allclose(found.average, plain.average, atol=1e-9)


# --- reasons ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AROUND)
def test_reasons_add_up_and_name_training_rows(name):
    model = AROUND[name]()
    machine, rows = unwrap(model).machine, unwrap(model).rows(TABLE)
    for found, row in zip(reasons(model, TABLE.iloc[[4, 9]], n=N), (4, 9), strict=True):
        k = machine.kernel_(rows[[row]], rows[found.indices]).ravel()
        np.testing.assert_allclose(found.similarities, k, atol=1e-12)
        b = machine.intercept_[0] * unwrap(model).unit[1] + unwrap(model).unit[0]
        value = f(model, TABLE)[row] - b
        sign = -1 if found.prediction == "little" else 1
        np.testing.assert_allclose(found.contributions.sum() * sign, value, atol=1e-6 * max(1, abs(value)))


def test_reasons_are_cells_of_the_table():
    model = tabular(SVC(C=5.0), text=["note"]).fit(TABLE, LABELS)
    found = model.reasons(TABLE[:1], n=6)[0]
    cells, truth = found.to_frame(), TABLE.iloc[found.indices]
    assert found.feature_names == list(TABLE)
    assert [one if isinstance(one, str) else None for one in cells["plan"]] == [
        one if isinstance(one, str) else None for one in truth["plan"]
    ]
    assert cells["since"].tolist() == truth["since"].tolist()
    np.testing.assert_allclose(cells["visits"].astype(float), truth["visits"], atol=1e-12)
    assert [set(words.split()) for words in cells["note"]] == [set(words.split()) for words in truth["note"]]
    assert cells["active"].tolist() == [str(one) for one in truth["active"]]
    scaled = make_pipeline(StandardScaler(), SVR(C=100.0)).fit(NUMBERS, Y)
    found = reasons(scaled, NUMBERS[:1], n=3)[0]
    np.testing.assert_allclose(found.vectors, NUMBERS.iloc[found.indices])
    assert reasons(AROUND["Pipeline"](), TABLE[:1])[0].vectors is None


def test_rows_that_were_left_out_of_training_are_counted():
    weight = (np.arange(N) % 4 > 0).astype(float)
    model = tabular(SVC(C=5.0), missing="drop").fit(TABLE, LABELS, sample_weight=weight)
    kept = np.flatnonzero(TABLE.notna().all(axis=1) & (weight > 0))
    assert model.rows_.tolist() == kept.tolist()
    found = model.reasons(TABLE[:1], n=5)[0]
    assert set(found.indices) <= set(kept)
    assert found.to_frame()["since"].tolist() == TABLE["since"].iloc[found.indices].tolist()
    points = model.nearest_points()
    assert set(points.rows) <= set(kept)
    margins = model.margins(TABLE.iloc[kept], LABELS[kept])
    assert margins.standings is not None
    assert model.margins(TABLE, LABELS).standings is None


def test_contributions_of_a_regression_are_in_the_unit_of_y():
    model = tabular(SVR(C=5.0)).fit(TABLE, Y)
    plain = model.estimator_.reasons(model.encode(TABLE[:1]))[0]
    found = model.reasons(TABLE[:1])[0]
    np.testing.assert_allclose(found.contributions, plain.contributions * Y.std(), rtol=1e-12)
    np.testing.assert_allclose(found.prediction, model.predict(TABLE[:1])[0])


# --- margins, theory, probabilities -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["table", "search in a table", "search of tables", "calibrated", "Pipeline", "Pipeline that mixes"]
)
def test_margins_distances_and_insight_are_the_machines(name):
    asked = unwrap(AROUND[name]())
    rows = asked.rows(TABLE)
    model = asked.model if hasattr(asked.model, "margins") else asked
    np.testing.assert_array_equal(model.margins(TABLE, y=LABELS).slacks, asked.machine.margins(rows, LABELS).slacks)
    if "mixes" not in name:  # PCA transforms what it was fitted to otherwise than before, by rounding
        assert model.margins(TABLE, LABELS).standings is not None
    np.testing.assert_array_equal(model.signed_distance(TABLE), asked.machine.signed_distance(rows))
    assert str(model.insight(TABLE, LABELS)) == str(insight(asked.machine, rows, LABELS))
    assert model.nearest_points().distance == asked.machine.nearest_points().distance


def test_insight_of_a_regression_is_about_its_own_targets():
    model = tabular(SVR(C=5.0)).fit(TABLE, Y)
    found = model.insight(TABLE, Y)
    assert found.risks["squared"] == pytest.approx(np.mean((Y - model.predict(TABLE)) ** 2) / Y.var())


def test_calibrate_answers_for_every_kind():
    table = AROUND["search in a table"]()
    calibrated = table.calibrate(TABLE, LABELS, cv=3)
    again = mercer.CalibratedClassifier(clone(table), cv=3).fit(TABLE, LABELS)  # which searches in every fold
    np.testing.assert_array_equal(calibrated.predict_proba(TABLE), again.predict_proba(TABLE))
    piped = unwrap(AROUND["Pipeline"]()).calibrate(TABLE, LABELS, cv=3, method="isotonic")
    again = mercer.CalibratedClassifier(make_pipeline(ENCODER, SVC(C=5.0)), "isotonic", cv=3).fit(TABLE, LABELS)
    np.testing.assert_array_equal(piped.predict_proba(TABLE), again.predict_proba(TABLE))
    low, high = AROUND["regression"]().calibrate(TABLE, Y, cv=3).predict_interval(TABLE)
    assert np.mean((low <= Y) & (high >= Y)) > 0.7
    new = AROUND["novelty"]().calibrate(TABLE, cv=3)
    assert new.predict_proba(TABLE).shape == (N, 2)
    assert not hasattr(AROUND["novelty"](), "predict_proba")
    tuned = mercer.CalibratedRegressor(TunedSVR({"C": [50.0, 100.0]}, cv=2), cv=3).fit(NUMBERS, Y)
    assert np.isfinite(tuned.predict_interval(NUMBERS)).all()
    frozen = mercer.CalibratedClassifier(FrozenEstimator(table)).fit(TABLE, LABELS)
    assert frozen.predict_proba(TABLE).shape == (N, 2)
    with pytest.raises(TypeError, match="the model already is a CalibratedClassifier"):
        calibrated.calibrate(TABLE, LABELS)


def test_what_is_not_fitted_says_so():
    for asking in (lambda m: m.explain(TABLE, TABLE), lambda m: m.margins(TABLE, LABELS), lambda m: m.reasons(TABLE)):
        with pytest.raises(NotFittedError):
            asking(tabular(SVC()))
    with pytest.raises(AttributeError, match="'Unwrapped' has no attribute 'margins'") as found:
        unwrap(AROUND["regression"]()).margins(TABLE, LABELS)
    assert "SVR, the machine inside, has no margins" in str(found.value.__cause__)
    assert "margins" not in dir(tabular(SVR()))
    assert "margins" in dir(tabular(SVC()))
    with pytest.raises(ValueError, match="categories have none; use explain"):
        AROUND["table"]().gradient_importance(TABLE)


# --- smaller, and elsewhere -------------------------------------------------------------------------------------------


COMPRESSED = {  # a Laplacian, since its vectors stay where they are, which is done at once
    "table": lambda: tabular(SVR(C=5.0, kernel="laplacian")).fit(TABLE, Y),
    "search of Pipelines": lambda: GridSearchCV(
        make_pipeline(ENCODER, SVC(kernel="laplacian")), {"svc__C": [1.0, 5.0]}, cv=2
    ).fit(TABLE, LABELS),
    "novelty": lambda: tabular(OneClassSVM(nu=0.3, kernel="laplacian")).fit(TABLE),
}


@pytest.mark.parametrize("name", COMPRESSED)
def test_compress_keeps_what_is_around(name, tmp_path):
    model = COMPRESSED[name]()
    small = mercer.compress(model, 5, X=TABLE)
    machine = unwrap(small).machine
    assert machine.compression_.n_vectors < machine.compression_.n_vectors_before
    assert [type(step) for step in unwrap(small).steps] == [type(step) for step in unwrap(model).steps]
    distance = np.abs(f(small, TABLE) - f(model, TABLE)) / unwrap(model).unit[1]
    assert (distance <= machine.compression_.bound(unwrap(model).rows(TABLE)).ravel() + 1e-9).all()
    assert len(small.predict(TABLE)) == N
    assert reasons(small, TABLE[:1])[0].vectors is None
    if "Pipe" not in name:
        mercer.save(small, tmp_path / "small.mercer")
        np.testing.assert_array_equal(mercer.load(tmp_path / "small.mercer").predict(TABLE), small.predict(TABLE))
    np.testing.assert_array_equal(f(model, TABLE), f(COMPRESSED[name](), TABLE))  # as it was


def test_compress_fits_to_targets_in_the_machines_unit():
    model = COMPRESSED["table"]()
    small = mercer.compress(model, 0.5, X=TABLE, y=Y, retrain="loss")
    assert small.score(TABLE, Y) > 0.5
    with pytest.raises(TypeError, match="CalibratedRegressor is calibrated for the model that it holds"):
        mercer.compress(model.calibrate(TABLE, Y, cv=2), 0.5)


def test_c_files_of_tables_of_numbers():
    for machine in (SVR(C=5.0), LinearSVR(), TunedSVR({"C": [1.0, 5.0]}, cv=2), RLSRegressor(lam=0.1)):
        model = tabular(machine).fit(NUMBERS, Y)
        told = export_c(model, dtype="float64", X=NUMBERS)
        assert "model_predict" in told
        parts = mercer.files.export.parts.Parts.of(model)
        rows = (NUMBERS.to_numpy() - parts.scalings[0].shift) / parts.scalings[0].divisor
        kernel = (
            rows @ parts.vectors.T
            if parts.recipe.ending == "identity"
            else unwrap(model).machine.kernel_(rows, parts.vectors)
        )
        np.testing.assert_allclose((kernel @ parts.coefficients + parts.b).ravel(), model.predict(NUMBERS), rtol=1e-9)
    with pytest.raises(
        TypeError,
        match=r"rows of numbers without missing values, but the column 'plan' is a category.*unwrap\(model\).machine",
    ):
        export_c(AROUND["table"]())
    with pytest.raises(TypeError, match="not the probabilities or intervals of CalibratedClassifier; export the model"):
        export_c(tabular(SVC()).fit(NUMBERS, LABELS).calibrate(NUMBERS, LABELS, cv=2))
    with pytest.raises(TypeError, match="not ColumnTransformer; apply it to the rows"):
        export_c(AROUND["Pipeline"]())
