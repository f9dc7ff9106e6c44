"""Extra peak memory of one fit, in a fresh process: VmHWM after it minus VmHWM after loading and a small warm-up.

Run by compare_svc.py as ``python memory.py '{"competitor": …, "data": …, "C": …}'``; prints one line of JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def extra_memory(competitor: str, threads: int, **row: Any) -> dict[str, Any]:
    """Megabytes and seconds of one fit, measured in a process of its own."""
    order = json.dumps({"competitor": competitor, "threads": threads, **row})
    done = subprocess.run([sys.executable, str(Path(__file__)), order], capture_output=True, text=True)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or [f"ended with {done.returncode}"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _measure(competitor: str, threads: int, folder: str | None, data: str, n: int | None, C: float) -> dict[str, Any]:
    import time

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


if __name__ == "__main__":
    print(json.dumps(_measure(**json.loads(sys.argv[1]))))
