"""Two versions of mercer side by side: the same calls, in turns, each version in a process of its own.

    python benchmarks/tools/two_versions.py OLD/src NEW/src --data FOLDER [--threads 2] [--cases fit] [--json FILE]

Prints the least seconds of each version and their ratio (new ÷ old, below 1 is faster), the objectives where a fit has
one, and the geometric means by group.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where harness.py and tasks.py are

import harness
import tasks

# Repeats of a case, unless it takes so long that these seconds are over.
_REPEATS, _LONGEST = 7, 12.0


def cases(folder: str) -> dict[str, Callable[[], Callable[[], Any]]]:
    """Functions that load data and return the call to be timed; the first word of a name is its group."""
    import mercer

    def binary(name: str, n: int | None = None) -> tuple[Any, np.ndarray]:
        task = tasks.load(folder, name, n).binary()
        return task.X, task.y

    def classes(name: str, n: int | None = None) -> tuple[Any, np.ndarray]:
        task = tasks.load(folder, name, n)
        return task.X, task.y

    def values(name: str, n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        X, y = classes(name, n)
        return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12), y.astype(float)

    def small(name: str) -> tuple[np.ndarray, np.ndarray]:
        import sklearn.datasets

        X, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
        return (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0), y

    def fit(model: Any, read: Callable[..., Any], *which: Any) -> Callable[[], Callable[[], Any]]:
        def ready() -> Callable[[], Any]:
            X, y = read(*which)
            return lambda: model.fit(X, y)

        return ready

    def after(model: Any, read: Callable[..., Any], name: str, what: str) -> Callable[[], Callable[[], Any]]:
        def ready() -> Callable[[], Any]:
            X, y = read(name)
            fitted = model.fit(X, y)
            return (lambda: fitted.calibrate(X, y)) if what == "calibrate" else (lambda: fitted.predict(X))

        return ready

    def tuned(name: str, **grid: Any) -> Callable[[], Callable[[], Any]]:
        def ready() -> Callable[[], Any]:
            X, y = small(name) if name in ("iris", "breast_cancer", "digits") else binary(name)
            return lambda: mercer.tune(mercer.SVC(), X, y, cv=5, grid=grid or None)

        return ready

    def path(name: str) -> Callable[[], Callable[[], Any]]:
        def ready() -> Callable[[], Any]:
            X, y = small(name)
            return lambda: mercer.svm_path(X, y)

        return ready

    SVC, SVR, LinearSVC = mercer.SVC, mercer.SVR, mercer.LinearSVC
    return {
        "fit letter C=1": fit(SVC(), binary, "letter"),
        "fit letter C=100": fit(SVC(C=100), binary, "letter"),
        "fit letter 26 classes": fit(SVC(C=10), classes, "letter"),
        "fit spam C=1": fit(SVC(), binary, "spam"),
        "fit spam C=100": fit(SVC(C=100), binary, "spam"),
        "fit a9a": fit(SVC(), binary, "a9a"),
        "fit w8a": fit(SVC(), binary, "w8a"),
        "fit covtype10k": fit(SVC(C=10), binary, "covtype10k"),
        "fit covtype10k 7 classes": fit(SVC(C=10), classes, "covtype10k"),
        "fit usps": fit(SVC(C=10), binary, "usps"),
        "fit usps 10 classes": fit(SVC(C=10), classes, "usps"),
        "fit mnist 10,000": fit(SVC(C=10), binary, "mnist", 10_000),
        "fit reuters": fit(SVC(C=10), binary, "reuters"),
        "fit mixture 30,000": fit(SVC(), binary, "mixture", 30_000),
        "fit svr cadata": fit(SVR(C=10), values, "cadata_reg"),
        "fit svr abalone": fit(SVR(C=10), values, "abalone_reg"),
        "fit nu-svc spam": fit(mercer.NuSVC(nu=0.2), binary, "spam"),
        "fit one-class usps": fit(mercer.OneClassSVM(nu=0.1), binary, "usps"),
        "fit linear a9a": fit(LinearSVC(), binary, "a9a"),
        "fit linear reuters": fit(LinearSVC(), binary, "reuters"),
        "fit linear covtype10k": fit(LinearSVC(), binary, "covtype10k"),
        "fit rls bike 3,000": fit(mercer.RLSRegressor(lam=1e-3), values, "bike_reg", 3_000),
        "fit rls cv abalone": fit(mercer.RLSRegressorCV(), values, "abalone_reg"),
        "fit nystrom cadata": fit(mercer.NystromRLS(n_landmarks=500), values, "cadata_reg"),
        "small iris": fit(SVC(), small, "iris"),
        "small linear iris": fit(LinearSVC(), small, "iris"),
        "small rls diabetes": fit(mercer.RLSRegressor(), small, "diabetes"),
        "small cancer": fit(SVC(), small, "breast_cancer"),
        "small digits": fit(SVC(C=10), small, "digits"),
        "small svr diabetes": fit(SVR(C=100), small, "diabetes"),
        "tune cancer": tuned("breast_cancer"),
        "tune spam": tuned("spam", C=[0.1, 1.0, 10.0, 100.0], gamma=[0.003, 0.01, 0.03]),
        "calibrate spam": after(SVC(), binary, "spam", "calibrate"),
        "path cancer": path("breast_cancer"),
        "predict usps": after(SVC(C=10), classes, "usps", "predict"),
    }


def serve(folder: str) -> None:
    """Read a case's name from each line, do it, and print its seconds and its objective."""
    warnings.simplefilter("ignore")
    known = cases(folder)
    print(json.dumps(list(known)), flush=True)
    ready: tuple[str, Callable[[], Any]] = ("", lambda: None)
    for line in sys.stdin:
        name = line.strip()
        try:
            if ready[0] != name:
                ready = name, known[name]()
                ready[1]()
            begin = time.perf_counter()
            result = ready[1]()
            seconds = time.perf_counter() - begin
            proof = getattr(result, "certificate_", None)
            print(json.dumps({"seconds": seconds, "dual": float(getattr(proof, "dual", np.nan))}), flush=True)
        except Exception as error:
            print(json.dumps({"error": f"{type(error).__name__}: {error}"[:200]}), flush=True)


def _start(source: str, folder: str, threads: int, first: int) -> subprocess.Popen[str]:
    """A process of `threads` processors, the `first` and those after it."""
    limit = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MERCER_NUM_THREADS"), str(threads)
    )
    environment = {**os.environ, **limit, "PYTHONPATH": os.pathsep.join((source, str(Path(__file__).parent)))}
    command = [sys.executable, __file__, "--serve", "--data", folder]
    pinned = set(sorted(os.sched_getaffinity(0))[first : first + threads])
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    os.sched_setaffinity(process.pid, pinned)
    return process


def _ask(process: subprocess.Popen[str], name: str) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(name + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline() or '{"error": "the process died"}')


def compare(sources: list[str], folder: str, threads: int, wanted: str, part: tuple[int, int], out: str | None) -> None:
    """Both versions in turns, case by case."""
    sides = [_start(source, folder, threads, part[0] * threads) for source in sources]
    names = [json.loads(side.stdout.readline()) for side in sides if side.stdout is not None][-1]
    rows = []
    for name in [name for name in names if wanted in name][part[0] :: part[1]]:
        seconds: list[list[float]] = [[], []]
        duals = [float("nan")] * 2
        wrong = ""
        begin = time.perf_counter()
        for round_ in range(_REPEATS):
            if round_ and time.perf_counter() - begin > _LONGEST:
                break
            for at, side in enumerate(sides):
                answer = _ask(side, name)
                wrong = wrong or answer.get("error", "")
                seconds[at].append(answer.get("seconds", float("nan")))
                duals[at] = answer.get("dual", float("nan"))
        best = [min(some) for some in seconds]
        rows.append({"case": name, "seconds": best, "ratio": best[1] / best[0], "duals": duals, "error": wrong})
        print(
            f"{name:28} {best[0] * 1e3:10.2f} ms {best[1] * 1e3:10.2f} ms {best[1] / best[0]:6.2f}"
            f"  {duals[0]:.8g} {duals[1]:.8g} {wrong}",
            flush=True,
        )
    for group in dict.fromkeys(row["case"].split()[0] for row in rows):
        ratios = [row["ratio"] for row in rows if row["case"].startswith(group) and not row["error"]]
        print(f"{group}: {harness.geometric_mean(ratios):.3f} of {len(ratios)}")
    if out:
        Path(out).write_text(json.dumps({"machine": harness.machine(("numpy",), threads), "rows": rows}, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sources", nargs="*", metavar="SRC", help="the folders that hold mercer/, old and new")
    parser.add_argument("--data", required=True, metavar="FOLDER")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--cases", default="", help="a part of the names of cases, such as fit or small")
    parser.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), help="I K: the cases I, I+K, I+2K, …, on processors of their own"
    )
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        serve(arguments.data)
    else:
        folder = arguments.data
        compare(arguments.sources, folder, arguments.threads, arguments.cases, tuple(arguments.part), arguments.json)


if __name__ == "__main__":
    main()
