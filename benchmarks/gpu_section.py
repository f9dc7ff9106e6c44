"""What the pages state of a GPU: fits, kernel ridge, predictions, searches and memory, beside the host's cores.

Samples are on the device before the clock starts, in float32; times are the minimum of repeats after a fit that is not
counted. Kernel ridge and searches are timed once, after a smaller fit. "One pass" is the time for the kernel
values between all rows and the support vectors in float32, which every solver computes at least once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from compare_gpu import mixture, one_pass, timed
from compare_tuning import torchkm_data

import mercer

Record = dict[str, Any]
# Whoever takes more seconds than this is timed once.
_SLOW = 10.0


class Measuring:
    """A device, the repeats, and the form of records."""

    def __init__(self, repeats: int) -> None:
        import torch

        self.torch, self.repeats = torch, repeats

    def there(self, X: np.ndarray) -> Any:
        return self.torch.as_tensor(X, device="cuda")

    def seconds(self, call: Callable[[], Any]) -> tuple[float, Any]:
        """Return the least time of repeated calls and the last result."""
        begun = time.perf_counter()
        call()
        self.torch.cuda.synchronize()
        repeats = 1 if time.perf_counter() - begun > _SLOW else self.repeats
        return timed(call, repeats, self.torch.cuda.synchronize)

    def record(self, what: str, shape: tuple[int, ...], device: float, **others: Any) -> Record:
        record = {"what": what, "rows × columns": " × ".join(f"{size:,}" for size in shape)}
        shown = {"the device": device, "16 cores": others.pop("host", None), "one pass": others.pop("bound", None)}
        return record | {name: None if value is None else f"{value:.2g}" for name, value in shown.items()} | others


def _on_host(call: Callable[[], Any]) -> float:
    """Return the seconds of a call on the host."""
    with mercer.config_context(device="cpu"):
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun


def _proof(model: Any) -> Record:
    certificate = model.certificate_
    return {"relative gap": certificate.relative_gap, "violation": certificate.violation, "dual": certificate.dual}


def fits(measuring: Measuring, mnist: Path | None, sizes: tuple[int, ...]) -> Iterator[Record]:
    """Time SVC on MNIST and on mixtures."""
    cases: list[tuple[str, np.ndarray, np.ndarray, Any]] = []
    if mnist is not None:
        with np.load(mnist) as file:
            X, digit = file["X"].astype(np.float32), file["y"].astype(int)
        X /= X.max()
        machine = mercer.SVC(C=10, gamma=0.02, cache_size=100_000)
        cases.append(("MNIST, 0–4 against 5–9, C = 10, γ = 0.02", X, (digit < 5).astype(int), machine))
        cases.append(("MNIST, ten classes", X, digit, machine))
    for n in sizes:
        cases.append(("mixture of Gaussians, C = 1, γ = 0.05", *mixture(n), mercer.SVC(gamma=0.05, cache_size=100_000)))
    for what, X, y, machine in cases:
        there = measuring.there(X)
        seconds, model = measuring.seconds(lambda: machine.fit(there, y))  # noqa: B023  # called in this turn
        proof, vectors = _proof(model), len(model.support_)
        bound = one_pass(there, vectors, machine.gamma, measuring.torch)
        host = _on_host(lambda: machine.fit(X, y))  # noqa: B023  # called in this turn
        apart = abs(machine.certificate_.dual / proof["dual"] - 1.0)
        yield measuring.record(
            what, X.shape, seconds, host=host, bound=bound, vectors=vectors, **proof, **{"dual apart": apart}
        )


def ridge(measuring: Measuring, sizes: tuple[tuple[int, float, str], ...]) -> Iterator[Record]:
    """Time kernel ridge regression by a factorisation and by conjugate gradients."""
    for n, lam, solver in sizes:
        X, _ = mixture(n)
        y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * np.random.default_rng(1).normal(size=n)
        there = measuring.there(X)
        machine = mercer.RLSRegressor(lam, gamma=0.05, solver=solver, cache_size=60_000)
        machine.fit(there[: n // 10], y[: n // 10])
        begun = time.perf_counter()
        machine.fit(there, y)
        seconds = time.perf_counter() - begun
        what = f"`RLSRegressor`, λ = {lam:g}" + (", conjugate gradients" if solver == "cg" else "")
        yield measuring.record(
            what, X.shape, seconds, steps=machine.n_iter_, stop=machine.stop_reason_, **_proof(machine)
        )


def predictions(measuring: Measuring, n: int) -> Iterator[Record]:
    """Time predictions of n rows with two numbers of support vectors."""
    X, y = mixture(n)
    there = measuring.there(X)
    for m in (n // 98, n // 333):
        model = mercer.SVC(C=1e-3, gamma=0.05, cache_size=100_000).fit(there[:m], y[:m])
        vectors = len(model.support_)
        seconds, labels = measuring.seconds(lambda: model.predict(there))  # noqa: B023  # called in this turn
        bound = one_pass(there, vectors, 0.05, measuring.torch)
        own: list[Any] = []
        host = _on_host(lambda: own.append(model.predict(X)))  # noqa: B023  # called in this turn
        same = float(np.mean(own[0] == np.asarray(measuring.torch.as_tensor(labels).cpu())))
        yield measuring.record(
            f"predict, {vectors:,} vectors", X.shape, seconds, host=host, bound=bound, **{"equal labels": same}
        )


def searches(measuring: Measuring, n: int) -> Iterator[Record]:
    """Time searches for C with ten folds."""
    for what, (X, y, gamma), prices in (
        ("clusters", torchkm_data(n, 100), 1.0 / (2 * n * np.logspace(3, -3, 50))),
        ("a mixture, C from 0.01 to 100", (*mixture(n, 100), 0.005), np.logspace(-2, 2, 50)),
    ):
        machine = mercer.SVC(gamma=gamma, gap_tol=1e-4, cache_size=100_000)
        there = measuring.there(np.asarray(X))
        options: dict[str, Any] = {"cv": 10, "skip": False, "refit": False}
        mercer.tune(machine, there, y, grid={"C": prices[:2]}, max_time=5.0, **options)
        begun = time.perf_counter()
        found = mercer.tune(machine, there, y, grid={"C": prices}, **options)
        seconds = time.perf_counter() - begun
        gap = float(np.nanmax(found.cv_results_["relative_gap"]))
        yield measuring.record(
            f"`tune`, 50 C × 10 folds, relative gap 1e-4, {what}", X.shape, seconds, **{"largest relative gap": gap}
        )


def memory(measuring: Measuring, n: int) -> Iterator[Record]:
    """Measure the memory of a fit on the device with two budgets."""
    X, y = mixture(n)
    there, cuda = measuring.there(X), measuring.torch.cuda
    for size in (100_000, 2_000):
        cuda.empty_cache()
        cuda.reset_peak_memory_stats()
        samples = cuda.memory_allocated()
        begun = time.perf_counter()
        model = mercer.SVC(C=1, gamma=0.05, cache_size=size).fit(there, y)
        seconds = time.perf_counter() - begun
        peak = cuda.max_memory_allocated() - samples
        what = f"mixture of Gaussians, `cache_size={size}`: {peak / 1e9:.1f} GB beside the samples"
        yield measuring.record(what, X.shape, seconds, bytes=peak, **_proof(model))


def measure(mnist: Path | None, quick: bool, repeats: int) -> Iterator[Record]:
    """Yield all records, those that the pages quote first."""
    measuring = Measuring(repeats)
    n = 20_000 if quick else 1_000_000
    yield from fits(measuring, mnist, (n,) if quick else (200_000, n))
    small, large = (n // 20, n // 5)
    yield from ridge(measuring, ((small, 1.0, "cholesky"), (large, 1.0, "cg"), (large, 0.01, "cg")))
    yield from predictions(measuring, n)
    yield from searches(measuring, n // 50)
    if not quick:
        yield from ridge(measuring, ((n, 1.0, "cg"),))
        yield from memory(measuring, n)
