"""The memory of a fit beside its data, in a fresh process: at its peak, and in the mean over its time.

    python benchmarks/memory.py [--megabytes 100] [--dtype float64] [--threads 2] [--machines SVC,SVR]

Prints Markdown: the memory above X, in units of X, of machines that are fitted to blobs of two classes, and of a
prediction. With `--megabytes 1000` no mean should be above 1.1.

compare_svc.py asks for one fit of a competitor on data of its own (`extra_memory`): VmHWM after it minus VmHWM after
loading and a small warm-up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Features of the blobs, and rows of a block in which they are drawn.
_FEATURES, _BLOCK_ROWS = 500, 1000
# Seconds between two looks at the memory.
_SECONDS = 0.005


def extra_memory(competitor: str, threads: int, **row: Any) -> dict[str, Any]:
    """Megabytes and seconds of one fit, measured in a process of its own."""
    return _asked(competitor=competitor, threads=threads, **row)


def _asked(**order: Any) -> dict[str, Any]:
    """What a child of this script prints for an order."""
    done = subprocess.run([sys.executable, str(Path(__file__)), json.dumps(order)], capture_output=True, text=True)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _of_competitor(
    competitor: str, threads: int, folder: str | None, data: str, n: int | None, C: float
) -> dict[str, Any]:
    import harness
    import peers
    import tasks
    from truth import Setting

    task = tasks.load(folder, data, n).dense().binary()
    one = peers.assemble([competitor], threads)[0][competitor]
    setting = Setting(C, task.gamma())
    few = tasks.few_of_each_class(task.y, 100)
    one.fit(one.prepare(task.X[few], task.y[few]), setting)
    prepared = one.prepare(task.X, task.y)
    harness.forget_peak()
    before, begin = harness.peak_kilobytes(), time.perf_counter()
    model = one.fit(prepared, setting)
    seconds = time.perf_counter() - begin
    extra = (harness.peak_kilobytes() - before) * 1024 / 1e6
    allowed = getattr(model, "cache_size", None)
    return {"n": len(task.y), "d": task.X.shape[1], "megabytes": extra, "seconds": seconds, "cache_size": allowed}


# --- machines on blobs ------------------------------------------------------------------------------------------------


def _machines(threads: int) -> dict[str, Any]:
    import mercer

    return {
        "SVC": mercer.SVC(n_jobs=threads),
        "SVC, linear kernel": mercer.SVC(kernel="linear", n_jobs=threads),
        "SVR": mercer.SVR(epsilon=0.3, n_jobs=threads),
        "LinearSVC": mercer.LinearSVC(n_jobs=threads),
        "RLSRegressor, linear kernel": mercer.RLSRegressor(kernel="linear", n_jobs=threads),
        "NystromRLS": mercer.NystromRLS(n_landmarks=300, n_jobs=threads, random_state=0),
        "SVC, prediction": mercer.SVC(n_jobs=threads),
    }


def _blobs(n: int, dtype: str) -> tuple[Any, Any]:
    """Two classes that overlap a little; drawn block by block, so that nothing is as large as X."""
    import numpy as np

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = np.empty((n, _FEATURES), dtype)
    for start in range(0, n, _BLOCK_ROWS):
        some = slice(start, start + _BLOCK_ROWS)
        X[some] = rng.normal(size=X[some].shape)
        X[some, :20] += 2.0 * y[some, None]
    return X, y


def _of_machine(machine: str, threads: int, megabytes: float, dtype: str) -> dict[str, Any]:
    import harness
    import numpy as np

    model = _machines(threads)[machine]
    n = int(megabytes * 1e6 / (_FEATURES * np.dtype(dtype).itemsize))
    X, y = _blobs(n, dtype)
    model.fit(X[:3000], y[:3000]).predict(X[:100])
    act: Callable[[], Any] = lambda: model.predict(X) if "prediction" in machine else model.fit(X, y)  # noqa: E731  # one line is read more easily
    seen, over = [], threading.Event()

    def watch() -> None:
        while not over.wait(_SECONDS):
            seen.append(_resident())

    watcher = threading.Thread(target=watch)
    harness.forget_peak()
    before, begin = _resident(), time.perf_counter()
    watcher.start()
    act()
    seconds = time.perf_counter() - begin
    over.set()
    watcher.join()
    peak = harness.peak_kilobytes() * 1024
    mean = float(np.mean(seen)) if seen else float(peak)
    return {"peak": (peak - before) / X.nbytes, "mean": (mean - before) / X.nbytes, "seconds": seconds}


def _resident() -> int:
    """Bytes of this process in memory; Linux only."""
    status = Path("/proc/self/status").read_text()
    return 1024 * next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))


def _available() -> int:
    """Bytes that new processes could have; Linux only."""
    meminfo = Path("/proc/meminfo").read_text()
    return 1024 * next(int(line.split()[1]) for line in meminfo.splitlines() if line.startswith("MemAvailable"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=100.0, help="the size of X")
    parser.add_argument("--dtype", choices=("float64", "float32"), default="float64")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--machines", help="some of them, by the beginnings of their names, separated by commas")
    given = parser.parse_args()
    if _available() < 5e6 * given.megabytes:
        parser.error(f"only {_available() / 1e6:.0f} MB are free: five times X are needed; lower --megabytes")
    print(f"X: {given.megabytes:g} MB of {given.dtype}\n")
    print("| machine | mean above X, in X | peak | seconds |\n|---|---|---|---|")
    chosen = tuple(given.machines.split(",")) if given.machines else ("",)
    for name in _machines(given.threads):
        if name.startswith(chosen):
            found = _asked(machine=name, threads=given.threads, megabytes=given.megabytes, dtype=given.dtype)
            told = found.get("error") or f"{found['mean']:.2f} | {found['peak']:.2f} | {found['seconds']:.1f}"
            print(f"| {name} | {told} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1].startswith("{"):
        order = json.loads(sys.argv[1])
        print(json.dumps(_of_machine(**order) if "machine" in order else _of_competitor(**order)))
    else:
        main()
