"""Data sets as learning tasks: .npz files (X, y, Xtest, ytest, or the pieces of CSR matrices) and generated ones.

Binary tasks are halves of the classes in their order. Every set has two forms: raw, as published, and standardised with
the mean and standard deviation of its training rows, dense then. Where no form is asked for, letter, spam and
covtype10k are standardised and all others raw.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_digits

FORMS = ("standardised", "raw")
_USUALLY_STANDARDISED = ("letter", "spam", "covtype10k")
# How many of the classes, in order, are the positive half: A–M, the digits 0–4, the cover types 1–3 of 7.
_POSITIVE = {"letter": 13, "usps": 5, "mnist": 5, "covtype10k": 3, "digits": 5}
# Sets that scikit-learn carries: every fourth row is a test row.
_CARRIED = {"digits": load_digits, "breast_cancer": load_breast_cancer}
_MIXTURE = "mixture"


@dataclass(frozen=True, eq=False)
class Task:
    """Training and test samples; X is a float64 array or CSR matrix. The form is "generated" where none applies."""

    name: str
    X: Any
    y: np.ndarray
    Xtest: Any
    ytest: np.ndarray
    form: str = "raw"

    def first(self, n: int | None) -> Task:
        """The task with at most n training rows, its first ones."""
        return self if n is None else replace(self, X=self.X[:n], y=self.y[:n])

    def first_tests(self, n: int | None) -> Task:
        """The task with at most n test rows."""
        return self if n is None else replace(self, Xtest=self.Xtest[:n], ytest=self.ytest[:n])

    def dense(self) -> Task:
        return replace(self, X=_dense(self.X), Xtest=_dense(self.Xtest))

    def binary(self) -> Task:
        """Labels ±1: the first half of the classes (where there are more than two) against the rest."""
        labels = np.unique(self.y)
        positive = labels[: _POSITIVE[self.name]] if len(labels) > 2 else labels[1:]
        y, ytest = (np.where(np.isin(part, positive), 1, -1) for part in (self.y, self.ytest))
        return replace(self, y=y, ytest=ytest)

    def gamma(self) -> float:
        """What gamma="scale" means, as a number: 1 / (d · variance of all entries)."""
        X = self.X
        variance = X.multiply(X).mean() - X.mean() ** 2 if sp.issparse(X) else X.var()
        return float(1.0 / (X.shape[1] * variance))


def load(folder: str | Path | None, name: str, n: int | None = None, form: str | None = None) -> Task:
    """A data set by name, in float64; "mixture" is generated and needs n (50,000 unless told), scikit-learn has others.

    Standardising takes all training rows, of which the first n are then left.
    """
    if name == _MIXTURE:
        return mixture(50_000 if n is None else n)
    if name in _CARRIED:
        X, y = _CARRIED[name](return_X_y=True)
        test = np.arange(len(y)) % 4 == 3
        task = Task(name, X[~test], y[~test], X[test], y[test])
    elif folder is None:
        raise FileNotFoundError(f"{name} needs --data, a folder with {name}.npz")
    else:
        task = _from_file(Path(folder) / f"{name}.npz", name)
    if (form or ("standardised" if name in _USUALLY_STANDARDISED else "raw")) == "standardised":
        task = task.dense()
        mean, deviation = task.X.mean(axis=0), task.X.std(axis=0)
        deviation[deviation == 0] = 1.0
        X, Xtest = ((part - mean) / deviation for part in (task.X, task.Xtest))
        task = replace(task, X=X, Xtest=Xtest, form="standardised")
    return task.first(n)


def _from_file(path: Path, name: str) -> Task:
    with np.load(path) as file:
        if "X" in file:
            X, Xtest = (file[key].astype(np.float64) for key in ("X", "Xtest"))
        else:
            X, Xtest = (_csr(file, prefix) for prefix in ("", "test"))
        return Task(name, X, file["y"], Xtest, file["ytest"])


def mixture(n: int, d: int = 20, n_test: int = 5000, seed: int = 0) -> Task:
    """Sixteen Gaussian clouds in d dimensions, eight of each class, 5 % of the labels wrong, unit variance."""
    rng = np.random.default_rng(seed)
    apart = 1.3  # with n = 50,000 and C = 1 about a fifth of the rows are support vectors
    centres = apart * rng.normal(size=(16, d))
    cloud = rng.integers(16, size=n + n_test)
    X = (centres[cloud] + rng.normal(size=(n + n_test, d))) / np.sqrt(1 + apart**2)
    y = np.where((cloud % 2 == 0) ^ (rng.random(n + n_test) < 0.05), 1, -1)
    return Task(_MIXTURE, X[:n], y[:n], X[n:], y[n:], "generated")


def few_of_each_class(y: np.ndarray, count: int = 200) -> np.ndarray:
    """About `count` rows that hold every class: what competitors are warmed up on."""
    classes = np.unique(y)
    each = max(2, count // len(classes))
    return np.sort(np.concatenate([np.flatnonzero(y == label)[:each] for label in classes]))


def _csr(file: Any, prefix: str) -> sp.csr_matrix:
    # The old matrix class, not the array: libsvm's interface and thundersvm's know no other.
    pieces = tuple(file[prefix + part] for part in ("data", "indices", "indptr"))
    return sp.csr_matrix((pieces[0].astype(np.float64), *pieces[1:]), shape=tuple(file[prefix + "shape"]))


def _dense(X: Any) -> np.ndarray:
    return X.toarray() if sp.issparse(X) else X
