"""What a fit on rows in chunks costs: measured with some processes, and simulated for many workers.

    python benchmarks/compare_cluster.py measure --rows 50000 --workers 1 2 4
    python benchmarks/compare_cluster.py measure --rows 50000 --workers 2 --engine dask
    python benchmarks/compare_cluster.py simulate --rows 50000 --workers 100

`measure` fits and prints calls, bytes and seconds by verb. `simulate` runs every task on this machine, one after
another, and adds up what a cluster would have taken: of each step the longest task, the latency of a step and of a
task, which are measured on a Dask cluster of this machine, and the bytes through the client at a given bandwidth.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import time
from itertools import pairwise
from typing import Any

import numpy as np
from compare_gpu import mixture

import mercer
from mercer.engines.chunked.chunks import n_bytes
from mercer.engines.chunked.samples import ChunkedSamples
from mercer.engines.processes import ENGINE
from mercer.engines.processes.engine import FileRows
from mercer.engines.processes.pool import StoredChunks, work
from mercer.kernels import Gaussian

MACHINES = {
    "kernel": lambda: mercer.SVC(kernel=Gaussian(0.05), C=1.0),
    "linear": lambda: mercer.LinearSVC(),
    "ridge": lambda: mercer.RLSClassifier(kernel="linear"),
    "landmarks": lambda: mercer.NystromRLSClassifier(kernel=Gaussian(0.05), n_landmarks=1000, random_state=0),
}


def told(name: str, model: Any, seconds: float) -> None:
    report, certificate = model.fit_report_, model.certificate_
    print(f"{name}: {seconds:.1f} s, dual {certificate.dual:.9g}, gap {certificate.relative_gap:.1e}")
    for verb, row in report.items():
        out, back = row["bytes_sent"] / 1e6, row["bytes_received"] / 1e6
        print(f"  {verb:18} {row['calls']:4.0f} calls {out:9.1f} MB out {back:9.1f} MB back {row['seconds']:8.2f} s")


def measure(X: Any, y: Any, machine: str, engine: str, workers: list[int]) -> None:
    begun = time.perf_counter()
    model = MACHINES[machine]().fit(X, y)
    print(f"this machine's core: {time.perf_counter() - begun:.1f} s, dual {model.certificate_.dual:.9g}")
    for count in workers:
        if engine == "processes":
            with mercer.config_context(device=f"processes:{count}"):
                samples = ENGINE.samples(X)
                samples.chunks.map(started, [()] * len(samples.chunks.sizes))
                fitted(f"{count} processes", machine, samples, y)
            ENGINE.close()
            continue
        import dask.array as da
        import distributed

        cluster = distributed.LocalCluster(n_workers=count, threads_per_worker=1, dashboard_address=None)
        with cluster, distributed.Client(cluster) as client:
            rows = client.persist(da.from_array(X, chunks=(-(-len(X) // (2 * count)), X.shape[1])))
            distributed.wait(rows)
            fitted(f"{count} workers of Dask", machine, rows, y)


def fitted(name: str, machine: str, X: Any, y: Any) -> None:
    begun = time.perf_counter()
    model = MACHINES[machine]().fit(X, y)
    told(name, model, time.perf_counter() - begun)


def started(X: Any) -> int:
    return os.getpid()


class SimulatedChunks(StoredChunks):
    """Chunks whose tasks run here, and are timed as if each had a worker of its own."""

    latency, task, bandwidth, elapsed, computed = 0.0, 0.0, 1e9, 0.0, 0.0

    def call(self, verb: Any, which: Any, each: Any, common: Any) -> Any:
        seconds, found = [], []
        for k, own in zip(which, each, strict=True):
            begun = time.process_time()  # on one thread: what it would take with a core of its own
            found.append(work(self._sources[k], verb, own, common))
            seconds.append(time.process_time() - begun)
        # The client sends `common` once, and workers hand it on: log2 steps of it. Results come through one link.
        hops = max(1.0, np.log2(max(2, len(which))))
        moved = n_bytes(list(each)) + hops * n_bytes(common) + n_bytes(found)
        type(self).elapsed += max(seconds) + self.latency + self.task * len(which) + moved / self.bandwidth
        type(self).computed += sum(seconds)
        return found

    def hold(self, each: Any) -> Any:
        return list(each)


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
    stored = FileRows.of(X, 1)
    ends = np.linspace(0, len(X), count + 1).astype(int)
    parts = [stored.sources[0].part(int(a), int(b)) for a, b in pairwise(ends)]
    chunks = SimulatedChunks(parts, stored.scratch, ENGINE.pool())
    begun = time.process_time()
    model = MACHINES[machine]().set_params(n_jobs=1).fit(ChunkedSamples(ENGINE, chunks), y)
    total, steps = SimulatedChunks.computed, SimulatedChunks.elapsed
    here = time.process_time() - begun - total
    told(f"{count} workers, simulated", model, here + steps)
    print(f"  the client itself {here:.1f} s on one thread, workers {total:.1f} s in all, steps {steps:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "simulate"))
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--machine", choices=MACHINES, default="kernel")
    parser.add_argument("--engine", choices=("processes", "dask"), default="processes")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--bandwidth", type=float, default=1.25e9, help="bytes a second through the client")
    parser.add_argument("--latency", type=float, nargs=2, help="seconds of a step and of a task; else measured here")
    args = parser.parse_args()
    X, y = mixture(args.rows)
    with contextlib.suppress(KeyboardInterrupt):
        if args.what == "measure":
            measure(X, y, args.machine, args.engine, args.workers)
        else:
            simulate(X, y, args.machine, args.workers[0], args.bandwidth, args.latency)


if __name__ == "__main__":
    main()
