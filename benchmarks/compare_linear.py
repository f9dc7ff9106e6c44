"""mercer's LinearSVC against LIBLINEAR and scikit-learn's LinearSVC, to the same relative duality gap.

    python benchmarks/compare_linear.py --data FOLDER                  all data sets
    python benchmarks/compare_linear.py --data FOLDER --sets a9a,w8a   some of them

Everybody gets LIBLINEAR's problem: bias regularised as one more weight, C·Σξ or C·Σξ². mercer is asked for the gap
(gap_tol), and its time is to a certified gap. The others say nothing of a dual: theirs is P(w) − D* over D*, computed
here in float64 with the best dual value known, which is never more than their true gap. Each runs at the loosest
tolerance of a ladder that reaches the target ("stuck": none does, or not within seconds). Where LIBLINEAR has a dual
and a primal method, the faster counts.

A time is what a user waits who has X as an array or CSR matrix in float64. For liblinear-official that includes
`problem(y, X)`, which copies X into LIBLINEAR's nodes, and for an array csr_matrix(X) before it. "Bare" is its
training alone, on a problem made before; the last column compares with that too.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from importlib.util import find_spec
from typing import Any

import harness
import numpy as np
import scipy.sparse as sp
import tasks

C = 1.0
BARE = "bare"
SETS = ("a9a", "w8a", "reuters", "rtpolarity_tfidf", "covtype10k", "mixture")
LADDER = tuple(10.0 ** (-k / 2) for k in range(-2, 17))
# A peer that has run so many seconds without reaching a target is not run at smaller tolerances.
PATIENCE = 2.0
PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn", "liblinear-official")


def primal(X: Any, y: np.ndarray, w: np.ndarray, b: float, squared: bool) -> float:
    """½‖w‖² + ½b² + C Σ loss, in float64."""
    slack = np.maximum(1.0 - y * (X @ w + b), 0.0)
    return float(0.5 * (w @ w + b * b) + C * (slack @ slack if squared else slack.sum()))


class Mercer:
    """mercer, with either its own choice of bias."""

    def __init__(self, bias: Any) -> None:
        self.bias = bias

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        return X, y

    def fit(self, prepared: Any, squared: bool, tol: float) -> Any:
        import mercer

        loss = "squared_hinge" if squared else "hinge"
        return mercer.LinearSVC(C, loss=loss, bias=self.bias, tol=None, gap_tol=tol).fit(*prepared)

    def weights(self, model: Any, d: int) -> tuple[np.ndarray, float]:
        return model.coef_[0], float(model.intercept_[0])


class Sklearn:
    """scikit-learn's LinearSVC, as many iterations as it likes."""

    prepare = Mercer.prepare
    weights = Mercer.weights

    def fit(self, prepared: Any, squared: bool, tol: float) -> Any:
        from sklearn.svm import LinearSVC

        loss = "squared_hinge" if squared else "hinge"
        return LinearSVC(C=C, loss=loss, tol=tol, max_iter=100_000, dual="auto", random_state=0).fit(*prepared)


class Liblinear:
    """LIBLINEAR's own interface, from X or from its own copy of X."""

    def __init__(self, method: str, bare: bool = False) -> None:
        self.method, self.bare = method, bare

    def prepare(self, X: Any, y: np.ndarray) -> Any:
        return self.convert(X, y) if self.bare else (X, y)

    def convert(self, X: Any, y: np.ndarray) -> Any:
        from liblinear.liblinearutil import problem

        return problem(y.astype(np.float64), sp.csr_matrix(X), bias=1)

    def fit(self, prepared: Any, squared: bool, tol: float) -> Any:
        from liblinear.liblinearutil import parameter, train

        kind = {"dual": 1 if squared else 3, "primal": 2}[self.method]
        converted = prepared if self.bare else self.convert(*prepared)
        return train(converted, parameter(f"-s {kind} -c {C} -e {tol!r} -B 1 -q"))

    def weights(self, model: Any, d: int) -> tuple[np.ndarray, float]:
        w = np.ctypeslib.as_array(model.w, (d + 1,)) * (1 if model.label[0] > 0 else -1)
        return w[:-1].copy(), float(w[-1])


def competitors(squared: bool) -> dict[str, Any]:
    methods = ("dual", "primal") if squared else ("dual",)
    methods = methods if find_spec("liblinear") else ()
    everybody: dict[str, Any] = {"sklearn": Sklearn()}
    for method in methods:
        everybody[f"liblinear {method}"] = Liblinear(method)
        everybody[f"{BARE} {method}"] = Liblinear(method, bare=True)
    return everybody


def measure(task: tasks.Task, squared: bool, targets: tuple[float, ...], repeats: int) -> list[dict[str, Any]]:
    """One record for each target."""
    X, y, d = task.X, task.y, task.X.shape[1]
    reference = Mercer("regularized").fit((X, y), squared, 1e-9).certificate_
    best = reference.dual
    prepared = {name: (peer, peer.prepare(X, y)) for name, peer in competitors(squared).items()}
    loosest: dict[str, int] = dict.fromkeys(prepared, 0)
    records = []
    for target in targets:
        calls: dict[str, Any] = {
            "mercer": partial(Mercer("regularized").fit, (X, y), squared, target),
            "mercer, exact bias": partial(Mercer(True).fit, (X, y), squared, target),
        }
        reached = {}
        for name, (peer, given) in prepared.items():
            for k in range(loosest[name], len(LADDER)):
                begun = time.perf_counter()
                w, b = peer.weights(peer.fit(given, squared, LADDER[k]), d)
                taken = time.perf_counter() - begun
                reached[name] = (primal(X, y, w, b, squared) - best) / best
                loosest[name] = k
                if reached[name] <= target:
                    calls[name] = partial(peer.fit, given, squared, LADDER[k])
                    break
                if taken > PATIENCE:
                    break
        timings = harness.interleave(calls, repeats)
        model = timings["mercer"].result
        own = (primal(X, y, *Mercer("regularized").weights(model, d), squared) - best) / best
        rivals = {name: timing.best for name, timing in timings.items() if not name.startswith("mercer")}
        whole = [seconds for name, seconds in rivals.items() if not name.startswith(BARE)]
        records.append(
            {
                "set": task.name,
                "loss": "squared hinge" if squared else "hinge",
                "target": target,
                "reference": reference.relative_gap,
                "seconds": {name: timing.to_dict() for name, timing in timings.items()},
                "reached": {"mercer": own, "mercer, certified": model.certificate_.relative_gap, **reached},
                "solver": model.solver_,
                "ratio": min(whole) / timings["mercer"].best if whole else float("inf"),
                "bare ratio": min(rivals.values()) / timings["mercer"].best if rivals else float("inf"),
            }
        )
    return records


def report(records: list[dict[str, Any]], facts: dict[str, Any]) -> str:
    names = [
        "mercer",
        "mercer, exact bias",
        "sklearn",
        "liblinear dual",
        "liblinear primal",
        "bare dual",
        "bare primal",
    ]
    rows = []
    for record in records:
        cells = []
        for name in names:
            timing = record["seconds"].get(name)
            gap = record["reached"].get(name)
            missed = f"stuck at {gap:.0e}" if gap is not None else ""
            cells.append(missed if timing is None else f"{1e3 * timing['best']:.1f}")
        rows.append(
            [
                record["set"],
                record["loss"],
                f"{record['target']:.0e}",
                *cells,
                f"{record['ratio']:.2f}",
                f"{record['bare ratio']:.2f}",
            ]
        )
    lines = [
        harness.table(
            ["data", "loss", "gap", *(f"{name}, ms" for name in names), "fastest rival / mercer", "bare ones too"], rows
        ),
        "",
    ]
    for target in sorted({record["target"] for record in records}, reverse=True):
        for key, what in (("ratio", "fastest rival"), ("bare ratio", "bare ones too")):
            ratios = [r[key] for r in records if r["target"] == target and np.isfinite(r[key])]
            mean = harness.geometric_mean(ratios)
            lines.append(
                f"gap {target:.0e}, {what}: geometric mean {mean:.2f}, smallest {min(ratios, default=np.nan):.2f}"
            )
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    return "\n".join([*lines, "", f"{facts['cpu']}, {facts['threads']} threads, load {facts['load']:.1f}; {versions}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--losses", default="hinge,squared")
    parser.add_argument("--targets", default="1e-2,1e-4,1e-6")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    harness.same_threads_for_all(options.threads)
    warnings.simplefilter("ignore")
    records: list[dict[str, Any]] = []
    facts = harness.machine(PACKAGES, options.threads)
    for name in options.sets.split(","):
        task = tasks.load(options.data, name, 100_000 if name == "mixture" else None).binary()
        for loss in options.losses.split(","):
            records += measure(task, loss == "squared", tuple(map(float, options.targets.split(","))), options.repeats)
            harness.save_json({"machine": facts, "records": records}, options.json)
    print(report(records, facts))


if __name__ == "__main__":
    main()
