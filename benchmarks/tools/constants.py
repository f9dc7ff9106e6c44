"""What every tuned number is worth: each is doubled and halved, and the change in time and in work is printed.

    python benchmarks/tools/constants.py list                 every number, its value and what stands beside it
    python benchmarks/tools/constants.py measure [--core]     a table: tasks that read it, time and work at 2 and at ½

A number here is a constant of a module of mercer, or with `--core` a `constexpr` of `src/core`, which is built again
with constants that are read from the environment. One that sizes an array or a template stays as it is and is listed
so. A run is a process of one thread that does the tasks that read the number; its processor time counts, the least of
`--repeats`, and the values of a number take turns. Runs of unchanged numbers show how much of a change is chance.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))  # where harness.py and tasks.py are

import harness
import tasks
from tuned_numbers import ROOT, Number, build_core, core_numbers, python_numbers, variable

_FACTORS = (2.0, 0.5)
# Seconds of a task that is long enough to be timed and short enough to be repeated.
_TIMELY = 0.05


# --- the tasks ------------------------------------------------------------------------------------------------------


def work() -> dict[str, Callable[[], Any]]:
    """What users do, each in a tenth of a second or so: fits of every family, and what is asked of a fitted machine."""
    import scipy.sparse as sp
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris

    import mercer
    from mercer import kernels

    def scaled(load: Callable[..., Any], n: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        X, y = load(return_X_y=True)
        deviation = X.std(axis=0)
        return ((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))[:n], y[:n]

    iris, cancer, digits, diabetes = (
        cache(partial(scaled, load)) for load in (load_iris, load_breast_cancer, load_digits, load_diabetes)
    )

    @cache
    def mixture(n: int) -> tuple[np.ndarray, np.ndarray]:
        task = tasks.mixture(n, n_test=0)
        return task.X, task.y

    def values(n: int) -> tuple[np.ndarray, np.ndarray]:
        X, y = mixture(n)
        return X, y.astype(float)

    @cache
    def words() -> tuple[Any, np.ndarray]:
        """Rows of few entries, as texts have."""
        X = sp.random(4_000, 5_000, density=0.004, format="csr", random_state=0)
        return X, np.where(X @ np.sin(np.arange(5_000)) > 0, 1.0, -1.0)

    def separable() -> tuple[np.ndarray, np.ndarray]:
        X = cancer()[0]
        side = X @ np.linspace(-1, 1, X.shape[1])
        return X[np.abs(side) > 1.0], side[np.abs(side) > 1.0] > 0

    fitted = cache(lambda: mercer.SVC(C=3).fit(*cancer()))
    flowers = cache(lambda: mercer.SVC(C=3).fit(*iris()))
    path_C = np.logspace(-3, 3, 7)
    return {
        "svc iris": lambda: mercer.SVC().fit(*iris()),
        "svc cancer": lambda: mercer.SVC(C=100).fit(*cancer()),
        "svc digits": lambda: mercer.SVC(C=10).fit(*digits()),
        "svc mixture": lambda: mercer.SVC().fit(*mixture(8_000)),
        "svc large C": lambda: mercer.SVC(C=1000).fit(*mixture(4_000)),
        "svc float32": lambda: mercer.SVC(C=10).fit(mixture(4_000)[0].astype(np.float32), mixture(4_000)[1]),
        "svc words": lambda: mercer.SVC().fit(*words()),
        "svc laplacian": lambda: mercer.SVC(kernel=kernels.Laplacian(gamma=0.1)).fit(*mixture(1_200)),
        "svc product": lambda: mercer.SVC(kernel=kernels.Gaussian(gamma=0.1) * kernels.Linear()).fit(*mixture(1_200)),
        "svc 2-norm": lambda: mercer.SVC(slack="l2").fit(*mixture(1_200)),
        "svc joint": lambda: mercer.SVC(multiclass="crammer-singer").fit(digits()[0][:400], digits()[1][:400]),
        "svc separable": lambda: mercer.SVC(C=np.inf, kernel="linear").fit(*separable()),
        "nu-svc": lambda: mercer.NuSVC(nu=0.1).fit(*cancer()),
        "svr": lambda: mercer.SVR(C=100, epsilon=10).fit(*diabetes()),
        "nu-svr": lambda: mercer.NuSVR(C=100).fit(*diabetes()),
        "quantile": lambda: mercer.QuantileSVR(C=100).fit(*diabetes()),
        "one-class": lambda: mercer.OneClassSVM(nu=0.1).fit(mixture(4_000)[0]),
        "svdd": lambda: mercer.SVDD(nu=0.1).fit(cancer()[0]),
        "linear cancer": lambda: mercer.LinearSVC().fit(*cancer()),
        "linear mixture": lambda: mercer.LinearSVC(C=10).fit(*mixture(8_000)),
        "linear words": lambda: mercer.LinearSVC().fit(*words()),
        "linear digits": lambda: mercer.LinearSVC(multiclass="crammer_singer", bias=False).fit(*digits()),
        "linear svr": lambda: mercer.LinearSVR().fit(*diabetes()),
        "linear path": lambda: mercer.linear_path(cancer()[0], cancer()[1], Cs=path_C),
        "rls": lambda: mercer.RLSRegressor().fit(*diabetes()),
        "rls 2000": lambda: mercer.RLSRegressor(lam=1e-3).fit(*values(2_000)),
        "rls gradients": lambda: mercer.RLSRegressor(lam=1e-2, solver="cg").fit(*values(1_200)),
        "rls linear": lambda: mercer.RLSRegressor(kernel="linear").fit(*values(8_000)),
        "rls words": lambda: mercer.RLSRegressor(kernel="linear").fit(*words()),
        "rls cv": lambda: mercer.RLSRegressorCV().fit(*diabetes()),
        "nystrom": lambda: mercer.NystromRLS(n_landmarks=200).fit(*values(8_000)),
        "pegasos": lambda: mercer.PegasosSVC(random_state=0).fit(*cancer()),
        "logistic": lambda: mercer.KernelMachineClassifier(loss="logistic").fit(*cancer()),
        "tune": lambda: mercer.tune(mercer.SVC(), *cancer(), cv=3),
        "calibrate": lambda: fitted().calibrate(*cancer()),
        "svm path": lambda: mercer.svm_path(*cancer()),
        "leave one out": lambda: mercer.leave_one_out(mercer.SVC(C=3), *cancer()),
        "compress": lambda: mercer.compress(flowers(), 10, X=iris()[0], y=iris()[1]),
        "explain": lambda: fitted().explain(cancer()[0][:20], background=cancer()[0][:50]),
        "predict": lambda: fitted().predict(np.tile(cancer()[0], (20, 1))),
        "kernel pca": lambda: mercer.KernelPCA(n_components=5, kernel="rbf").fit(mixture(800)[0]),
        "k-means": lambda: mercer.KernelKMeans(n_clusters=4, random_state=0).fit(mixture(1_200)[0]),
        "spectral": lambda: mercer.SpectralClustering(n_clusters=4, random_state=0).fit(mixture(600)[0]),
        "mmd": lambda: mercer.mmd_test(cancer()[0][cancer()[1] == 0], cancer()[0][cancer()[1] == 1], random_state=0),
    }


def run(key: str, factors: list[float], names: list[str], repeats: int, readers: bool) -> dict[str, Any]:
    """Each task under each factor of the number `key`, in turns: seconds, steps, kernel values.

    With `readers` also the numbers that each task reads.
    """
    import warnings

    from mercer.places.host.kernel_matrix import KernelMatrix

    warnings.simplefilter("ignore")
    grams: list[Any] = []
    made = KernelMatrix.__init__

    def remember(self: Any, *arguments: Any, **named: Any) -> None:
        made(self, *arguments, **named)
        grams.append(self)

    KernelMatrix.__init__ = remember  # type: ignore[method-assign]  # watched for this process only
    known = holders()
    places = [(importlib.import_module(module), name) for (module, name), held in known.items() if held == key]
    usual = [getattr(module, name) for module, name in places]
    jobs = work()
    results: dict[str, Any] = {}
    for job in names or list(jobs):
        try:
            jobs[job]()  # what is imported or made once is not timed
            if readers:
                results[job] = {"reads": sorted(_read_by(jobs[job], known))}
        except Exception as error:
            results[job] = {"error": f"{type(error).__name__}: {error}"}
            continue
        found: dict[str, Any] = results.setdefault(job, {})
        for _ in range(repeats):
            for factor in factors:
                for (module, name), value in zip(places, usual, strict=True):
                    setattr(module, name, _times(value, factor))
                grams.clear()
                try:
                    begin = time.process_time()
                    model = jobs[job]()
                    seconds = time.process_time() - begin
                except Exception as error:
                    found[str(factor)] = {"error": f"{type(error).__name__}: {error}"}
                    continue
                earlier = found.get(str(factor), {}).get("seconds", np.inf)
                steps = int(np.sum(getattr(model, "n_iter_", 0)))
                values = int(sum(gram.evaluations for gram in grams))
                found[str(factor)] = {"seconds": min(seconds, earlier), "steps": steps, "values": values}
    return results


def module_of(file: str) -> str:
    return file.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def holders() -> dict[tuple[str, str], str]:
    """The number's key for every module that has it, its own or one that imports it, and the name it has there."""
    own = {(module_of(number.file), number.name): number.key for number in python_numbers()}
    found = dict(own)
    for path in (ROOT / "src/mercer").rglob("*.py"):
        here = module_of(str(path.relative_to(ROOT)))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                for one in node.names:
                    if (node.module, one.name) in own:
                        found[here, one.asname or one.name] = own[node.module, one.name]
    return found


def _read_by(job: Callable[[], Any], known: dict[tuple[str, str], str]) -> set[str]:
    """Keys of the numbers that functions name which run during `job`."""
    codes: set[tuple[str, Any]] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            codes.add((frame.f_globals.get("__name__", ""), frame.f_code))

    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
    return {
        known[module, name]
        for module, code in codes
        for name in code.co_names
        if (module, name) in known and code.co_name != "<module>"
    }


# --- the comparison -------------------------------------------------------------------------------------------------


def _times(value: Any, factor: float) -> Any:
    if factor == 1.0:
        return value
    if isinstance(value, tuple):
        return tuple(_times(part, factor) for part in value)
    return max(1, round(value * factor)) if isinstance(value, int) and value > 0 else type(value)(value * factor)


def _process(
    source: Path, key: str, factors: list[float], names: list[str], repeats: int, readers: bool = False
) -> dict[str, Any]:
    """`run` in a process of its own; the core reads its numbers when a process starts, so each factor has one."""
    if key and ".py:" not in key and len(factors) > 1:
        parts = [_process(source, key, [factor], names, repeats) for factor in factors]
        return {name: {k: v for part in parts for k, v in part.get(name, part.get("", {})).items()} for name in names}
    one_thread = dict.fromkeys(
        ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MERCER_NUM_THREADS"), "1"
    )
    path = os.pathsep.join((str(source), str(Path(__file__).parent)))
    environment = {**os.environ, **one_thread, "PYTHONPATH": path, variable(key): str(factors[0])}
    order = {"key": key, "factors": factors, "names": names, "repeats": repeats, "readers": readers}
    command = [sys.executable, __file__, "run", json.dumps(order)]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return {"": {"error": "took more than 300 s"}}
    if done.returncode:
        return {"": {"error": (done.stderr.strip().splitlines() or [f"exit {done.returncode}"])[-1]}}
    return json.loads(done.stdout.splitlines()[-1])


def measure(core: bool, repeats: int, processes: int, pattern: str, most: int, out: str | None) -> None:
    """Print, for every number that matches, what doubling and halving it does."""
    with tempfile.TemporaryDirectory() as folder:
        source, fixed = build_core(Path(folder)) if core else (ROOT / "src", set())
        numbers = [
            number for number in (core_numbers() if core else python_numbers()) if re.search(pattern, number.key)
        ]
        first = _process(source, "", [1.0], [], 1, readers=True)
        for name, result in first.items():
            if "error" in result:
                print(f"{name}: left out, {result['error']}", file=sys.stderr)
        every = [name for name, result in first.items() if "error" not in result]
        timely = sorted(every, key=lambda name: abs(np.log(first[name]["1.0"]["seconds"] / _TIMELY)))
        touched = {
            number.key: [name for name in timely if core or number.key in first[name]["reads"]][:most]
            for number in numbers
        }
        rows = []
        with ThreadPoolExecutor(processes) as pool:
            chance = [pool.submit(_process, source, "", [1.0, 1.0001], timely[:most], repeats) for _ in range(5)]
            runs = {
                key: pool.submit(_process, source, key, [1.0, *_FACTORS], names, repeats)
                for key, names in touched.items()
                if names and key not in fixed
            }
            for number in numbers:
                rows.append(_row(number, fixed, touched[number.key], runs))
                print(rows[-1]["line"], flush=True)
                if out:
                    Path(out).write_text(json.dumps({"machine": harness.machine(("numpy",), 1), "rows": rows}))
        ratios = [one["1.0001"]["seconds"] / one["1.0"]["seconds"] for run_ in chance for one in run_.result().values()]
    low, high = np.quantile(ratios, (0.05, 0.95))
    print(f"{len(rows)} numbers; of unchanged runs the ratios of one task are {low:.2f} to {high:.2f} in nine of ten")


def _row(number: Number, fixed: set[str], names: list[str], runs: dict[str, Any]) -> dict[str, Any]:
    """One number's line, and the ratios behind it."""
    row: dict[str, Any] = asdict(number)
    said = f"{number.key} = {number.value}"
    if number.key in fixed:
        return {**row, "line": f"{said}: sizes an array or a template"}
    if not names:
        return {**row, "line": f"{said}: no task reads it"}
    result = runs[number.key].result()
    if "" in result:
        return {**row, "line": f"{said}: {result['']['error']}"}
    words = []
    for factor in map(str, _FACTORS):
        good = [name for name in names if "seconds" in result[name].get(factor, {})]
        wrong = [
            f"{name} {result[name][factor]['error'][:60]}"
            for name in names
            if factor in result[name] and name not in good
        ]
        time_ratios = {name: result[name][factor]["seconds"] / result[name]["1.0"]["seconds"] for name in good}
        work_ratios = {
            name: max(
                (result[name][factor][what] + 1) / (result[name]["1.0"][what] + 1) for what in ("steps", "values")
            )
            for name in good
        }
        row[f"time {factor}"], row[f"work {factor}"], row[f"errors {factor}"] = time_ratios, work_ratios, wrong
        worst = max(time_ratios, key=lambda name: time_ratios[name], default="")
        words.append(
            f"×{float(factor):g}: time {harness.geometric_mean(time_ratios.values()):.2f}"
            + (f" (most {time_ratios[worst]:.2f}, {worst})" if worst else "")
            + f", work {harness.geometric_mean(work_ratios.values()):.2f}"
            + (f", fails: {'; '.join(wrong)}" if wrong else "")
        )
    return {**row, "line": f"{said}: {len(names)} tasks, " + ", ".join(words)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("list", "measure", "run"))
    parser.add_argument("order", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--core", action="store_true", help="constants of the C++ core, not those of Python")
    parser.add_argument("--only", default="", metavar="PATTERN", help="numbers whose file:name matches")
    parser.add_argument("--tasks", type=int, default=8, help="tasks per number, those nearest to 0.05 s; 8 unless told")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processes", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--out", help="a file for all ratios, as JSON")
    arguments = parser.parse_args()
    if arguments.what == "run":
        order = json.loads(arguments.order)
        print(json.dumps(run(**order)))
    elif arguments.what == "measure":
        measure(arguments.core, arguments.repeats, arguments.processes, arguments.only, arguments.tasks, arguments.out)
    else:
        found = [number for number in (*python_numbers(), *core_numbers()) if re.search(arguments.only, number.key)]
        for number in found:
            print(f"{number.file}:{number.line} {number.name} = {number.value}  {number.comment[:100]}")
        python = sum(number.file.endswith(".py") for number in found)
        print(f"{python} numbers of Python, {len(found) - python} of the core")


if __name__ == "__main__":
    main()
