"""Grid searches: mercer.tune beside scikit-learn's GridSearchCV, and TorchKM's task.

    python benchmarks/compare_tuning.py --data FOLDER [--only spam,usps,a9a,torchkm]     FOLDER holds the .npz files

Each search has 5 folds, 10 C × 8 gamma. scikit-learn is timed on every cell of spam, and on 15 of the 80 cells of the
others in one fold, from which its time is extrapolated: the whole grid takes it the better part of an hour. Its best
cell is looked for among those that mercer finds within two samples per fold of its own best. Times are CPU seconds, so
that they hold on a busy machine too. TorchKM's task is n = 10,000 × 1,000, 10 folds, 50 C, every fit to
a relative gap of 1e-3, with its generator and grid (github YikaiZhang95/torchkm, benchmarks/table2_simulation.py);
TorchKM itself is not run.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC as ScikitSVC

import mercer

# Places in the grids of C and gamma at which scikit-learn is timed where all cells would take too long.
SAMPLED = [(c, g) for g in (1, 4, 6) for c in (0, 3, 5, 7, 9)]


def load(folder: Path | None, name: str):  # type: ignore[no-untyped-def]  # arrays of several kinds
    if name != "digits" and folder is None:
        raise FileNotFoundError(f"{name} needs a folder with {name}.npz")
    z = np.load(folder / f"{name}.npz") if folder is not None and name != "digits" else None
    if z is None:
        X, y = load_digits(return_X_y=True)
    elif name == "a9a":
        X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"]))[:8000].astype(float)
        y = z["y"][:8000]
    else:
        X, y = z["X"].astype(float), z["y"]
        X = (X - X.mean(axis=0)) / X.std(axis=0) if name == "spam" else X
        y = y % 2 if name == "usps" else y  # even and odd digits
    variance = X.var() if not sp.issparse(X) else X.multiply(X).mean() - X.mean() ** 2
    gamma = 2.0 ** np.arange(-5, 3) / (X.shape[1] * variance)
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y))
    return X, y, {"C": np.logspace(-2, 2, 10), "gamma": gamma}, folds


def scikit_seconds(X, y, grid, folds, cells):  # type: ignore[no-untyped-def]  # arrays of several kinds
    """CPU seconds of scikit-learn's fits and predictions, extrapolated to all cells, and its scores."""
    spent, scores = 0.0, {}
    for c, g in cells:
        for f, (train, test) in enumerate(folds):
            begun = time.process_time()
            model = ScikitSVC(C=grid["C"][c], gamma=grid["gamma"][g]).fit(X[train], y[train])
            scores[c, g, f] = float(np.mean(model.predict(X[test]) == y[test]))
            spent += time.process_time() - begun
    return spent / len(scores) * 5 * 80, scores


def compare_best(X, y, grid, folds, found):  # type: ignore[no-untyped-def]  # arrays of several kinds
    """The score of the cell that mercer chose beside the best of scikit-learn's cells."""
    means, n = found.cv_results_["mean_test_score"], len(folds[0][1])
    near = [found.cv_results_["params"][k] for k in np.flatnonzero(means >= means.max() - 2.0 / n)]
    cells = [(list(grid["C"]).index(p["C"]), list(grid["gamma"]).index(p["gamma"])) for p in near]
    _, scores = scikit_seconds(X, y, grid, folds, cells)
    best = max(np.mean([scores[c, g, f] for f in range(len(folds))]) for c, g in cells)
    off = (best - found.best_score_) * n
    print(f"  best of {len(cells)} of its cells {best:.5f}, the chosen one {found.best_score_:.5f}: {off:.2f} samples")


def timed(X, y, grid, folds, skip):  # type: ignore[no-untyped-def]  # arrays of several kinds
    """CPU seconds of a search by mercer, and the search."""
    begun = time.process_time()
    found = mercer.tune(mercer.SVC(cache_size=1900), X, y, grid=grid, cv=folds, skip=skip, refit=False, n_jobs=2)
    return time.process_time() - begun, found


def differences(found, scores, grid, folds):  # type: ignore[no-untyped-def]  # arrays of several kinds
    """How many held-out samples each of scikit-learn's fits judges otherwise than mercer's of the same cell."""
    off = []
    for (c, g, f), score in scores.items():
        own = found.at(C=grid["C"][c], gamma=grid["gamma"][g])[f"split{f}_test_score"]
        off.append(abs(own - score) * len(folds[f][1]))
    return off


def record(folder: Path | None, name: str, cells=SAMPLED):  # type: ignore[no-untyped-def]  # arrays of several kinds
    """The times of both, scikit-learn's extrapolated from some cells in one fold, and how far their scores differ."""
    X, y, grid, folds = load(folder, name)
    peer, scores = scikit_seconds(X, y, grid, folds[:1], cells)
    seconds, found = timed(X, y, grid, folds, False)
    off = differences(found, scores, grid, folds)
    return {
        "data": name,
        "n": X.shape[0],
        "mercer": seconds,
        "scikit-learn, extrapolated": peer,
        "cells": len(cells),
        "most samples that differ": float(max(off)),
        "test samples of a fold": len(folds[0][1]),
        "best": found.best_score_,
    }


def search(folder: Path | None, name: str) -> None:
    X, y, grid, folds = load(folder, name)
    every = [(c, g) for g in range(8) for c in range(10)]
    peer, scores = scikit_seconds(
        X, y, grid, folds if name == "spam" else folds[:1], every if name == "spam" else SAMPLED
    )
    print(f"{name}: {X.shape[0]:,} rows\n  scikit-learn            {peer:8.1f} s CPU", flush=True)
    last = 0.0
    for skip in (False, True, "likely"):
        spent, found = timed(X, y, grid, folds, skip)
        fits = sum(np.isfinite(found.cv_results_[f"split{f}_test_score"]).sum() for f in range(5))
        against = f"{peer / spent:.0f}× faster" if skip is False else f"{last / spent:.2f}× faster again"
        print(
            f"  mercer, skip={skip!s:<8} {spent:11.1f} s CPU, {against}, {fits} fits, {found.best_params_}", flush=True
        )
        last = spent if skip is False else last
        if skip is False:
            compare_best(X, y, grid, folds, found)
            off = differences(found, scores, grid, folds)
            print(f"  held-out samples that differ: at most {max(off):.0f} in a fold, {np.mean(off):.3f} on average")
    print(f"  best {found.best_score_:.4f}, search gap {found.search_gap_}")


def torchkm_data(n: int, p: int, seed: int = 0):  # type: ignore[no-untyped-def]  # arrays of several kinds
    """Two classes of five normal clusters each, whose means are shifted by 2 in one half of the features."""
    rng = np.random.default_rng(seed)
    means = rng.normal(size=(10, p))
    means[:5, : p // 2] += 2.0
    means[5:, p // 2 :] += 2.0
    positive = rng.random(n) < 0.5
    cluster = rng.integers(0, 5, size=n) + 5 * positive
    X = 3.0 * rng.normal(size=(n, p)) + means[cluster]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    pairs = rng.integers(0, n, size=(n // 2, 2))
    distances = ((X[pairs[:, 0]] - X[pairs[:, 1]]) ** 2).sum(axis=1)
    ends = 1.0 / np.quantile(distances[distances > 0], [0.9, 0.1])
    return X, np.where(positive, 1, -1), float(ends.mean())


def torchkm_task(n: int = 10_000, p: int = 1_000) -> None:
    X, y, gamma = torchkm_data(n, p)
    prices = 1.0 / (2 * n * np.logspace(3, -3, 50))
    begun, wall = time.process_time(), time.perf_counter()
    machine = mercer.SVC(gamma=gamma, gap_tol=1e-3, cache_size=1900)
    found = mercer.tune(machine, X, y, grid={"C": prices}, cv=10, skip=False, refit=False, n_jobs=2)
    print(
        f"TorchKM's task, {n:,} × {p:,}: {time.process_time() - begun:.1f} s CPU, {time.perf_counter() - wall:.1f} s, "
        f"largest relative gap {np.nanmax(found.cv_results_['relative_gap']):.1e}, best {found.best_score_:.4f} at "
        f"{found.best_params_}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, metavar="FOLDER", help="where the .npz files are")
    parser.add_argument("--only", default="spam,usps,a9a,torchkm", help="some of them, or digits, which needs no file")
    options = parser.parse_args()
    for name in options.only.split(","):
        torchkm_task() if name == "torchkm" else search(options.data, name)


if __name__ == "__main__":
    main()
