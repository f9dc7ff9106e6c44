"""The sections of report.py: what each measures with the other programs here, as plain records one after another."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import harness
import numpy as np
import peers
import svc_sections
import tasks
from report_tables import ONCE
from svc_sections import Row
from threadpoolctl import threadpool_limits

Record = dict[str, Any]


@dataclass
class Run:
    """The options of one section, and what it left out."""

    folder: str | None
    quick: bool
    threads: int
    repeats: int
    deadline: float
    peers: tuple[str, ...] | None = None
    skipped: list[str] = field(default_factory=list)

    def over(self) -> bool:
        return time.monotonic() >= self.deadline

    def svc(self, names: tuple[str, ...], patience: float) -> svc_sections.Run:
        """Return a run of compare_svc.py's sections with these competitors, as far as they are installed."""
        wanted = [name for name in names if self.peers is None or name.startswith("mercer") or name in self.peers]
        competitors, absent = peers.assemble(wanted, self.threads)
        self.skipped += [f"{peers.TITLES[name]} is missing: {why}" for name, why in absent.items()]
        return svc_sections.Run(
            folder=self.folder,
            competitors=competitors,
            repeats=self.repeats,
            threads=self.threads,
            test_limit=2000,
            patience=min(12.0, patience) if self.quick else patience,
            skipped=self.skipped,
        )


@dataclass(frozen=True)
class Section:
    """A function that yields records, its share of the time in seconds, and its threads (None: those of the run)."""

    measure: Callable[[Run], Iterator[Record]]
    seconds: float
    quick_seconds: float
    threads: int | None = None


# The sets of README's table first, those with a slow peer last.
_FITS = (
    *(Row("letter", C, form="standardised") for C in (1, 10, 100)),
    Row("spam", 10, form="standardised"),
    Row("usps", 10, form="standardised"),
    Row("covtype10k", 10, form="standardised"),
    Row("digits", 10, form="standardised"),
    Row("mnist", 1, 10_000, "standardised"),
    Row("mnist", 10, 10_000, "standardised"),
    Row("mixture", 1, 20_000),
    Row("letter", 10, form="raw"),
    Row("mnist", 1, 10_000, "raw"),
    Row("a9a", 1, form="raw"),
    Row("w8a", 1, form="raw"),
)


def fits(run: Run) -> Iterator[Record]:
    """Time Gaussian fits, and predictions by the same models."""
    harness.SLOW = ONCE  # so that all sets are measured in half an hour
    setting = run.svc(("mercer", "sklearn", "sklearnex", "libsvm", "mercer32", "sklearnex32"), patience=300.0)
    rows = svc_sections.QUICK.fit if run.quick else _FITS
    with threadpool_limits(run.threads):
        both = svc_sections.fit_and_predict(setting, replace(svc_sections.FULL, fit=rows), True, True)
        for kind, record in both:
            yield {"kind": kind, **record}


def small(run: Run) -> Iterator[Record]:
    """Time fits and predictions of small data."""
    plan = svc_sections.QUICK if run.quick else svc_sections.FULL
    with threadpool_limits(run.threads):
        yield from svc_sections.small(run.svc(("mercer", "sklearn"), patience=60.0), plan)


def growth(run: Run) -> Iterator[Record]:
    """Time fits of more and more rows."""
    plan = svc_sections.QUICK if run.quick else svc_sections.FULL
    rows = (*((name, C) for name, C in plan.growth if name == "mixture"), ("letter", 10.0))
    plan = replace(plan, growth=rows, sizes=(2000, 4000, 8000) if run.quick else (2000, 4000, 8000, 16_000, 32_000))
    with threadpool_limits(run.threads):
        yield from svc_sections.growth(run.svc(("mercer", "sklearn", "sklearnex"), patience=60.0), plan)


def growth_in_d(run: Run) -> Iterator[Record]:
    """Time fits of more and more features."""
    n, features = (2000, (5, 20, 80)) if run.quick else (8000, (5, 20, 80, 320))
    with threadpool_limits(run.threads):
        yield from svc_sections.growth_in_d(run.svc(("mercer", "sklearn", "sklearnex"), patience=60.0), n, features)


_THREADS = (
    Row("letter", 10, form="standardised"),
    Row("usps", 10, form="standardised"),
    Row("mnist", 1, 10_000, "standardised"),
    Row("mixture", 1, 100_000),
)


def threads(run: Run) -> Iterator[Record]:
    """Time mercer with one thread, two, four and so on, up to the threads of the run."""
    plan = replace(svc_sections.FULL, threads=(Row("mixture", 1, 6000),) if run.quick else _THREADS)
    yield from svc_sections.threads(run.svc(("mercer",), patience=60.0), plan)


def linear(run: Run) -> Iterator[Record]:
    """Time linear machines to the same relative duality gap."""
    import compare_linear

    warnings.simplefilter("ignore")
    targets = (1e-2,) if run.quick else (1e-2, 1e-4)
    for name in ("mixture", "covtype10k", "w8a", "a9a", "rtpolarity_tfidf", "reuters"):
        try:
            task = tasks.load(run.folder, name, 5000 if run.quick else 100_000 if name == "mixture" else None).binary()
        except FileNotFoundError:
            run.skipped.append(f"{name}: there is no {name}.npz in the folder of --data")
            continue
        for squared in (False, True):
            yield from compare_linear.measure(task, squared, targets, min(run.repeats, 2))


def least_squares(run: Run) -> Iterator[Record]:
    """Time kernel ridge regression at one λ, with and without landmarks."""
    import compare_nystrom
    import compare_rls

    folder = run.folder if run.folder and (Path(run.folder) / "kin40k_reg.npz").exists() else ""
    data = "kin40k" if folder else "generated"
    for dtype in ("float64", "float32"):
        for record in compare_rls.fit_section(folder, [1500 if run.quick else 5000], [dtype], run.repeats):
            yield {"kind": "ridge", "data": data, **record}
    if folder and not run.quick:
        for name in compare_nystrom.SETTINGS:
            yield {"kind": "landmarks", **compare_nystrom.compare(Path(folder), name, 2)}


def gpu(run: Run) -> Iterator[Record]:
    """Time fits, kernel ridge, predictions and searches on a CUDA device, beside the host."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        run.skipped.append("all of it: torch is not installed")
        return
    import torch

    if not torch.cuda.is_available():
        run.skipped.append("all of it: torch finds no CUDA device")
        return
    import gpu_section

    mnist = Path(run.folder or "") / "mnist.npz"
    if run.folder is None or not mnist.exists():
        run.skipped.append("mnist: there is no mnist.npz in the folder of --data")
    yield from gpu_section.measure(mnist if run.folder and mnist.exists() else None, run.quick, run.repeats)


def cluster(run: Run) -> Iterator[Record]:
    """Time one fit in this process, in chunks, and on Dask workers of this computer."""
    import compare_cluster
    from compare_gpu import mixture

    X, y = mixture(3000 if run.quick else 20_000)
    list(compare_cluster.measure(X[:1000], y[:1000], "kernel", "stored", [0]))  # imports, and first calls
    for engine, workers in (("stored", [0]), ("dask", [1, 2])):
        first = engine == "stored"
        for name, model, seconds in compare_cluster.measure(X, y, "kernel", engine, workers):
            if first or "core" not in name:
                yield {"n": len(X), "d": X.shape[1], **compare_cluster.record(name, model, seconds)}


def tuning(run: Run) -> Iterator[Record]:
    """Search for C and gamma; CPU seconds."""
    import compare_tuning

    cells = compare_tuning.SAMPLED[:3] if run.quick else compare_tuning.SAMPLED
    for name in ("digits",) if run.quick else ("digits", "spam", "a9a", "usps"):
        try:
            yield compare_tuning.record(Path(run.folder) if run.folder else None, name, cells)
        except FileNotFoundError:
            run.skipped.append(f"{name}: there is no {name}.npz in the folder of --data")


def calibration(run: Run) -> Iterator[Record]:
    """Time the calibration of an SVC."""
    import compare_calibration

    for name in ("digits", "mixture", "spam", "letter"):
        try:
            task = tasks.load(run.folder, name, 1000 if run.quick else 4000).dense()
        except FileNotFoundError:
            run.skipped.append(f"{name}: there is no {name}.npz in the folder of --data")
            continue
        yield compare_calibration.measure(task, run.threads, 1 if run.quick else 2)


def shapley(run: Run) -> Iterator[Record]:
    """Time exact Shapley values, after a check against their definition."""
    import compare_explain

    from mercer.runtime.optional import require

    shap = require("shap", "the comparison")
    size = (200, 10, 20, 2) if run.quick else (1000, 30, 100, 100)
    checked = compare_explain.check(shap, run.threads)
    for record in compare_explain.race(shap, compare_explain.problem(*size, run.threads), run.repeats):
        yield {"vectors": size[0], "features": size[1], "background": size[2], "definition": checked, **record}


def compression(run: Run) -> Iterator[Record]:
    """Compress machines to a tenth of their vectors."""
    import compare_compression

    for name in ("digits",) if run.quick else ("digits", "spam", "letter", "usps"):
        try:
            yield compare_compression.compare(run.folder, name, 0.1, 5000 if run.quick else 50_000)
        except FileNotFoundError:
            run.skipped.append(f"{name}: there is no {name}.npz in the folder of --data")


def tables(run: Run) -> Iterator[Record]:
    """Learn messy tables with mercer.easy and with a search by hand: scores on the same outer folds, CPU seconds."""
    import compare_tables

    warnings.simplefilter("ignore")
    for name in ("dates",) if run.quick else ("dates", "decimal commas, odd cells", "categories"):
        frame = compare_tables.MESSY[name](np.random.default_rng(0))
        spent = {"mercer.easy": 0.0, "by hand": 0.0}

        def timed(who: str, make: Any, spent: dict[str, float] = spent) -> Any:
            def call(part: Any) -> Any:
                begun = time.process_time()
                predict = make(part)
                spent[who] += time.process_time() - begun
                return predict

            return call

        makers = {"mercer.easy": compare_tables.easily, "by hand": compare_tables._hand(False)}
        found = compare_tables.judged(frame, {who: timed(who, make) for who, make in makers.items()}, 3)
        scores = {who: float(values.mean()) for who, values in found.items()}
        errors = {who: float(values.std(ddof=1) / np.sqrt(len(values))) for who, values in found.items()}
        yield {"data": name, "n": len(frame), "scores": scores, "standard errors": errors, "cpu seconds": spent}


# Seconds of the sections that run by default add up to less than report.py's total, the most important ones first.
SECTIONS = {
    "fits": Section(fits, 660.0, 60.0),
    "small": Section(small, 80.0, 15.0),
    "growth": Section(growth, 70.0, 20.0),
    "growth_in_d": Section(growth_in_d, 60.0, 15.0),
    "threads": Section(threads, 50.0, 15.0),
    "linear": Section(linear, 290.0, 20.0),
    "shapley": Section(shapley, 50.0, 20.0),
    "compression": Section(compression, 100.0, 20.0, threads=1),
    "tuning": Section(tuning, 110.0, 20.0),
    "calibration": Section(calibration, 40.0, 15.0),
    "least_squares": Section(least_squares, 80.0, 15.0),
    "cluster": Section(cluster, 40.0, 30.0),
    "tables": Section(tables, 60.0, 20.0),
    "gpu": Section(gpu, 300.0, 60.0),
}
DEFAULT = tuple(name for name in SECTIONS if name != "gpu")


def threads_of(name: str, threads: int) -> int:
    """Return the number of threads to which a section is limited."""
    return SECTIONS[name].threads or threads
