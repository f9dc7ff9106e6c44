"""What every benchmark here shares: equal threads, interleaved timings, growth, facts about the machine, tables.

Competitors run in one process and take turns (A B C A B C …), so that a busy moment of the machine hits all of them;
the minimum counts, the spread is kept. Data sets are in tasks.py, the other libraries in peers.py, and truth.py judges
their answers.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

# A competitor that needs longer than the first is run once; one that needs less than the second twice more, whoever it
# is: a minimum of more runs is smaller, and only long runs average a busy machine out.
SLOW, BRIEF = 30.0, 1.0
# Before each timing, so that threads of the competitor before have stopped spinning.
_PAUSE = 0.05
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "MERCER_NUM_THREADS")


def same_threads_for_all(threads: int) -> None:
    """Keep this process to `threads` processors, and start it again with that limit where libraries look for it."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    wanted = dict.fromkeys(_THREAD_VARIABLES, str(threads))
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **wanted})


# --- timing ---------------------------------------------------------------------------------------------------------


@dataclass
class Timing:
    """The seconds of each run, what the last one returned, or why there is none."""

    seconds: list[float] = field(default_factory=list)
    result: Any = None
    error: str = ""

    @property
    def best(self) -> float:
        return min(self.seconds, default=float("nan"))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the results file."""
        if self.error:
            return {"error": self.error}
        return {"best": self.best, "spread": max(self.seconds) / self.best - 1.0, "seconds": self.seconds}


def interleave(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timing]:
    """Time every call `repeats` times in turns; slow ones once, brief ones twice more."""
    timings = {name: Timing() for name in calls}
    for round_ in range(repeats + 2):
        for name, call in calls.items():
            timing = timings[name]
            first = timing.seconds[0] if timing.seconds else 0.0
            if timing.error or first > SLOW or (round_ >= repeats and first > BRIEF):
                continue
            timing.result = None
            gc.collect()
            time.sleep(_PAUSE)
            begin = time.perf_counter()
            try:
                timing.result = call()
            except Exception as error:
                timing.error = f"{type(error).__name__}: {error}"
                continue
            timing.seconds.append(time.perf_counter() - begin)
    return timings


def serial_share(call: Callable[[], Any], threads: int) -> float:
    """The share of a call's time in which one thread works: s with cpu ÷ wall = s + threads · (1 − s).

    Threads that wait use no processor in mercer. On a busy machine the share comes out too large.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return float(np.clip((threads - cpu / wall) / (threads - 1), 0.0, 1.0))


def growth_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """The slope of log seconds over log sizes by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def geometric_mean(ratios: Iterable[float]) -> float:
    """NaN where there is no ratio at all."""
    logs = np.log(list(ratios))
    return float(np.exp(logs.mean())) if len(logs) else float("nan")


# --- memory ---------------------------------------------------------------------------------------------------------


def peak_kilobytes() -> int:
    """The largest resident memory of this process so far (VmHWM); Linux only."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def forget_peak() -> None:
    """Start VmHWM again at the present memory, where the system allows it: a peak of loading must not hide a fit's."""
    gc.collect()
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        print(f"the peak of loading could not be reset ({error}); extra memory may be underestimated", file=sys.stderr)


# --- facts ----------------------------------------------------------------------------------------------------------


def machine(packages: Iterable[str], threads: int) -> dict[str, Any]:
    """What a reader must know to place the numbers."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu_model(),
        **_cuda(),
        "cores": os.cpu_count(),
        "threads": threads,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "system": f"{platform.system()} {platform.release().partition('-')[0]} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in packages},
    }


def is_busy(facts: dict[str, Any]) -> bool:
    """Whether other work took a quarter of the processors when a run began."""
    return (facts["load"] or 0) > 0.25 * facts["cores"]


def _cuda() -> dict[str, str]:
    """The name of the first CUDA device and the version of its driver; empty without one."""
    command = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    try:
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"gpu": " with driver ".join(part.strip() for part in told.splitlines()[0].split(","))} if told else {}


def version(package: str) -> str:
    if package == "mercer":  # also where it is imported from its sources
        import mercer

        return mercer.__version__
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


# --- output ---------------------------------------------------------------------------------------------------------


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; numbers right, the first column left."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def save_json(results: dict[str, Any], path: str | Path | None) -> None:
    """Write the results, whole or not at all; NaN becomes null."""
    if path is None:
        return
    partial = Path(f"{path}.part")
    partial.write_text(json.dumps(_plain(results), indent=1, allow_nan=False) + "\n")
    partial.replace(path)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not np.isfinite(value) else value


def progress(text: str) -> None:
    """A line for whoever waits."""
    print(text, file=sys.stderr, flush=True)
