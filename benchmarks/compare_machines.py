"""SVR, NuSVR, NuSVC and OneClassSVM against scikit-learn's, on the same problems, with the truth about both answers.

    python benchmarks/compare_machines.py --data FOLDER            four data sets for each machine
    python benchmarks/compare_machines.py --data FOLDER --quick    the same with at most 3,000 rows

Both get the same C, ν, ε, gamma and tol. True violation and dual value are recomputed here from the coefficients alone,
in float64. Prints Markdown; `--json` keeps every number.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import harness
import numpy as np
import tasks
from truth import Setting, products

MACHINES = ("SVR", "NuSVR", "NuSVC", "OneClassSVM")
PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn")
_REGRESSION = ("kin40k_reg", "protein_reg", "cadata_reg", "bike_reg")
_CLASSES = ("letter", "usps", "a9a", "mnist")
_QUICK = 3000
_ROWS = 10_000
_OPTIONS: dict[str, dict[str, float]] = {
    "SVR": {"C": 10.0, "epsilon": 0.1},
    "NuSVR": {"C": 10.0, "nu": 0.5},
    "NuSVC": {"nu": 0.1},
    "OneClassSVM": {"nu": 0.1},
}


@dataclass(frozen=True, eq=False)
class Box:
    """One variable per entry: maximise p'β − ½β'Kβ, lower ≤ β ≤ upper, each group's sum as it is meant to be."""

    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    group: np.ndarray
    totals: np.ndarray


def load(folder: str, name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Training samples and target; regression data are standardised, the others as in compare_svc."""
    if not name.endswith("_reg"):
        task = tasks.load(folder, name, n).dense().binary()
        return np.ascontiguousarray(task.X, dtype=np.float64), task.y
    with np.load(Path(folder) / f"{name}.npz") as file:
        X, y = file["X"][:n].astype(np.float64), file["y"][:n].astype(np.float64)
    return (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()


def duals(machine: str, model: Any, n: int, target: np.ndarray) -> np.ndarray:
    """β on all rows, in the scale of the problem: the ν-classifier's are divided by ρ in the model."""
    beta = np.zeros(n)
    beta[model.support_] = model.dual_coef_[0]
    if machine == "NuSVC":
        beta *= _OPTIONS[machine]["nu"] * n / np.abs(beta).sum()
        beta *= np.sign(beta @ np.where(target > 0, 1.0, -1.0))
    return beta


def split(machine: str, target: np.ndarray, beta: np.ndarray) -> tuple[Box, np.ndarray]:
    """The problem and its variables: twins for regression, at most one of which is not zero."""
    n, options = len(target), _OPTIONS[machine]
    zero = np.zeros(n)
    if machine in ("SVR", "NuSVR"):
        C, epsilon = options["C"], options.get("epsilon", 0.0)
        both = np.concatenate([np.maximum(beta, 0.0), np.minimum(beta, 0.0)])
        p = np.concatenate([target - epsilon, target + epsilon])
        lower, upper = np.concatenate([zero, zero - C]), np.concatenate([zero + C, zero])
        if machine == "SVR":
            return Box(p, lower, upper, np.zeros(2 * n, dtype=int), np.zeros(1)), both
        mass = options["nu"] * C * n / 2
        return Box(p, lower, upper, np.repeat([0, 1], n), np.array([mass, -mass])), both
    if machine == "OneClassSVM":
        return Box(zero, zero, zero + 1.0, np.zeros(n, dtype=int), np.array([options["nu"] * n])), beta
    mass = options["nu"] * n / 2
    sides = (np.where(target > 0, 0.0, -1.0), np.where(target > 0, 1.0, 0.0))
    return Box(zero, *sides, np.where(target > 0, 0, 1), np.array([mass, -mass])), beta


def judge(machine: str, X: np.ndarray, target: np.ndarray, gamma: float, beta: np.ndarray) -> dict[str, float]:
    """True violation, dual value, and how far box and equalities are missed."""
    u = products(Setting(1.0, gamma), X, beta[:, None])[:, 0]
    box, variables = split(machine, target, beta)
    h = box.p - np.resize(u, len(box.p))
    near = 1e-12 * (box.upper - box.lower)
    violation = 0.0
    for g in range(len(box.totals)):
        here = box.group == g
        top = h[here & (variables < box.upper - near)].max(initial=-np.inf)
        bottom = h[here & (variables > box.lower + near)].min(initial=np.inf)
        violation = max(violation, float(top - bottom))
    sums = np.array([variables[box.group == g].sum() for g in range(len(box.totals))])
    outside = float(np.maximum(box.lower - variables, variables - box.upper).max())
    return {
        "violation": violation,
        "dual": float(box.p @ variables - 0.5 * beta @ u),
        "infeasibility": max(0.0, outside, float(np.abs(sums - box.totals).max())),
        "nSV": int(np.count_nonzero(beta)),
    }


def race(machine: str, name: str, X: np.ndarray, target: np.ndarray, tol: float, repeats: int) -> dict[str, Any]:
    """Both libraries on one problem, in turns."""
    gamma = float(1.0 / (X.shape[1] * X.var()))
    makers = {library: getattr(importlib.import_module(module), machine) for library, module in _LIBRARIES.items()}
    few = np.r_[np.flatnonzero(target > 0)[:50], np.flatnonzero(target <= 0)[:50]]
    calls = {}
    for library, maker in makers.items():
        fit = partial(_fit, maker, gamma, tol, _OPTIONS[machine])
        fit(X[few], target[few])
        calls[library] = partial(fit, X, target)
    timings = harness.interleave(calls, repeats)
    record: dict[str, Any] = {
        "machine": machine,
        "data": name,
        "n": len(X),
        "d": X.shape[1],
        "gamma": gamma,
        "tol": tol,
    }
    for library, timing in timings.items():
        record[library] = timing.to_dict()
        if timing.result is not None:
            beta = duals(machine, timing.result, len(X), target)
            record[library] |= judge(machine, X, target, gamma, beta)
    times = "  ".join(f"{library} {timing.error or format(timing.best, '.3g')}" for library, timing in timings.items())
    harness.progress(f"{machine}  {name} n={len(X)}: {times}")
    return record


_LIBRARIES = {"mercer": "mercer", "sklearn": "sklearn.svm"}


def _fit(maker: Any, gamma: float, tol: float, options: dict[str, float], X: np.ndarray, y: np.ndarray) -> Any:
    return maker(kernel="rbf", gamma=gamma, tol=tol, **options).fit(X, y)


def report(records: Sequence[dict[str, Any]]) -> str:
    """A table per machine, with the geometric mean of the ratios."""
    parts = []
    for machine in dict.fromkeys(record["machine"] for record in records):
        rows, ratios = [], []
        for r in (record for record in records if record["machine"] == machine):
            ours, other = r["mercer"], r["sklearn"]
            if "error" in ours or "error" in other:
                rows.append([r["data"], r["n"], r["d"], ours.get("error", ""), other.get("error", ""), *[""] * 5])
                continue
            ratios.append(other["best"] / ours["best"])
            rows.append(
                [
                    r["data"],
                    r["n"],
                    r["d"],
                    f"{ours['best']:.3f}",
                    f"{other['best']:.3f}",
                    f"{ratios[-1]:.1f}",
                    f"{ours['violation']:.1e}",
                    f"{other['violation']:.1e}",
                    f"{(ours['dual'] - other['dual']) / abs(other['dual']):+.1e}",
                    f"{ours['nSV']} / {other['nSV']}",
                ]
            )
        header = ["data", "n", "d", "mercer s", "scikit-learn s", "ratio", "violation", "its violation", "dual", "nSV"]
        mean = harness.geometric_mean(ratios)
        parts.append(f"### {machine}\n\n{harness.table(header, rows)}\n\nGeometric mean of the ratios: {mean:.1f}")
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", required=True, help="where the .npz files are")
    parser.add_argument("--only", nargs="*", default=MACHINES, choices=MACHINES)
    parser.add_argument("--sets", nargs="*", default=None, help="data sets")
    parser.add_argument("--quick", action="store_true", help=f"at most {_QUICK} rows, one repeat")
    parser.add_argument("--rows", type=int, metavar="N", help=f"at most N rows; {_ROWS} unless told")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE", help="write all numbers here")
    options = parser.parse_args(arguments)
    harness.same_threads_for_all(options.threads)
    n = options.rows or (_QUICK if options.quick else _ROWS)
    repeats = options.repeats or (1 if options.quick else 3)
    results: dict[str, Any] = {"machine": harness.machine(PACKAGES, options.threads), "records": []}
    for machine in options.only:
        for name in options.sets or (_REGRESSION if machine in ("SVR", "NuSVR") else _CLASSES):
            X, target = load(options.data, name, n)
            results["records"].append(race(machine, name, X, target, options.tol, repeats))
            harness.save_json(results, options.json)
    print(report(results["records"]))


if __name__ == "__main__":
    main()
