"""What a few gross errors in the target of a table do to `mercer.easy`, and to histogram boosting.

    python benchmarks/outliers.py              twenty tables: about six minutes on one core
    python benchmarks/outliers.py --tables 4   the first four

Each table is learnt twice: as it is, and with up to 3 % of its targets wrong, by a misplaced decimal point (10 to 100
times the number) or by an offset of 10 to 100 standard deviations of the noise or of the target. The test rows are
right in both. A column holds the median absolute error on them, and R² beside it. The last lines count the tables in
which errors in the training rows raise the median error of `mercer.easy` by more than a fifth, and those in which it is
no better than the median of the training rows.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

import mercer

N_TEST = 400
SHARES, SIZES = (0.005, 0.01, 0.02, 0.03), (10, 30, 100)
Make = Callable[[int, np.random.Generator], tuple[pd.DataFrame, Any, float]]  # features, f and the noise's deviation


def line(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, float]:
    x = rng.uniform(0, 10, n)
    return pd.DataFrame({"x": x}), 10 * x, 1.0


def wave(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, float]:
    x = rng.uniform(0, 6, n)
    return pd.DataFrame({"x": x, "other": rng.normal(size=n)}), 20 + 5 * np.sin(2 * x), 0.7


def friedman(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, float]:
    X = rng.uniform(size=(n, 7))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return pd.DataFrame(X, columns=list("abcdefg")), f, 1.0


def house(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, float]:
    area, year, town = rng.uniform(40, 180, n), rng.integers(1950, 2020, n), rng.choice(["Ulm", "Bonn", "Kiel"], n)
    f = 2500 * area * (1 + 0.3 * (town == "Bonn")) + 900 * (year - 1950)
    return pd.DataFrame({"area": area, "year": year, "town": town}), f, 25_000.0


def energy(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, float]:
    outside, hour = rng.normal(8, 8, n), rng.integers(0, 24, n)
    f = 300 + 12 * np.maximum(18 - outside, 0) + 60 * np.sin(np.pi * hour / 12)
    return pd.DataFrame({"outside": outside.round(1), "hour": hour, "office": rng.random(n) < 0.5}), f, 20.0


def skewed(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, float]:
    X = rng.normal(size=(n, 3))
    return pd.DataFrame(X, columns=list("abc")), np.exp(0.5 * X[:, 0] + 0.4 * X[:, 1]) * 100, 12.0


def weak(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Any, float]:
    X = rng.normal(size=(n, 4))
    return pd.DataFrame(X, columns=list("abcd")), 50 + 2 * X[:, 0] - X[:, 1], 3.0


MAKERS: tuple[Make, ...] = (line, wave, friedman, house, energy, skewed, weak)


@dataclass(frozen=True)
class Case:
    """A training table as it is and with errors, and test rows."""

    name: str
    train: pd.DataFrame
    y: Any
    with_errors: Any
    test: pd.DataFrame
    truth: Any


def make_case(k: int) -> Case:
    rng = np.random.default_rng(k)
    maker, n = MAKERS[k % len(MAKERS)], int(rng.integers(150, 500))
    frame, f, noise = maker(n + N_TEST, rng)
    y = f + noise * rng.standard_normal(len(f))
    train, bad = y[:n], y[:n].copy()
    share, size, kind = SHARES[k % len(SHARES)], SIZES[k % len(SIZES)], k % 4
    rows = rng.choice(n, max(1, round(share * n)), replace=False)
    if kind == 0:
        bad[rows] *= size
    elif kind == 1:
        bad[rows] += size * noise
    elif kind == 2:
        bad[rows] += size * train.std() * rng.choice([-1, 1], len(rows))
    else:
        bad[rows] *= size ** rng.uniform(0.5, 1, len(rows))
    name = f"{maker.__name__}, {n} rows, {len(rows)} × {size} {('times', 'noise', 'deviations', 'various')[kind]}"
    return Case(name, frame[:n], train, bad, frame[n:], y[n:])


def boost(X: pd.DataFrame, y: Any) -> Any:
    X = X.assign(**{name: X[name].astype("category") for name in X.columns if X[name].dtype.kind == "O"})
    return HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=0).fit(X, y)


def scores(model: Any, case: Case) -> tuple[float, float]:
    answers = model.predict(case.test)
    return float(np.median(np.abs(case.truth - answers))), float(r2_score(case.truth, answers))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=20)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':<44}{'mercer.easy':^30}{'HistGradientBoosting':^30}{'median':>10}")
    heads = "".join(f"{text:>15}" for text in ("as it is", "with errors") * 2)
    print(f"{'table, errors':<44}{heads}")
    raised = useless = 0
    for k in range(args.tables):
        case = make_case(k)
        found = []
        for learn in (partial(mercer.easy, case.train), partial(boost, case.train)):
            found += [scores(learn(y), case) for y in (case.y, case.with_errors)]
        constant = float(np.median(np.abs(case.truth - np.median(case.with_errors))))
        raised += found[1][0] > 1.2 * found[0][0]
        useless += found[1][0] > constant
        cells = "".join(f"{error:>8.4g} {max(r2, -99):>6.2f}" for error, r2 in found)
        print(f"{case.name:<44}{cells}{constant:>10.4g}  {found[1][0] / found[0][0]:.2f}", flush=True)
    print(f"errors raise the median error of easy by more than a fifth in {raised} of {args.tables}")
    print(f"with errors easy is no better than the median in {useless} of {args.tables}")


if __name__ == "__main__":
    main()
