"""Fits on a torch device, certificate included, beside one pass over the kernel values and this machine's core.

    python benchmarks/compare_gpu.py [--device cuda] [--mnist FILE.npz] [--rows 200000 1000000] [--repeats 3] [--cpu]
    python benchmarks/compare_gpu.py --breadth 100000 [--cpu]
    python benchmarks/compare_gpu.py --kernels                      kernels of our own, by themselves; needs a GPU

`python benchmarks/report.py --sections gpu` measures what the pages state (gpu_section.py).
Data are on the device before the clock starts; times are the minimum of repeats after one that is not counted. The
pass is n × support vectors Gaussian values in float32 and their sums, which no solver can do without.
"""

from __future__ import annotations

import argparse
import itertools
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

import mercer


def mixture(n: int, d: int = 20, centres: int = 40, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of two classes, a share of whose labels is wrong; standardised."""
    rng = np.random.default_rng(0)
    middle, which = rng.normal(size=(centres, d)) * 1.5, rng.integers(0, centres, size=n)
    X = middle[which] + rng.normal(size=(n, d))
    y = (which % 2 == 0) ^ (rng.random(n) < noise)
    return ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32), y.astype(int)


def timed(call: Any, repeats: int, synchronize: Any) -> tuple[float, Any]:
    """The least time of several calls after one, and the last result."""
    found, best = call(), float("inf")
    for _ in range(repeats):
        synchronize()
        start = time.perf_counter()
        found = call()
        synchronize()
        best = min(best, time.perf_counter() - start)
    return best, found


def text(n: int, d: int = 50_000, words: int = 80) -> tuple[Any, np.ndarray]:
    """CSR rows of length 1 with about as many entries as a short article, and labels that some columns tell."""
    rng = np.random.default_rng(0)
    columns = np.minimum(rng.zipf(1.3, size=(n, words)) - 1, d - 1)
    X = sp.csr_array(
        (np.ones(n * words, np.float32), columns.ravel(), np.arange(0, n * words + 1, words)), shape=(n, d)
    )
    X.sum_duplicates()
    X = sp.csr_array(X.multiply(1 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]), dtype=np.float32)
    told = rng.normal(size=d) / np.sqrt(1 + np.arange(d))
    score = X @ told + 0.02 * rng.normal(size=n)
    return X, (score > np.median(score)).astype(int)


def breadth(n: int) -> dict[str, tuple[Any, np.ndarray, Any]]:
    """Machines that are no kernel classifier of dense rows."""
    X, _ = mixture(n)
    wide = np.random.default_rng(1).normal(size=(n, 200)).astype(np.float32)
    target, sparse = np.sin(X[:, 0]), text(n // 5)
    few = slice(0, min(n, 20_000))
    return {
        "SVC, CSR": (*sparse, mercer.SVC(C=1, gamma=1.0, cache_size=100_000)),
        "LinearSVC": (wide, (wide[:, 0] > 0.3).astype(int), mercer.LinearSVC()),
        "NystromRLS": (X, target, mercer.NystromRLS(gamma=0.05, n_landmarks=2000, random_state=0, cache_size=100_000)),
        "RLSRegressor": (X[few], target[few], mercer.RLSRegressor(gamma=0.05, cache_size=100_000)),
        "SVR": (X[few], target[few], mercer.SVR(gamma=0.05, cache_size=100_000)),
    }


def one_pass(X: Any, vectors: int, gamma: float, torch: Any) -> float:
    """Seconds of the kernel values between all rows and so many of them, and their sums; NaN without Triton."""
    from mercer.kernels import Gaussian
    from mercer.places.torch import fused
    from mercer.places.torch.formula import Formula

    if not fused.available(X):
        return float("nan")
    x, norms = Formula.of(Gaussian(gamma), X, fuses=True).rows(X, torch.float32).parts[0]
    some = torch.arange(vectors, device=X.device) * len(X) // max(1, vectors)
    z, weights = (x[some], norms[some]), torch.ones(vectors, device=X.device)
    return timed(lambda: fused.sums(x, norms, *z, weights), 2, torch.cuda.synchronize)[0]


def kernels() -> None:
    """Kernel values a second, and microseconds of a pair step with several numbers of warps."""
    import torch

    from mercer.kernels import Gaussian
    from mercer.places.host.blocks import INNER_STEPS
    from mercer.places.torch import fused, rounds
    from mercer.places.torch.formula import Formula

    def rate(name: str, count: float, call: Any) -> None:
        print(f"{name:40} {count / timed(call, 3, torch.cuda.synchronize)[0]:.2e} a second", flush=True)

    for n, m, d in ((500_000, 10_000, 20), (60_000, 8_000, 784)):
        X = torch.randn((n, d), device="cuda")
        formula = Formula.of(Gaussian(0.5 / d), X, fuses=True)
        for dtype in (torch.float32, torch.float64):
            x, norms = formula.rows(X if dtype == torch.float32 else X[: n // 10], dtype).parts[0]
            z, own = x[: m if fused.adds_all(x) else 2048], norms[: m if fused.adds_all(x) else 2048]
            for weights in {torch.float32: (torch.float32, torch.float64)}.get(dtype, (dtype,)):
                w = torch.randn(len(z), device="cuda", dtype=weights)
                name = f"sums d={d} {dtype} weights {weights}".replace("torch.", "")
                rate(name, len(x) * len(z), lambda: fused.sums(x, norms, z, own, w))  # noqa: B023  # called in this turn
            if fused.adds_several(x, 45):
                W = torch.randn((len(z), 45), device="cuda", dtype=torch.float64)
                rate(f"sums d={d}, 45 outputs", len(x) * len(z), lambda: fused.sums(x, norms, z, own, W))  # noqa: B023  # called in this turn
    n = 20_000
    X = torch.randn((n, 20), device="cuda", dtype=torch.float64)
    y = torch.where(torch.rand(n, device="cuda") < 0.5, 1.0, -1.0).double()
    zero, one = torch.zeros(n + 1, device="cuda", dtype=torch.float64), torch.ones(1, device="cuda").double()
    fixed = [torch.cat([part, 0 * one]) for part in (y, (y < 0) * y, (y > 0) * y, 0.0 * y)]
    for size in (1024, 2048):
        for warps, apart in itertools.product((4, 8, 16), (False, True)):
            rounds.WARPS, rounds.APART = warps, apart
            selector = rounds.BlockSelector(*fixed, None)
            selector.resize(size)
            rows = selector.choose(zero.clone(), zero[:-1])
            K = torch.exp(-0.05 * torch.cdist(X[rows], X[rows]).square()).float()

            def step(selector: Any = selector, K: Any = K) -> None:
                selector.step(K, zero.clone(), zero[:-1], 1e-4, 1e-4, INNER_STEPS)

            step()
            before = float(selector.status[2])
            seconds, _ = timed(step, 3, torch.cuda.synchronize)
            steps = (float(selector.status[2]) - before) / 4
            print(
                f"pair steps, {size} variables, {warps:2} warps, {apart=}: "
                f"{1e6 * seconds / steps:.2f} µs each of {steps:.0f}",
                flush=True,
            )


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--mnist")
    parser.add_argument("--rows", type=int, nargs="*", default=None)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--cpu", action="store_true", help="fit with this machine's core too")
    parser.add_argument("--breadth", type=int, help="other machines, with this many rows, instead")
    parser.add_argument("--kernels", action="store_true", help="kernels of our own instead")
    parser.add_argument("--alone", type=int, help="variables from which on the device takes rounds by itself")
    given = parser.parse_args()
    import torch

    if given.alone:
        from mercer.places.torch import field

        field._FEWEST_VARIABLES = given.alone

    if given.kernels:
        kernels()
        return
    given.rows = given.rows or [20_000]

    device = torch.device("cpu" if given.device == "torch-cpu" else given.device)
    synchronize = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    cases: dict[str, tuple[Any, np.ndarray, Any]] = {}
    if given.mnist:
        with np.load(given.mnist) as file:
            X, digit = file["X"].astype(np.float32), file["y"].astype(int)
        X /= X.max()
        cases["mnist 0-4 v 5-9"] = X, (digit < 5).astype(int), mercer.SVC(C=10, gamma=0.02, cache_size=100_000)
        cases["mnist 10 classes"] = X, digit, mercer.SVC(C=10, gamma=0.02, cache_size=100_000)
    if given.breadth:
        cases = breadth(given.breadth)
    for n in [] if given.breadth else given.rows:
        X, y = mixture(n)
        cases[f"mixture {n}"] = X, y, mercer.SVC(C=1, gamma=0.05, cache_size=100_000)
    for name, (X, y, machine) in cases.items():
        with mercer.config_context(device=given.device):
            there = X if sp.issparse(X) else torch.as_tensor(X, device=device)  # CSR rows are sent by each fit
            seconds, model = timed(lambda: machine.fit(there, y), given.repeats, synchronize)  # noqa: B023  # called in this turn
            predict, _ = timed(lambda: model.predict(there[:100_000]), 1, synchronize)  # noqa: B023  # called in this turn
            gamma = getattr(machine, "gamma", None)
            vectors = len(getattr(model, "support_", ()))
            dense = not sp.issparse(X) and isinstance(gamma, float)
            bound = one_pass(there, vectors, gamma, torch) if dense else float("nan")
        found = model.certificate_
        line = (
            f"{name:18} {seconds:8.3f} s  one pass {bound:.3f} s  vectors {vectors:7}  gap {found.relative_gap:.1e}  "
        )
        line += f"violation {found.violation:.1e}  {model.stop_reason_}  predict {predict:.3f} s"
        if given.cpu:
            start = time.perf_counter()
            here = type(machine)(**machine.get_params(deep=False)).fit(X, y)
            line += f"  core {time.perf_counter() - start:.2f} s, dual {here.certificate_.dual / found.dual - 1:+.1e}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
