"""Does tuning help, and is it never worse than leaving everything as it is?

    python benchmarks/compare_tuned.py [names of sets]

For each set, the pipeline StandardScaler, SVC (or SVR) as it is, and the same after `mercer.tune` without a grid, which
sees the training part only: scores of 5 outer folds of shuffled rows, three times over. "gain" is the mean difference,
"error" its standard error, corrected for training sets that overlap (Nadeau and Bengio, 2003). "choice" says whether
what scikit-learn's GridSearchCV finds on the same cells and folds of the whole set leads to the same cell.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from sklearn import datasets
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, KFold, RepeatedKFold, RepeatedStratifiedKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer


def ordered_table(n: int = 208, d: int = 60, seed: int = 0):
    """Two classes, one after the other, whose spectra drift slowly from row to row, as in Sonar."""
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n - n // 2, n // 2])
    along = np.concatenate([np.linspace(0, 1, np.sum(y == k)) for k in (0, 1)])
    at = np.linspace(0, 1, d)
    bumps = np.exp(-(((at - 0.2 - 0.6 * along[:, None]) / 0.15) ** 2))
    own = 0.25 * np.sin(9 * at + 2.5 * y[:, None] + 5 * along[:, None])
    return bumps + own + 0.3 * rng.normal(size=(n, d)), y


def digits():
    X, y = datasets.load_digits(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(y))[:500]
    return X[rows], y[rows]


SETS = {
    "iris": lambda: datasets.load_iris(return_X_y=True),
    "wine": lambda: datasets.load_wine(return_X_y=True),
    "breast cancer": lambda: datasets.load_breast_cancer(return_X_y=True),
    "digits (500)": digits,
    "ordered table": ordered_table,
    "moons": lambda: datasets.make_moons(200, noise=0.3, random_state=0),
    "circles": lambda: datasets.make_circles(200, noise=0.2, factor=0.5, random_state=0),
    "blobs": lambda: datasets.make_blobs(200, centers=3, cluster_std=3.0, random_state=0),
    "few informative": lambda: datasets.make_classification(200, 20, n_informative=3, random_state=0),
    "noisy labels": lambda: datasets.make_classification(200, 10, flip_y=0.2, random_state=1),
    "quantiles": lambda: datasets.make_gaussian_quantiles(n_samples=200, n_features=3, random_state=0),
    "hastie": lambda: datasets.make_hastie_10_2(400, random_state=0),
    "diabetes": lambda: datasets.load_diabetes(return_X_y=True),
    "friedman": lambda: datasets.make_friedman1(200, noise=1.0, random_state=0),
}


def pipeline(y):
    numbers = np.asarray(y).dtype.kind == "f" and len(np.unique(y)) > 20
    return make_pipeline(StandardScaler(), mercer.SVR() if numbers else mercer.SVC())


def standard_error(differences) -> float:
    """Of the mean over folds that each leave out a fifth: their variance, times 1/folds + n_test/n_train."""
    return float(differences.std(ddof=1) * np.sqrt(1 / len(differences) + 1 / 4))


def outer(X, y, repeats: int = 3):
    """Scores of the pipeline as it is and tuned, a row for each outer fold."""
    model = pipeline(y)
    folds = (RepeatedStratifiedKFold if is_classifier(model) else RepeatedKFold)(
        n_splits=5, n_repeats=repeats, random_state=1
    )
    scores = []
    for train, test in folds.split(X, y):
        tuned = mercer.tune(model, X[train], y[train]).best_estimator_
        plain = model.fit(X[train], y[train])
        scores.append([plain.score(X[test], y[test]), tuned.score(X[test], y[test])])
    return np.array(scores)


def choice(X, y):
    """Whether GridSearchCV has the same best cell, and whether the rule that follows was kept."""
    model = pipeline(y)
    found = mercer.tune(model, X, y, refit=False)
    points = found.cv_results_["params"]
    splitter = (StratifiedKFold if is_classifier(model) else KFold)(5, shuffle=True, random_state=0)
    search = GridSearchCV(model, [{n: [v] for n, v in point.items()} for point in points], cv=splitter, refit=False)
    results = search.fit(X, y).cv_results_
    scores = np.array([results[f"split{k}_test_score"] for k in range(5)])
    best, own = int(scores.mean(axis=0).argmax()), len(points) - 1
    difference = scores[:, best] - scores[:, own]
    kept = best if difference.mean() > standard_error(difference) else own
    return found.best_index_ == kept, points[found.best_index_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(SETS)}; all unless told")
    options = parser.parse_args()
    print(f"{'set':16s} {'as it is':>8s} {'tuned':>8s} {'gain':>8s} {'error':>7s}  choice")
    warnings.simplefilter("ignore")
    for name in options.names or SETS:
        X, y = SETS[name]()
        scores = outer(X, y)
        gains = scores[:, 1] - scores[:, 0]
        error = standard_error(gains)
        same, params = choice(X, y)
        mark = " WORSE" if gains.mean() < -error else ""
        told = ", ".join(f"{n.split('__')[1]}={v if isinstance(v, str) else f'{v:.3g}'}" for n, v in params.items())
        row = f"{name:16s} {scores[:, 0].mean():8.4f} {scores[:, 1].mean():8.4f} {gains.mean():+8.4f} {error:7.4f}"
        print(f"{row}  {'same' if same else 'OTHER'}: {told}{mark}", flush=True)


if __name__ == "__main__":
    main()
