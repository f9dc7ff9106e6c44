"""Code run in a process of its own, and the memory that such code takes: what a crash or a peak must be measured in."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import mercer

HERE = Path(__file__).parent
MEASURABLE = os.path.exists("/proc/self/clear_refs")


def environment(*first, **variables):
    """Environment variables for a child that imports from these folders, the tests, and what this process does."""
    path = [*first, HERE.parent, *filter(None, sys.path)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), **variables}


def core_only(**variables):
    """For a child that imports mercer._core or single modules, but not all of mercer."""
    return environment(HERE / "without_init", MERCER_FOLDER=str(Path(mercer.__file__).parent), **variables)


def run_python(code, *arguments, timeout=120, env=None):
    """Run code in a fresh interpreter that can import from the tests; stdout of a run that must succeed."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=environment() if env is None else env,
    )
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stderr}"
    return done.stdout


def resident(field="VmRSS"):
    """Megabytes of this process now, or at its peak ("VmHWM")."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def growth(act):
    """Megabytes by which the peak during act() exceeds what was resident before it.

    getrusage's ru_maxrss would not do: a child starts with the peak of the process that started it.
    """
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak starts anew from here
    before = resident()
    act()
    return resident("VmHWM") - before
