"""How soon Ctrl-C is answered: every estimator on a problem without end, interrupted at random moments of its fit.

    python tests/behaviour/interrupts.py [--cases "NAME;NAME"] [--threads 1,2] [--moments 20] [--within SECONDS]

The signal comes from this process and the fit runs in a child, so that a fit which holds the interpreter's lock cannot
delay it; both read one clock (CLOCK_MONOTONIC). A fit that ends by itself is interrupted within the time it takes.
Prints Markdown: seconds from the signal to KeyboardInterrupt, and where the slowest one was.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import mercer
from mercer.kernels import Gaussian, Linear

Data = tuple[Any, Any]
RNG = np.random.default_rng(0)
# A fit that has not answered by then never will; one call of LAPACK may take minutes on a busy machine.
_PATIENCE_SECONDS = 300.0
ENDLESS: dict[str, Any] = {"tol": 1e-12, "C": 1e4}


@dataclass(frozen=True)
class Case:
    """A machine for some number of threads, and what it is fitted to; `lapack`: much of it is single calls of LAPACK
    or of a library for quadratic programs."""

    machine: Callable[[int], Any]
    data: Callable[[], Data]
    lapack: bool = False


def labels(n: int, d: int, classes: int = 3) -> Data:
    """Labels without any rule: nothing to converge to quickly."""
    return RNG.normal(size=(n, d)), RNG.integers(classes, size=n)


def numbers(n: int, d: int) -> Data:
    """Numbers without any rule."""
    return RNG.normal(size=(n, d)), RNG.normal(size=n)


def text(n: int, d: int, stored: int) -> Data:
    """CSR rows with a few of many columns, and three labels."""
    X = sparse.random_array((n, d), density=stored / d, rng=RNG, format="csr")
    return X, RNG.integers(3, size=n)


def uneven(n: int, d: int, classes: int = 3) -> Data:
    """Columns of many scales, on which coordinate descent crawls."""
    X, y = labels(n, d, classes)
    return X * 10.0 ** RNG.uniform(-2, 2, d), y


def apart(n: int, d: int) -> Data:
    """Three classes that can be separated, barely."""
    y = RNG.integers(3, size=n)
    return RNG.normal(size=(n, d)) + 0.1 * y[:, None], y


class _Path:
    """linear_path as a machine."""

    def __init__(self, n_jobs: int) -> None:
        self.n_jobs = n_jobs

    def fit(self, X: Any, y: Any) -> None:
        mercer.linear_path(X, y, Cs=[1e3, 1e4], loss="hinge", tol=1e-12, n_jobs=self.n_jobs)


SUM = Gaussian(gamma=0.05) + 0.1 * Linear()  # no recipe: NumPy computes its values
CASES: dict[str, Case] = {
    "SVC": Case(lambda n: mercer.SVC(**ENDLESS, n_jobs=n), lambda: labels(15_000, 10)),
    "SVC, 2 classes": Case(lambda n: mercer.SVC(**ENDLESS, n_jobs=n), lambda: labels(100_000, 10, 2)),
    "SVC, 12 classes": Case(lambda n: mercer.SVC(**ENDLESS, n_jobs=n), lambda: labels(12_000, 10, 12)),
    "SVC, ovr": Case(lambda n: mercer.SVC(**ENDLESS, multiclass="ovr", n_jobs=n), lambda: labels(8_000, 10, 8)),
    "SVC, linear kernel": Case(
        lambda n: mercer.SVC(kernel="linear", **ENDLESS, n_jobs=n), lambda: labels(13_000, 400, 5), lapack=True
    ),
    "SVC, sum of kernels": Case(lambda n: mercer.SVC(kernel=SUM, **ENDLESS, n_jobs=n), lambda: labels(8_000, 300)),
    "SVC, CSR": Case(lambda n: mercer.SVC(**ENDLESS, n_jobs=n), lambda: text(10_000, 20_000, 100)),
    "SVC, chunking": Case(
        lambda n: mercer.SVC(**ENDLESS, solver="chunking", cache_size=10, n_jobs=n), lambda: labels(20_000, 30)
    ),
    "SVC, qp": Case(lambda n: mercer.SVC(**ENDLESS, solver="qp", n_jobs=n), lambda: labels(4_500, 10), lapack=True),
    "SVC, hard margin": Case(lambda n: mercer.SVC(C=np.inf, tol=1e-12, n_jobs=n), lambda: apart(10_000, 30)),
    "SVC, Crammer–Singer": Case(
        lambda n: mercer.SVC(**ENDLESS, multiclass="crammer-singer", n_jobs=n), lambda: labels(8_000, 10)
    ),
    "SVC, Weston–Watkins": Case(
        lambda n: mercer.SVC(**ENDLESS, multiclass="weston-watkins", n_jobs=n), lambda: labels(8_000, 10)
    ),
    "SVC, 800 MB": Case(lambda n: mercer.SVC(n_jobs=n), lambda: labels(500_000, 200, 3)),
    "NuSVC": Case(lambda n: mercer.NuSVC(nu=0.5, tol=1e-12, n_jobs=n), lambda: labels(7_500, 10, 5)),
    "SVR": Case(lambda n: mercer.SVR(**ENDLESS, n_jobs=n), lambda: numbers(20_000, 10)),
    "NuSVR": Case(lambda n: mercer.NuSVR(**ENDLESS, n_jobs=n), lambda: numbers(20_000, 10)),
    "QuantileSVR": Case(
        lambda n: mercer.QuantileSVR([0.1, 0.5, 0.9], **ENDLESS, n_jobs=n), lambda: numbers(10_000, 10)
    ),
    "OneClassSVM": Case(lambda n: mercer.OneClassSVM(tol=1e-14, n_jobs=n), lambda: numbers(50_000, 10)),
    "SVDD": Case(lambda n: mercer.SVDD(tol=1e-14, n_jobs=n), lambda: numbers(50_000, 10)),
    "KernelMachineClassifier": Case(
        lambda n: mercer.KernelMachineClassifier(lam=1e-4, tol=1e-14, n_jobs=n), lambda: labels(4_000, 10)
    ),
    "KernelMachineRegressor, products": Case(
        lambda n: mercer.KernelMachineRegressor(lam=1e-4, tol=1e-14, cache_size=100, n_jobs=n),
        lambda: numbers(12_000, 10),
    ),
    "LinearSVC, newton": Case(
        lambda n: mercer.LinearSVC(**ENDLESS, loss="hinge", n_jobs=n), lambda: labels(20_000, 700)
    ),
    "LinearSVC, dual": Case(  # one call of the core, without end
        lambda n: mercer.LinearSVC(1e4, tol=1e-300, loss="hinge", solver="dual", bias=False, max_iter=10**9, n_jobs=n),
        lambda: uneven(20_000, 60),
    ),
    "LinearSVC, turns": Case(
        lambda n: mercer.LinearSVC(**ENDLESS, loss="hinge", n_jobs=n), lambda: labels(4_000, 1_500)
    ),
    "LinearSVC, CSR": Case(lambda n: mercer.LinearSVC(**ENDLESS, n_jobs=n), lambda: text(60_000, 50_000, 60)),
    "LinearSVC, Crammer–Singer": Case(
        lambda n: mercer.LinearSVC(**ENDLESS, multiclass="crammer_singer", bias=False, max_iter=10**9, n_jobs=n),
        lambda: uneven(20_000, 60),
    ),
    "LinearSVC, 800 MB": Case(lambda n: mercer.LinearSVC(n_jobs=n), lambda: labels(1_000_000, 100, 3)),
    "LinearSVR": Case(lambda n: mercer.LinearSVR(**ENDLESS, n_jobs=n), lambda: numbers(50_000, 500)),
    "linear_path": Case(_Path, lambda: labels(20_000, 700, 2)),
    "PegasosSVC": Case(lambda n: mercer.PegasosSVC(max_iter=10**9, n_jobs=n), lambda: labels(100_000, 50)),
    "PegasosSVC, kernel": Case(
        lambda n: mercer.PegasosSVC(kernel="rbf", max_iter=10**9, certificate=True, n_jobs=n),
        lambda: labels(20_000, 20),
    ),
    "RLSRegressor": Case(lambda n: mercer.RLSRegressor(cache_size=4_000, n_jobs=n), lambda: numbers(9_000, 20)),
    "RLSRegressor, cg": Case(
        lambda n: mercer.RLSRegressor(lam=1e-8, solver="cg", n_jobs=n), lambda: numbers(40_000, 20)
    ),
    "RLSRegressor, covariance": Case(
        lambda n: mercer.RLSRegressor(kernel="linear", n_jobs=n), lambda: numbers(60_000, 2_500)
    ),
    "RLSRegressor, lsqr": Case(
        lambda n: mercer.RLSRegressor(lam=1e-12, kernel="linear", solver="lsqr", n_jobs=n),
        lambda: (text(60_000, 50_000, 60)[0], RNG.normal(size=60_000)),
    ),
    "RLSRegressor, sum of kernels": Case(
        lambda n: mercer.RLSRegressor(kernel=SUM, cache_size=4_000, n_jobs=n), lambda: numbers(8_000, 300)
    ),
    "RLSRegressor, eigen": Case(
        lambda n: mercer.RLSRegressor(solver="eigen", n_jobs=n), lambda: numbers(3_000, 20), lapack=True
    ),
    "RLSClassifier": Case(lambda n: mercer.RLSClassifier(cache_size=4_000, n_jobs=n), lambda: labels(9_000, 20)),
    "RLSRegressorCV": Case(lambda n: mercer.RLSRegressorCV(n_jobs=n), lambda: numbers(3_000, 20), lapack=True),
    "RLSRegressorCV, linear": Case(
        lambda n: mercer.RLSRegressorCV(kernel="linear", cache_size=4_000, n_jobs=n),
        lambda: numbers(60_000, 500),
        lapack=True,
    ),
    "RLSClassifierCV": Case(lambda n: mercer.RLSClassifierCV(n_jobs=n), lambda: labels(3_000, 20), lapack=True),
    "NystromRLS": Case(
        lambda n: mercer.NystromRLS(n_landmarks=2_000, random_state=0, n_jobs=n), lambda: numbers(60_000, 20)
    ),
    "NystromRLS, iterations": Case(
        lambda n: mercer.NystromRLS(lam=1e-9, tol=1e-14, n_landmarks=2_000, random_state=0, n_jobs=n),
        lambda: numbers(200_000, 20),
    ),
    "NystromRLSClassifier": Case(
        lambda n: mercer.NystromRLSClassifier(landmarks="leverage", n_landmarks=2_000, random_state=0, n_jobs=n),
        lambda: labels(60_000, 20),
    ),
}


# --- the child -------------------------------------------------------------------------------------------------------


def child() -> None:
    """For every line that names a case and threads: fit, and say how it ended, when, and where it was."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets commands in the background ignore it
    known, given = "", (None, None)
    for line in sys.stdin:
        name, n_threads = line.rstrip("\n").split("\t")
        if name != known:
            known, given = name, CASES[name].data()
        X, y = given
        model = CASES[name].machine(int(n_threads))
        before, checked, at = dict(vars(model)), checksum(X, y), 0.0
        print("fitting", flush=True)
        try:
            model.fit(X, y)
            at = time.monotonic()
            print("finished", at, flush=True)
            time.sleep(3600)  # the signal is still to come
        except KeyboardInterrupt as error:
            if at:
                print("ready", flush=True)
            else:
                at, where = time.monotonic(), place_of(error)
                untouched = vars(model) == before and checksum(X, y) == checked
                alone = threading.enumerate() == [threading.main_thread()]
                print("interrupted", at, int(untouched), int(alone), where, flush=True)


def checksum(X: Any, y: Any) -> int:
    """Of the caller's arrays."""
    return zlib.crc32(np.ascontiguousarray(y), zlib.crc32(X.data if sparse.issparse(X) else X))


def place_of(error: BaseException) -> str:
    """The innermost lines of mercer and of all code."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f"{os.sep}mercer{os.sep}" in f.filename]
    named = [*own[-1:], *([] if own[-1:] == frames[-1:] else frames[-1:])]
    return " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.line}" for f in named).replace("|", "∣")


# --- the parent ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """One interrupted fit."""

    seconds: float
    untouched: bool  # the machine and the caller's data
    alone: bool  # no thread is left
    where: str


class Interrupted:
    """A child that fits, and is interrupted."""

    def __init__(self) -> None:
        command = [sys.executable, "-W", "ignore", __file__, "--child"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._tell, self._hear = self._process.stdin, self._process.stdout

    def __enter__(self) -> Interrupted:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def fit(self, name: str, n_threads: int, moment: float) -> Answer | float:
        """The answer to a signal at this moment of a fit, or the seconds that the fit took if it was over before."""
        self._tell.write(f"{name}\t{n_threads}\n")
        assert self._hear.readline() == "fitting\n"
        begun = time.monotonic()
        time.sleep(moment)
        sent = time.monotonic()
        self._process.send_signal(signal.SIGINT)
        if not select.select([self._hear], [], [], _PATIENCE_SECONDS)[0]:
            raise TimeoutError(f"{name}: no answer within {_PATIENCE_SECONDS} s")
        end, at, *rest = self._hear.readline().split(maxsplit=4)
        if end == "finished":
            assert self._hear.readline() == "ready\n"
            return float(at) - begun
        return Answer(float(at) - sent, rest[0] == "1", rest[1] == "1", rest[2].strip() if len(rest) > 2 else "")


def answers(name: str, n_threads: int, moments: int, within: float, seed: int = 0) -> list[Answer]:
    """The answers to signals at random moments of the first `within` seconds of a fit."""
    rng = np.random.default_rng(seed)
    found: list[Answer] = []
    with Interrupted() as interrupted:
        first = interrupted.fit(name, n_threads, within)
        longest = within if isinstance(first, Answer) else min(within, first)
        while len(found) < moments:
            answer = interrupted.fit(name, n_threads, float(rng.uniform(0.0, longest)))
            if isinstance(answer, Answer):
                found.append(answer)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", help="parts of names with ; between them; default: all")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--within", type=float, default=5.0, help="seconds")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child()
        return
    chosen = (
        list(CASES) if options.cases is None else [n for n in CASES if any(c in n for c in options.cases.split(";"))]
    )
    print("| case | threads | median s | largest s | over 0.2 s | intact | the slowest was in |")
    print("|---|---|---|---|---|---|---|")
    for name in chosen:
        for n_threads in map(int, options.threads.split(",")):
            found = answers(name, n_threads, options.moments, options.within)
            seconds = sorted(a.seconds for a in found)
            late = sum(s > 0.2 for s in seconds)
            intact = "yes" if all(a.untouched and a.alone for a in found) else "NO"
            worst = max(found, key=lambda a: a.seconds)
            remark = " (one call of LAPACK)" if CASES[name].lapack else ""
            print(
                f"| {name}{remark} | {n_threads} | {seconds[len(seconds) // 2]:.3f} | {seconds[-1]:.3f} | "
                f"{late}/{len(found)} | {intact} | {worst.where} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
