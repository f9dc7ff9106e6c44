"""PegasosSVC against scikit-learn's SGDClassifier: seconds per epoch and the objective reached, both at the same λ.

    python benchmarks/compare_pegasos.py                  generated data, dense and CSR, under a minute
    python benchmarks/compare_pegasos.py --data FOLDER --sets a9a,reuters

Both make the same number of epochs and average their iterates; the objective is (λ/2)‖(w, b)‖² + mean hinge loss for
both, though SGDClassifier leaves b out of the norm. Merging, the objective and every check are part of our time.
Prints Markdown.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import harness
import numpy as np
import scipy.sparse as sp
import tasks
from sklearn.linear_model import SGDClassifier

from mercer import PegasosSVC


def text_like(n: int, d: int = 20_000, per_row: int = 60, seed: int = 0) -> tasks.Task:
    """Sparse rows of unit length, a tenth of the labels wrong."""
    rng = np.random.default_rng(seed)
    columns = np.minimum((d * rng.power(0.5, size=(n, per_row)) ** 4).astype(np.int64), d - 1)
    X = sp.csr_matrix((rng.random(n * per_row), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, d))
    X.sum_duplicates()
    X = sp.csr_matrix(sp.diags(1 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X)
    y = np.where((X @ rng.normal(size=d) > 0) ^ (rng.random(n) < 0.1), 1, -1)
    return tasks.Task("text-like", X, y, X[:10], y[:10])


def objective(task: tasks.Task, model: Any, lam: float) -> float:
    """The same function for everyone."""
    w, b = model.coef_[0], float(model.intercept_[0])
    f = np.asarray(task.X @ w).ravel() + b
    return float(lam / 2 * (w @ w + b * b) + np.maximum(0.0, 1.0 - task.y * f).mean())


def measure(task: tasks.Task, lam: float, epochs: int, repeats: int) -> list[list[str]]:
    """One line of the table per competitor."""

    def sgd() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return SGDClassifier(alpha=lam, average=True, max_iter=epochs, tol=None, random_state=0).fit(task.X, task.y)

    calls = {
        "PegasosSVC": lambda: PegasosSVC(lam, max_iter=epochs, random_state=0).fit(task.X, task.y),
        "PegasosSVC, passes": lambda: PegasosSVC(lam, max_iter=epochs, sampling="passes", random_state=0).fit(
            task.X, task.y
        ),
        "SGDClassifier": sgd,
    }
    lines = []
    for name, timing in harness.interleave(calls, repeats).items():
        if timing.error:
            lines.append([task.name, name, timing.error, "", ""])
            continue
        value = objective(task, timing.result, lam)
        lines.append([task.name, name, f"{lam:g}", f"{1e3 * timing.best / epochs:.2f}", f"{value:.5f}"])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="where the .npz files are; without it, generated data only")
    parser.add_argument("--sets", default="", help="data sets of that folder, such as a9a,reuters")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--size", type=int, default=50_000, help="rows of the generated data")
    options = parser.parse_args()
    harness.same_threads_for_all(1)
    sets = [tasks.mixture(options.size), text_like(options.size)]
    sets += [tasks.load(options.data, name).binary() for name in options.sets.split(",") if name]
    lines = [
        line for task in sets for lam in (1e-3, 1e-4) for line in measure(task, lam, options.epochs, options.repeats)
    ]
    print(harness.table(["data", "machine", "λ", "ms per epoch", f"objective after {options.epochs} epochs"], lines))


if __name__ == "__main__":
    main()
