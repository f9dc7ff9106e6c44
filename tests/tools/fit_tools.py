"""Ways to train: again, on frames, in parts, from a start, with weights; and parameters that change after a fit."""

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import clone

from tools.answers import ROWS, NoSuchTool, answers, expect_same_answers, expect_same_function, values
from tools.rows import NAMES, NEW, POINTS, N, fitted


def clone_and_refit(row):
    """A clone trained on the same rows answers with the same bits, also where it was trained on others before."""
    expect_same_answers(fitted(row), row.fit(clone(fitted(row))), row)
    before = row.fit(row.make(), np.arange(4, N))
    expect_same_answers(fitted(row), row.fit(before), row)


def frames(row):
    """Frames of pandas and polars; columns in another order are refused by name, or found by name."""
    if row.form in ("matrix", "strings"):
        raise NoSuchTool(f"{row.name} takes no columns")
    target = row.y
    for frame in (
        lambda points: pd.DataFrame(points, columns=NAMES),
        lambda points: pl.DataFrame({name: points[:, j] for j, name in enumerate(NAMES)}),
    ):
        model = row.make().fit(frame(POINTS), target)
        for name in ("predict", "transform"):
            if hasattr(model, name):
                check_frame(getattr(model, name), getattr(fitted(row), name)(row.given(NEW)), frame(NEW))


def check_frame(method, expected, frame):
    found = np.asarray(method(frame))
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, atol=1e-9)
    else:
        np.testing.assert_array_equal(found, expected)
    try:
        permuted = method(frame[["b", "a", "c"]])
    except ValueError as error:
        if "feature names" not in str(error):
            raise
    else:
        np.testing.assert_array_equal(permuted, found)


def partial_fit(row):
    """Two parts one after the other, and a row taken away again, give the machine of one fit."""
    model = row.make()
    some = np.arange(N - 6)
    rest = np.arange(N - 6, N)
    model.partial_fit(row.given(POINTS[some]), row.labels(some), **known_classes(row))
    model.partial_fit(row.given(POINTS[rest]), row.labels(rest))
    if row.has("descent"):  # a stream of steps: it only comes near
        assert model.score(row.training(), row.y) > 1.2 / row.classes
        return
    expect_same_function(fitted(row), model, row, close=1e-5)


def known_classes(row):
    """What a stream is told first: machines that keep no samples cannot wait for a class."""
    needs = row.estimator in ("PegasosSVC", "RLSClassifier")
    return {"classes": np.unique(row.y)} if needs else {}


def forget(row):
    """Rows taken away leave the machine of the others; least squares is told which ones, as samples."""
    model, some = row.make(), [0, 5]
    rest = np.delete(np.arange(N), some)
    if row.estimator in ("RLSClassifier", "RLSRegressor"):
        model.partial_fit(row.training(), row.y, **known_classes(row))
        model.forget(row.given(POINTS[some]), row.labels(some))
    else:
        model = row.fit(model.set_params(warm_start=True)) if hasattr(model, "forget") else model
        model.forget(some)
    among = rest if row.form == "matrix" else None
    f = values(model, row, ROWS, among)
    np.testing.assert_allclose(f, values(row.fit(row.make(), rest), row, ROWS, among), atol=1e-5)


def warm_start(row):
    """A fit that starts from another one's solution ends where a cold one does."""
    if "warm_start" not in row.make().get_params(deep=False):
        raise NoSuchTool(f"{row.estimator} has no parameter warm_start")
    model = row.make().set_params(warm_start=True)
    name = next(one for one in ("C", "nu", "lam", "alpha") if one in model.get_params(deep=False))
    own = getattr(model, name)
    row.fit(model.set_params(**{name: 0.5 * own if np.isfinite(own) else own}))
    row.fit(model.set_params(**{name: own}))
    expect_same_function(fitted(row), model, row, close=1e-5)


def expect_weights(row):
    if row.has("features"):
        raise NoSuchTool(f"{row.estimator}.fit has no sample_weight")


def weights_as_copies(row):
    """A whole number as weight is that many copies of the row."""
    expect_weights(row)
    counts = 1 + (np.arange(N) % 5 == 0) + (np.arange(N) % 7 == 0)
    many = np.repeat(np.arange(N), counts)
    weighted = row.fit(row.make(), sample_weight=counts.astype(float))
    copied = row.fit(row.make(), many)
    among = many if row.form == "matrix" else None
    expect_same_function(weighted, copied, row, close=1e-5, among=among)


def weight_zero(row):
    """A row of weight 0 is not there."""
    expect_weights(row)
    weight = np.ones(N)
    weight[[1, 6, 11]] = 0.0
    rest = np.flatnonzero(weight)
    zero = row.fit(row.make(), sample_weight=weight)
    without = row.fit(row.make(), rest)
    among = rest if row.form == "matrix" else None
    expect_same_function(zero, without, row, close=1e-5, among=among)


# What `predict` reads, by scikit-learn's own meaning of it, or that is not about the model.
READ_LATER = {
    "decision_function_shape",
    "break_ties",
    "n_jobs",
    "verbose",
    "decides",
    "method",
    "cv",
    "memory",
    "steps",
}
OTHERS = {
    "C": 77.0, "nu": 0.9, "lam": 55.0, "alpha": 9.0, "gamma": 3.0, "coef0": 5.0, "degree": 7, "epsilon": 0.7,
    "bias": False, "slack": "l2", "tol": 0.5, "tau": 0.3, "delta": 0.2, "multiclass": "ovr", "class_weight": "balanced",
    "quantiles": (0.2, 0.8), "n_landmarks": 3, "n_components": 1, "n_clusters": 3, "max_iter": 1, "kernel": "linear",
    "random_state": 5, "warm_start": True, "solver": "other", "theta": 0.3, "gap_tol": 0.5, "intercept_scaling": 3.0,
    "lams": [1.0], "loss": "other", "grid": {"C": [1.0]}, "optimise": True, "ordered": True,
}  # fmt: skip


def set_params_after_fit(row):
    """Parameters are for the next fit: no answer of this one changes, nor what is asked of margins."""
    model = row.fit()
    owner = model
    before, seen = answers(model, row), margins_of(owner, row)
    inner = model
    if row.has("pipeline"):
        inner = model[-1]
    elif row.has("table") or row.has("calibrated"):
        inner = model.estimator_
    known = inner.get_params(deep=False)
    for name in known.keys() & OTHERS.keys() - READ_LATER:
        setattr(inner, name, OTHERS[name])
    after = answers(model, row)
    for name, answer in before.items():
        np.testing.assert_array_equal(after[name], answer, err_msg=name)
    later = margins_of(owner, row)
    assert later.keys() == seen.keys(), (later.keys(), seen.keys())
    for name, number in later.items():
        np.testing.assert_allclose(number, seen[name], rtol=1e-9, err_msg=name)


def margins_of(model, row):
    """The numbers of the margins of a classifier, by name; none of other machines."""
    if not row.classifies or not hasattr(model, "margins"):
        return {}
    try:
        found = model.margins(row.training(), row.y)
    except (ValueError, TypeError):
        return {}
    numbers = {}
    for p, part in enumerate(list(found) if hasattr(found, "parts") else [found]):
        numbers |= {f"{p} {name}": value for name, value in part.inverse_rho_squared.items()}
        numbers[f"{p} margins"] = part.functional_margins
        numbers[f"{p} standings"] = part.standings if part.standings is not None else -1
    return numbers
