"""What to try next: given on tables where it is right, and not on tables where it would be wrong."""

import functools

import numpy as np
import pandas as pd
import pytest

import mercer
from mercer.inspection.easy.advice import has_similar_neighbours

N = 240


def rng_of(seed=0):
    return np.random.default_rng(seed)


def smooth(n=N, seed=0, noise=0.5):
    """A table that a few rows are enough for: y is nearly linear in two of three columns."""
    rng = rng_of(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc"))
    return X, 2 * X["a"] - X["b"] + noise * rng.normal(size=n)


def classes_of(values, share):
    return np.where(values > np.quantile(values, 1 - share), "yes", "no")


def advice(X, y, **options):
    return mercer.easy(X.assign(y=np.asarray(y)), target="y", **options).hints


@functools.cache
def plain_advice(make):
    """The hints without options; several tests ask for those of one table."""
    return advice(*make())


def outliers():
    X, y = smooth()
    y[[3, 70, 150]] += 300
    return X, y


def outliers_and_missing_cells():
    """Two wrong targets, and a usual one that the model misses since its most important cell is missing."""
    X, y = smooth(noise=0.05)
    y[[3, 70]] += 300
    X.loc[5, "a"], y[5] = np.nan, y.drop([3, 70]).max()
    X.loc[70, "a"] = np.nan
    return X, y


def disguised():
    X, y = smooth(noise=2.0)
    return X.assign(net=(y / 1.19).round(2)), y


def disguised_class():
    X, y = smooth(noise=2.0)
    y = classes_of(y, 0.5)
    return X.assign(code=np.where(y == "yes", "A7", "B2")), y


def twice():
    X, y = smooth(120, noise=4.0)
    copies = rng_of().choice(120, 100)
    return pd.concat([X, X.iloc[copies]], ignore_index=True), np.append(classes_of(y, 0.5), classes_of(y, 0.5)[copies])


def in_time():
    rng = rng_of()
    t = np.arange(N)
    level = np.cumsum(rng.normal(size=N))
    return pd.DataFrame({"t": t.astype(float), "x": rng.normal(size=N)}), level + 0.1 * rng.normal(size=N)


def rare():
    X, y = smooth(400, noise=2.2)
    return X, classes_of(y, 0.2)


def words():
    rng = rng_of()
    n = 200
    good = rng.random(n) < 0.5
    words = rng.choice(["alpha", "beta", "gamma", "delta"], n)
    talk = [
        f"u{i}x {'fine' if one else 'bad'} {word} v{i}y" for i, (one, word) in enumerate(zip(good, words, strict=True))
    ]
    return pd.DataFrame({"a": rng.normal(size=n), "note": talk}), np.where(good ^ (rng.random(n) < 0.1), "yes", "no")


def noise():
    rng = rng_of(5)
    return pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")), rng.normal(size=300)


def wavy():
    rng = rng_of()
    X = pd.DataFrame(rng.uniform(0, 1, size=(150, 2)), columns=list("ab"))
    return X, np.sin(9 * X["a"]) * np.cos(9 * X["b"]) + 0.02 * rng.normal(size=150)


def weekly():
    """400 days with less on weekends; three dates are missing."""
    rng = rng_of()
    days = pd.Series(pd.date_range("2022-01-03", periods=400))
    a = rng.normal(size=400)
    y = np.where(np.arange(400) % 7 >= 5, 0.0, 3.0) + a + 0.7 * rng.normal(size=400)
    days[[5, 90, 200]] = pd.NaT
    return pd.DataFrame({"day": days, "a": a}), y


def weekly_classes():
    X, y = weekly()
    return X, classes_of(y, 0.7)


def few():
    rng = rng_of(1)
    return pd.DataFrame(rng.normal(size=(16, 3)), columns=list("abc")), rng.normal(size=16)


@pytest.mark.parametrize(
    ("make", "options", "told"),
    [
        (outliers, {}, "check 'y' in rows 4, 71, 151, which are far off"),
        (outliers_and_missing_cells, {}, "check 'y' in rows 4, 71, which are far off"),
        (disguised, {}, "'net' alone predicts 'y' almost perfectly (R² 1), and the other columns do not (R² 0."),
        (disguised_class, {}, "'code' alone predicts 'y' almost perfectly (accuracy 100.0%)"),
        (twice, {}, "of 220 rows occur more than once"),
        (in_time, {}, "rows near one another are alike: R² 0."),
        (rare, {"class_weight": None}, "class_weight='balanced' finds"),
        (noise, {}, "these columns hardly predict 'y'; look for others that might"),
        (wavy, {}, "more rows would help: R² 0."),
        (words, {}, "'note' is not used, but its words help; name it in the parameter text to use its words"),
        (weekly, {}, "'y' changes with the weekday of 'day': add a column of weekdays (R² 0."),
        (weekly, {"only": ["day"]}, "'y' changes with the weekday of 'day'"),
        (weekly_classes, {}, "'y' changes with the weekday of 'day': add a column of weekdays (accuracy 9"),
        (few, {}, "16 rows are too few to tell if these columns predict 'y'; collect more"),
    ],
)
def test_right(make, options, told):
    hints = advice(*make(), **options) if options else plain_advice(make)
    assert any(told in hint for hint in hints), hints


def strong_line():
    """One column says nearly all, and so do the others: no disguise."""
    y = smooth(noise=0.05)[1]
    return pd.DataFrame({"a": y + 0.05 * rng_of(1).normal(size=N), "b": y + 0.05 * rng_of(2).normal(size=N)}), y


def few_levels():
    """Rows of three categories are equal by chance, and no copies."""
    rng = rng_of()
    X = pd.DataFrame({name: rng.choice(list("uvw"), N) for name in "abc"})
    return X, np.where((X["a"] == "u") ^ (rng.random(N) < 0.1), "yes", "no")


def words_without_a_trace():
    X, y = words()
    return X, rng_of(9).permutation(y)


def sorted_by_target():
    X, y = smooth()
    order = np.argsort(y)
    return X.iloc[order].reset_index(drop=True), y.iloc[order]


def sorted_by_class():
    X, y = sorted_by_target()
    return X, classes_of(y, 0.5)


def rare_without_a_trace():
    rng = rng_of()
    return pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc")), rng.permutation(["yes"] * 45 + ["no"] * 255)


def heavy_tails():
    rng = rng_of()
    X, y = smooth(noise=0.0)
    return X, y + 0.5 * rng.laplace(size=N)


def heavier_tails():
    """Errors whose largest are hundreds of times the median, and decrease without a gap."""
    rng = rng_of(2)
    X, y = smooth(400, noise=0.0)
    return X, np.exp(0.5 * y) * (1 + rng.pareto(1.7, 400)) * 100


def enough_rows():
    """Accuracy grows from 86.0 to 86.2 % from 720 to 1440 rows; a search sometimes finds a small C."""
    rng = np.random.default_rng([2, 77])
    X = pd.DataFrame(rng.normal(size=(900, 4)), columns=list("abcd"))
    return X, classes_of(2 * X["a"] - X["b"] + rng.normal(size=900), 0.5)


def copied():
    """Half of the rows have fewer of the copies that make predictions better; rows of another kind would not help."""
    rng = np.random.default_rng(100)
    X = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    y = classes_of(X["a"] + 1.2 * rng.normal(size=200), 0.5)
    rows = np.r_[np.arange(200), rng.choice(100, 150)]
    return X.iloc[rows].reset_index(drop=True), np.asarray(y)[rows]


def hidden_by_few_rows():
    """Two columns explain 44 % of the variance, which 50 rows do not show."""
    rng = np.random.default_rng([2, 77])
    X = pd.DataFrame(rng.normal(size=(50, 6)), columns=list("abcdef"))
    return X, X["a"] + X["b"] + 1.6 * rng.normal(size=50)


def without_weeks():
    return weekly()[0], rng_of(4).normal(size=400) + np.sin(np.arange(400) / 60)


def on_mondays():
    X, y = weekly()
    return X.assign(day=pd.date_range("2022-01-03", periods=400, freq="7D")), y


def in_a_fortnight():
    X, y = weekly()
    return X.assign(day=pd.Timestamp("2022-01-03") + pd.to_timedelta(np.arange(400) % 14, unit="D")), y


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (smooth, ""),
        (heavy_tails, "far off"),
        (heavier_tails, "far off"),
        (enough_rows, "more rows"),
        (copied, "more rows"),
        (hidden_by_few_rows, "hardly predict"),
        (strong_line, "alone predicts"),
        (few_levels, "more than once"),
        (sorted_by_target, "near one another"),
        (sorted_by_class, "near one another"),
        (rare_without_a_trace, "balanced"),
        (words_without_a_trace, "words help"),
        (outliers, "hardly predict"),
        (disguised, "hardly predict"),
        (noise, "more rows"),
        (few, "hardly predict"),
        (weekly, "hardly predict"),
        (without_weeks, "weekday"),
        (on_mondays, "weekday"),
        (in_a_fortnight, "weekday"),
    ],
)
def test_not_wrong(make, wrong):
    assert not [hint for hint in plain_advice(make) if wrong in hint]


def test_similar_neighbours():
    rng = rng_of()
    assert has_similar_neighbours(np.cumsum(rng.normal(size=100)))
    assert not has_similar_neighbours(rng.normal(size=100))
    assert not has_similar_neighbours(np.sort(rng.normal(size=100)))
    assert has_similar_neighbours(np.repeat(["a", "b", "a", "b"], 25))
    assert not has_similar_neighbours(np.repeat(["a", "b"], 50))
