"""Machines at a tenth of their vectors against the originals: accuracy, time of predict, the error, and the guarantee.

    python benchmarks/compare_compression.py --data FOLDER [--only letter26] [--vectors 0.1] [--rows N] [--json FILE]

FOLDER holds letter.npz, usps.npz and spam.npz (tasks.py says how they are prepared, and has digits without a file);
C = 10. predict is timed on rows
around the training samples, both machines in turns, by the processor's time of one thread. The error is computed again
in decimals of forty digits, for the output whose fewest vectors make that possible. The guarantee is put to rows
around the samples, far from them, and between the classes: a kept label that differs is a false proof.
"""

from __future__ import annotations

import argparse
import time
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import numpy as np
from harness import machine, progress, same_threads_for_all, save_json, table
from tasks import Task, load

PACKAGES = ("mercer", "scikit-learn", "numpy", "scipy")
# The data set, whether its classes are halved, and the points of accuracy that may be lost at a tenth.
TASKS = {
    "letter": ("letter", True, 0.2),
    "letter26": ("letter", False, 0.5),
    "usps": ("usps", False, 0.2),
    "spam": ("spam", False, 0.7),
    "digits": ("digits", False, None),
}
REPEATS = 3
# Terms of the quadratic form that decimals are given time for.
_MOST_TERMS = 400_000


def task_of(folder: Path | str | None, name: str) -> Task:
    data, halved, _ = TASKS[name]
    task = load(folder, data).dense()
    return task.binary() if halved else task


def rows_like(X: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Random rows: most of them near the samples, a tenth between two of them, a tenth anywhere."""
    near = X[rng.integers(len(X), size=n)] + 0.1 * X.std(axis=0) * rng.normal(size=(n, X.shape[1]))
    tenth = n // 10
    share = rng.random((tenth, 1))
    near[:tenth] = share * X[rng.integers(len(X), size=tenth)] + (1 - share) * X[rng.integers(len(X), size=tenth)]
    near[tenth : 2 * tenth] = X.std() * rng.normal(size=(tenth, X.shape[1])) * 10.0 ** rng.uniform(-1, 3, (tenth, 1))
    return near


def processor_seconds(machines: dict[str, Any], rows: np.ndarray) -> dict[str, float]:
    """The least time of predict, in turns."""
    best = dict.fromkeys(machines, np.inf)
    for _ in range(REPEATS):
        for name, one in machines.items():
            begin = time.process_time()
            one.predict(rows)
            best[name] = min(best[name], time.process_time() - begin)
    return best


def recomputed(one: Any, other: Any, output: int, gamma: float) -> float:
    """‖w − w'‖ of one output under a Gaussian kernel in decimals: plain loops."""
    tables = [f.coefficients.toarray() if hasattr(f.coefficients, "toarray") else f.coefficients for f in (one, other)]
    c = np.concatenate([tables[0][:, output], -tables[1][:, output]])
    vectors = np.concatenate([np.asarray(f.vectors, dtype=np.float64) for f in (one, other)])[c != 0]
    with localcontext() as context:
        context.prec = 40
        exact = [[Decimal(value) for value in row] for row in vectors.tolist()]
        weights, total = [Decimal(value) for value in c[c != 0].tolist()], Decimal(0)
        for i, x in enumerate(exact):
            for j in range(i + 1):
                square = sum(((a - b) ** 2 for a, b in zip(x, exact[j], strict=True)), Decimal(0))
                value = (-Decimal(gamma) * square).exp()
                total += weights[i] * weights[j] * value * (1 if i == j else 2)
        return float(max(total, Decimal(0)).sqrt())


def fewest(one: Any, other: Any) -> tuple[int, int]:
    """The output with fewest vectors, and how many terms its quadratic form has."""
    counts = sum(np.asarray((f.coefficients != 0).sum(axis=0)).ravel() for f in (one, other))
    return int(np.argmin(counts)), int(counts.min()) ** 2 // 2


def compare(folder: Path | str | None, name: str, share: float, n_rows: int) -> dict[str, Any]:
    """All figures of one task."""
    import mercer

    task, rng = task_of(folder, name), np.random.default_rng(0)
    model = mercer.SVC(C=10).fit(task.X, task.y)
    begin = time.process_time()
    small = mercer.compress(model, share, X=task.X)
    seconds = time.process_time() - begin
    report, rows = small.compression_, rows_like(task.X, n_rows, rng)
    times = processor_seconds({"original": model, "compressed": small}, rows)
    kept = report.keeps_label(rows)
    f, g = (one._expansion_(rows) for one in (model, small))
    beyond = int((np.abs(f - g) > report.bound(rows).reshape(f.shape)).any(axis=1).sum())
    output, terms = fewest(model._expansion_, small._expansion_)
    off = np.nan
    if terms <= _MOST_TERMS:
        truth = recomputed(model._expansion_, small._expansion_, output, model.kernel_.recipe().numbers[0])
        off = float(np.ravel(report.error)[output]) / truth - 1
    return {
        "task": name,
        "vectors": report.n_vectors_before,
        "kept vectors": report.n_vectors,
        "accuracy": 100 * float(model.score(task.Xtest, task.ytest)),
        "lost": 100 * float(model.score(task.Xtest, task.ytest) - small.score(task.Xtest, task.ytest)),
        "may be lost": TASKS[name][2],
        "seconds": times,
        "times faster": times["original"] / times["compressed"],
        "error above recomputed": off,
        "labels kept": float(kept.mean()),
        "kept but different": int((small.predict(rows) != model.predict(rows))[kept].sum()),
        "beyond the bound": beyond,
        "processor seconds of compress": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", choices=TASKS)
    parser.add_argument("--vectors", type=float, default=0.1, help="the share of vectors to keep")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--json")
    args = parser.parse_args()
    same_threads_for_all(1)
    results: dict[str, Any] = {"machine": machine(PACKAGES, 1), "comparisons": []}
    for name in [args.only] if args.only else TASKS:
        progress(f"{name} …")
        results["comparisons"].append(compare(args.data, name, args.vectors, args.rows))
    header = (
        "task",
        "vectors",
        "accuracy",
        "lost (at most)",
        "predict ×",
        "error off by",
        "kept",
        "false",
        "compress s",
    )
    rows = [
        (
            row["task"],
            f"{row['vectors']} to {row['kept vectors']}",
            f"{row['accuracy']:.2f}",
            f"{row['lost']:.3f}" + ("" if row["may be lost"] is None else f" ({row['may be lost']})"),
            f"{row['times faster']:.2f}",
            f"{row['error above recomputed']:.1e}",
            f"{row['labels kept']:.1%}",
            row["kept but different"] + row["beyond the bound"],
            f"{row['processor seconds of compress']:.0f}",
        )
        for row in results["comparisons"]
    ]
    print(table(header, rows))
    save_json(results, args.json)


if __name__ == "__main__":
    main()
