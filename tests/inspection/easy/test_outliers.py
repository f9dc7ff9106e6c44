"""Gross errors in the target of a regression: the model ignores their size, and the report names the rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import mercer
from mercer.inspection.easy.outliers import Outliers, flag_large_errors, is_isolated

WRONG = np.array([12, 80, 161])


def line(factor=100.0, n=200, seed=0):
    """A line with a slipped decimal point in three rows; the table and the targets as they should be."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(1, 10, n)
    y = 10 * x + rng.normal(size=n)
    bad = y.copy()
    bad[WRONG] *= factor
    return pd.DataFrame({"x": x, "y": bad}), y


@pytest.fixture(scope="module")
def model():
    return mercer.easy(line()[0], target="y")


def test_the_line_is_found(model):
    new = pd.DataFrame({"x": np.linspace(1, 10, 100)})
    assert np.median(np.abs(model.predict(new) - 10 * new["x"])) < 0.5
    low, high = model.predict_interval(new)
    assert np.median(high - low) < 10
    assert not model.figures.is_useless
    assert "by the mean absolute error, since there are outliers" in model.search


def test_the_report_names_the_rows(model):
    assert model.outliers.rows.tolist() == WRONG.tolist()
    page = " ".join(str(model).split())
    assert (
        "3 rows are more than 20 times as far off as the median of the rest: rows 13, 81, 162; the model ignores their "
        "size"
    ) in page
    rest = np.delete(np.arange(200), WRONG)
    truth, answers = model.figures.truth[rest], model.figures.answers[rest]
    r2 = 1 - np.sum((truth - answers) ** 2) / np.sum((truth - truth.mean()) ** 2)
    assert f"R² {r2:.3f} (± " in model.figures.headline
    assert f"if 3 outlying rows are left out ({model.figures.r2:.3f} with them)" in model.figures.headline
    assert f"mean absolute error {np.mean(np.abs(truth - answers)):.4g} (" in model.figures.headline
    told = model.to_dict()
    assert told["outlying_rows"] == [13, 81, 162]
    assert told["score"]["held_out"] == model.figures.r2 < 0.5
    assert told["without_outliers"]["r2"] == pytest.approx(r2)


def test_the_model_ignores_their_size(model):
    new = pd.DataFrame({"x": np.linspace(1, 10, 100)})
    other = mercer.easy(line(3000.0)[0], target="y")
    assert other.search.partition(";")[0] == model.search.partition(";")[0]
    np.testing.assert_allclose(other.predict(new), model.predict(new), rtol=1e-3)


def test_without_outliers_the_search_scores_r2(model):
    right = mercer.easy(line(1.0)[0], target="y")
    assert len(right.outliers) == 0
    assert "absolute" not in right.search
    assert "outlying" not in right.figures.headline
    assert "outlier" not in str(right)


def frame(x, y):
    return pd.DataFrame({"x": x, "y": y})


def test_no_row_is_blamed_for_what_it_alone_tells():
    rng = np.random.default_rng(0)
    x = np.append(rng.uniform(0, 1, 150), 30.0)  # far from the others, and exactly where the line says
    alone = mercer.easy(frame(x, 5 * x), target="y")
    assert len(alone.outliers) == 0
    claims = np.where(rng.random(200) < 0.97, 0.0, rng.lognormal(7, 1, 200))  # the rare rows are the question
    assert len(mercer.easy(frame(rng.normal(size=200), claims), target="y").outliers) == 0


@pytest.mark.parametrize("noise", ["normal", "laplace", "logistic"])
def test_no_row_is_blamed_for_noise(noise):
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 300)
    assert len(mercer.easy(frame(x, x + getattr(rng, noise)(size=300)), target="y").outliers) == 0


def test_far_off():
    errors = np.ones(100)
    errors[:5] = 21.0, 25.0, 100.0, 1e6, 20.0
    assert np.flatnonzero(flag_large_errors(errors)).tolist() == [0, 1, 2, 3]
    errors[:6] = 50.0  # more than a twentieth of the rows
    assert not flag_large_errors(errors).any()
    assert Outliers(np.arange(9)).row_names() == "rows 1, 2, 3, 4, 5, 6, …"
    assert (
        Outliers(np.array([4]))
        .describe()
        .startswith("1 row is more than 20 times as far off as the median of the rest: row 5;")
    )


def test_isolated_rows():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 3)), [[0.1, 0.2, 0.0], [40.0, 0.0, 0.0]]])
    for rows in (X, sp.csr_array(X)):
        assert is_isolated(rows, np.array([200, 201])).tolist() == [False, True]
    codes = np.eye(3)[np.arange(60) % 3]  # a table of categories: every row has its like
    assert not is_isolated(codes, np.arange(5)).any()
