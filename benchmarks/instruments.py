"""A look inside one fit of mercer: what the solver and the certificate each cost, and the bound they are held to.

The bound is the least that any solver must do (Igel, sec. 4.3.3): the gradient once from scratch, n × nSV kernel
values, as one fused pass of the core over the merged samples. A kernel unit is that many kernel values.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import mercer.solvers
import mercer.solvers.dual.certified
from mercer.places import Gram, gram_for
from mercer.runtime.threads import effective_n_threads


def inspect_fit(fit: Callable[[], Any], repeats: int = 3) -> dict[str, Any]:
    """Seconds, kernel units and bound of a binary fit, taken from the fastest of `repeats` watched ones."""
    runs = [_watched(fit) for _ in range(repeats)]
    best, gram, beta = min(runs, key=lambda run: run[0]["fit"])
    size = gram.n * np.count_nonzero(beta)
    bound = _bound(gram, beta)
    return {
        "n": gram.n,
        "nSV": int(np.count_nonzero(beta)),
        "bound": bound,
        "solve": best["fit"] - best["certificate"],  # all but the certificate: validation and merging too
        "loop": best["loop"] - best["certificate"],
        "certificate": best["certificate"],
        "units": (best["loop values"] - best["certificate values"]) / size,
        "certificate_units": best["certificate values"] / size,
        "certificates": best["certificates"],
    }


def _watched(fit: Callable[[], Any]) -> tuple[dict[str, float], Gram, np.ndarray]:
    """One fit: seconds and kernel values of its parts, its Gram and its β."""
    spent = dict.fromkeys(("loop", "certificate", "loop values", "certificate values", "certificates"), 0)
    seen: dict[str, Any] = {}

    def watch(part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(problem: Any, gram: Any, *rest: Any, **named: Any) -> Any:
            values, begin = gram.evaluations, time.perf_counter()
            result = function(problem, gram, *rest, **named)
            spent[part] += time.perf_counter() - begin
            spent[part + " values"] += gram.evaluations - values
            seen[part] = gram, result
            spent["certificates"] += part == "certificate"
            return result

        return call

    certified = mercer.solvers.dual.certified
    with (
        mock.patch.object(certified, "certify_dual", watch("certificate", certified.certify_dual)),
        mock.patch.dict(mercer.solvers.SOLVERS, auto=watch("loop", certified.solve_certified)),
    ):
        begin = time.perf_counter()
        fit()
        spent["fit"] = time.perf_counter() - begin
    gram, (solution, _) = seen["loop"]
    return spent, gram, solution.beta


def _bound(gram: Gram, beta: np.ndarray) -> float:
    """Seconds of one fused float32 pass, the samples prepared before; the least of three."""
    fresh = gram_for(gram.kernel, gram._source.X, gram.budget, effective_n_threads(None))
    fresh.product(beta, dtype=np.float32)
    seconds = []
    for _ in range(3):
        begin = time.perf_counter()
        fresh.product(beta, dtype=np.float32)
        seconds.append(time.perf_counter() - begin)
    return min(seconds)
