"""Exact Shapley values against shap.KernelExplainer: wall and processor time a row, with the same background.

    python benchmarks/compare_explain.py                      30 features, 1,000 support vectors, 100 background rows
    python benchmarks/compare_explain.py --features 100 --vectors 5000 --background 50

KernelExplainer samples sets of features and asks a model's predict: mercer's SVR, and scikit-learn's of the same
problem. For few features all values are compared with the definition, the sum over all sets, so that what is timed
is known to be right. The package shap is needed: python -m pip install shap. Prints Markdown.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import harness
import numpy as np
import sklearn.svm

from mercer import SVR
from mercer.runtime.errors import MissingExtraError
from mercer.runtime.optional import require


@dataclass
class Timed:
    """A call on some rows that keeps the processor seconds of each run."""

    call: Callable[[Any], Any]
    rows: Any
    cpu: list[float] = field(default_factory=list)

    def __call__(self) -> Any:
        begin = time.process_time()
        result = self.call(self.rows)
        self.cpu.append(time.process_time() - begin)
        return result


@dataclass
class Problem:
    """Two machines of one regression problem in which every sample is a support vector, a background, and rows."""

    ours: SVR
    sklearn: Any
    background: Any
    rows: Any


def problem(n: int, d: int, background: int, rows: int, threads: int) -> Problem:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + rng.normal(size=n)
    options = {"C": 1.0, "epsilon": 0.0, "gamma": 1.0 / d}
    ours, peer = SVR(**options, n_jobs=threads).fit(X, y), sklearn.svm.SVR(**options).fit(X, y)
    return Problem(ours, peer, rng.normal(size=(background, d)), rng.normal(size=(rows, d)))


def by_all_sets(f: Callable[[Any], Any], row: Any, background: Any) -> Any:
    """Shapley values by their definition: the mean of f with the features of a set taken from the row."""
    d = len(row)
    bits = (np.arange(1 << d)[:, None] >> np.arange(d)) & 1
    worth = np.array([f(np.where(chosen == 1, row, background)).mean() for chosen in bits])
    sizes = bits.sum(axis=1)
    values = np.zeros(d)
    for j in range(d):
        without = np.flatnonzero(bits[:, j] == 0)
        share = np.array([1.0 / (d * math.comb(d - 1, size)) for size in sizes[without]])
        values[j] = share @ (worth[without | 1 << j] - worth[without])
    return values


def check(shap: Any, threads: int) -> dict[str, float]:
    """How far everybody is from the definition at eight features, where KernelExplainer takes all sets."""
    small = problem(200, 8, 10, 2, threads)
    explainer = shap.KernelExplainer(small.ours.predict, small.background)
    truth = np.array([by_all_sets(small.ours.predict, row, small.background) for row in small.rows])
    found = {
        "mercer": small.ours.explain(small.rows, small.background).values,
        "shap.KernelExplainer": explainer.shap_values(small.rows, silent=True),
    }
    return {name: float(np.abs(values - truth).max() / np.abs(truth).max()) for name, values in found.items()}


def race(shap: Any, given: Problem, repeats: int) -> list[dict[str, Any]]:
    """A record of each explainer; KernelExplainer gets one row, mercer one and all."""
    explainers = {
        "shap.KernelExplainer, mercer's predict": shap.KernelExplainer(given.ours.predict, given.background),
        "shap.KernelExplainer, scikit-learn's predict": shap.KernelExplainer(given.sklearn.predict, given.background),
    }
    calls = {
        name: Timed(lambda rows: given.ours.explain(rows, given.background).values, rows)
        for name, rows in (("mercer", given.rows), ("mercer, one row", given.rows[:1]))
    }
    for name, explainer in explainers.items():
        calls[name] = Timed(lambda rows, asked=explainer: asked.shap_values(rows, silent=True), given.rows[:1])
    timings = harness.interleave(dict(calls), repeats)
    exact = timings["mercer"].result
    wall = {name: timing.best / len(calls[name].rows) for name, timing in timings.items()}
    cpu = {name: min(call.cpu) / len(call.rows) for name, call in calls.items()}
    records = []
    for name, timing in timings.items():
        error = np.abs(timing.result - exact[: len(timing.result)]).max() / np.abs(exact).max()
        found = {"what": name, "rows": len(calls[name].rows), "wall": wall[name], "cpu": cpu[name]}
        found |= {"wall ratio": wall[name] / wall["mercer"], "cpu ratio": cpu[name] / cpu["mercer"]}
        records.append(found | {"error": float(error)})
    return records


def report(checked: dict[str, float], records: list[dict[str, Any]]) -> str:
    """Return both tables in Markdown."""
    lines = [[name, f"{difference:.0e}"] for name, difference in checked.items()]
    parts = [harness.table(["8 features", "largest difference from all sets ÷ largest value"], lines)]
    rows = []
    for one in records:
        cells = [one["what"], f"{1e3 * one['wall']:.1f}", f"{1e3 * one['cpu']:.1f}"]
        rows.append([*cells, f"{one['wall ratio']:.0f}", f"{one['cpu ratio']:.0f}", f"{one['error']:.1%}"])
    header = ["", "wall ms a row", "CPU ms a row", "wall ratio", "CPU ratio", "error ÷ largest value"]
    return "\n\n".join([*parts, harness.table(header, rows)])


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--vectors", type=int, default=1000)
    parser.add_argument("--background", type=int, default=100)
    parser.add_argument("--rows", type=int, default=4, help="rows that mercer explains at once")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        shap = require("shap", "the comparison")
    except MissingExtraError as error:
        parser.exit(1, f"{error}\n")
    harness.same_threads_for_all(options.threads)
    given = problem(options.vectors, options.features, options.background, options.rows, options.threads)
    print(report(check(shap, options.threads), race(shap, given, options.repeats)))
    facts = harness.machine(["mercer", "shap", "scikit-learn"], options.threads)
    size = f"{options.features} features, {len(given.ours.support_)} vectors, {options.background} background rows"
    print(f"\n{size}, {options.threads} threads, {facts['cpu']}, load {facts['load']:.1f}, {facts['versions']}")


if __name__ == "__main__":
    main()
