"""What a fit on rows in chunks costs: measured in this process or with Dask, and simulated for many workers.

    python benchmarks/compare_cluster.py measure --rows 50000
    python benchmarks/compare_cluster.py measure --rows 50000 --workers 1 2 4 --engine dask
    python benchmarks/compare_cluster.py large --rows 1000000 --noise 0.01 --seconds 600
    python benchmarks/compare_cluster.py large --rows 10000000 --workers 2 --engine dask --machine landmarks
    python benchmarks/compare_cluster.py simulate --rows 50000 --workers 100

`measure` fits and prints calls, bytes and seconds by verb. `large` does so with rows that are never in memory as a
whole: a memory map, or chunks that two workers of 1.5 GB each have made; and prints the most memory of each process
that is its own, which does not count pages of the file. `simulate` runs every task on this machine, one after another,
and adds up what a cluster would have taken: of each step the longest task, the latency of a step and of a task, which
are measured on a Dask cluster of this machine, and the bytes through the client at a given bandwidth.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from compare_gpu import mixture

import mercer
from mercer.kernels import Gaussian
from mercer.places.chunked.chunks import n_bytes
from mercer.places.chunked.samples import ChunkedSamples
from mercer.places.chunked.stored import ENGINE
from mercer.places.chunked.stored.engine import Resident, StoredChunks
from mercer.places.chunked.verbs import on_one_thread

MACHINES = {
    "kernel": lambda: mercer.SVC(kernel=Gaussian(0.05), C=1.0),
    "linear": lambda: mercer.LinearSVC(),
    "ridge": lambda: mercer.RLSClassifier(kernel="linear"),
    "landmarks": lambda: mercer.NystromRLSClassifier(kernel=Gaussian(0.05), n_landmarks=1000, random_state=0),
}


def told(name: str, model: Any, seconds: float) -> None:
    """Print what a fit took, verb by verb."""
    row = record(name, model, seconds)
    vectors = "" if row["vectors"] is None else f", {row['vectors']} vectors"
    print(f"{name}: {seconds:.1f} s, dual {row['dual']:.9g}, gap {row['relative gap']:.1e}{vectors}")
    for verb, part in row["report"].items():
        out, back = part["bytes_sent"] / 1e6, part["bytes_received"] / 1e6
        print(f"  {verb:18} {part['calls']:4.0f} calls {out:9.1f} MB out {back:9.1f} MB back {part['seconds']:8.2f} s")


def record(name: str, model: Any, seconds: float) -> dict[str, Any]:
    """Return what a fit took as plain values."""
    vectors = int(np.sum(model.n_support_)) if hasattr(model, "n_support_") else None
    found: dict[str, Any] = {"what": name, "seconds": seconds, "vectors": vectors}
    found |= {"dual": model.certificate_.dual, "relative gap": model.certificate_.relative_gap}
    return found | {"report": dict(getattr(model, "fit_report_", {}))}


def measure(X: Any, y: Any, machine: str, engine: str, workers: list[int]) -> Iterator[tuple[str, Any, float]]:
    """Yield what was fitted, the machine and its seconds: by the core, and then in chunks or on Dask."""
    begun = time.perf_counter()
    model = MACHINES[machine]().fit(X, y)
    yield "this computer's core", model, time.perf_counter() - begun
    if engine == "stored":
        yield fitted("in chunks", machine, mercer.stored_rows(X).X, y)
        return
    for count in workers:
        import dask.array as da
        import distributed

        cluster = distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            rows = client.persist(da.from_array(X, chunks=(-(-len(X) // (2 * count)), X.shape[1])))
            distributed.wait(rows)
            yield fitted(f"{count} workers of Dask", machine, rows, y)


def fitted(name: str, machine: str, X: Any, y: Any) -> tuple[str, Any, float]:
    begun = time.perf_counter()
    model = MACHINES[machine]().fit(X, y)
    return name, model, time.perf_counter() - begun


def large(rows: int, machine: str, engine: str, count: int, noise: float, seconds: float) -> None:
    sizes = [min(_STEP, rows - begin) for begin in range(0, rows, _STEP)]
    parts = [(n, 20, 40, noise, k) for k, n in enumerate(sizes)]
    y = np.concatenate([part(*given)[1] for given in parts])
    model = MACHINES[machine]().set_params(**{"max_time": seconds} if seconds < np.inf else {})
    with contextlib.ExitStack() as stack:
        if engine == "stored":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            X = np.lib.format.open_memmap(f"{folder}/X.npy", "w+", np.float32, (rows, 20))
            for k, given in enumerate(parts):
                X[k * _STEP : (k + 1) * _STEP] = part(*given)[0]
            del X
            X = mercer.stored_rows(f"{folder}/X.npy").X
        else:
            import dask
            import dask.array as da
            import distributed

            cluster = distributed.LocalCluster(
                n_workers=count, threads_per_worker=1, dashboard_address=None, memory_limit="1.5GB"
            )
            client = stack.enter_context(distributed.Client(stack.enter_context(cluster)))
            made = [dask.delayed(rows_of)(*given) for given in parts]
            X = da.concatenate([da.from_delayed(one, (n, 20), np.float32) for one, n in zip(made, sizes, strict=True)])
            X = client.persist(X)
            distributed.wait(X)
        with peaks() as peak:
            begun = time.perf_counter()
            model.fit(X, y)
        told(
            f"{rows} rows" + (f" on {count} workers of Dask" if engine == "dask" else " in chunks"),
            model,
            time.perf_counter() - begun,
        )
        print(f"  {model.stop_reason_}; largest memory {', '.join(f'{size / 1e6:.0f}' for size in peak.values())} MB")


_STEP = 250_000


def part(n: int, d: int, centres: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows and labels of one mixture of Gaussians, whichever they are."""
    middle = 1.5 * np.random.default_rng(0).normal(size=(centres, d))
    rng = np.random.default_rng([1, seed])
    which = rng.integers(0, centres, size=n)
    X, spread = middle[which] + rng.normal(size=(n, d)), np.sqrt(1 + middle.var(axis=0))
    y = (which % 2 == 0) ^ (rng.random(n) < noise)
    return ((X - middle.mean(axis=0)) / spread).astype(np.float32), y.astype(int)


def rows_of(*given: Any) -> np.ndarray:
    return part(*given)[0]


@contextlib.contextmanager
def peaks() -> Iterator[dict[int, int]]:
    """The most memory that this process and each of those that it started had of their own; on Linux."""
    import psutil

    found: dict[int, int] = {}
    over = threading.Event()

    def look() -> None:
        own = psutil.Process()
        while not over.wait(0.5):
            for process in [own, *own.children(recursive=True)]:
                with contextlib.suppress(psutil.Error, OSError):  # it may have ended
                    own_kilobytes = re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())
                    found[process.pid] = max(found.get(process.pid, 0), 1024 * int(own_kilobytes[1]))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


class SimulatedChunks(StoredChunks):
    """Chunks whose tasks run here, and are timed as if each had a worker of its own."""

    latency, task, bandwidth, elapsed, computed = 0.0, 0.0, 1e9, 0.0, 0.0

    def call(self, verb: Any, which: Any, each: Any, common: Any) -> Any:
        seconds, found = [], []
        for k, own in zip(which, each, strict=True):
            begun = time.process_time()  # on one thread: what it would take with a core of its own
            found.append(on_one_thread(verb, self._sources[k].load(), *own, *common))
            seconds.append(time.process_time() - begun)
        # The client sends `common` once, and workers hand it on: log2 steps of it. Results come through one link.
        hops = max(1.0, np.log2(max(2, len(which))))
        moved = n_bytes(list(each)) + hops * n_bytes(common) + n_bytes(found)
        type(self).elapsed += max(seconds) + self.latency + self.task * len(which) + moved / self.bandwidth
        type(self).computed += sum(seconds)
        return found

    def threads(self, n_threads: int) -> int:
        return 1


def latencies() -> tuple[float, float]:
    """Seconds of a step with one empty task on a Dask cluster of this machine, and of every further task."""
    import distributed

    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client:

        def step(count: int) -> float:
            begun = time.perf_counter()
            client.gather([client.submit(len, "", key=f"{begun}-{k}") for k in range(count)])
            return time.perf_counter() - begun

        step(10)
        one, many = (float(np.median([step(count) for _ in range(20)])) for count in (1, 101))
    return one, max(0.0, (many - one) / 100)


def simulate(X: Any, y: Any, machine: str, count: int, bandwidth: float, latency: list[float] | None) -> None:
    SimulatedChunks.latency, SimulatedChunks.task = latency or latencies()
    SimulatedChunks.bandwidth = bandwidth
    step, task = 1e3 * SimulatedChunks.latency, 1e3 * SimulatedChunks.task
    print(f"{step:.1f} ms a step, {task:.2f} ms a task, {bandwidth / 1e9:g} GB/s")
    ends = np.linspace(0, len(X), count + 1).astype(int)
    chunks = SimulatedChunks([Resident(X[a:b]) for a, b in pairwise(ends)])
    begun = time.process_time()
    model = MACHINES[machine]().set_params(n_jobs=1).fit(ChunkedSamples(ENGINE, chunks), y)
    total, steps = SimulatedChunks.computed, SimulatedChunks.elapsed
    here = time.process_time() - begun - total
    told(f"{count} workers, simulated", model, here + steps)
    print(f"  the client itself {here:.1f} s on one thread, workers {total:.1f} s in all, steps {steps:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "large", "simulate"))
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--machine", choices=MACHINES, default="kernel")
    parser.add_argument("--engine", choices=("stored", "dask"), default="stored")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes a second through the client")
    parser.add_argument("--latency", type=float, nargs=2, help="seconds of a step and of a task; else measured here")
    parser.add_argument("--noise", type=float, default=0.05, help="share of labels that are wrong, of large")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="max_time, of large")
    args = parser.parse_args()
    if args.what == "large":
        large(args.rows, args.machine, args.engine, args.workers[0], args.noise, args.seconds)
        return
    X, y = mixture(args.rows)
    with contextlib.suppress(KeyboardInterrupt):
        if args.what == "measure":
            for name, model, seconds in measure(X, y, args.machine, args.engine, args.workers):
                told(name, model, seconds)
        else:
            simulate(X, y, args.machine, args.workers[0], args.bandwidth, args.latency)


if __name__ == "__main__":
    main()
