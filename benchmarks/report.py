"""Measure what the pages state; write docs/results.md, and the measured tables of README.md and of other pages.

    python benchmarks/report.py --data FOLDER              all sections, at most 30 minutes on two idle cores
    python benchmarks/report.py --data FOLDER --quick      small sizes, a few minutes
    python benchmarks/report.py --sections small,threads   some sections; the others stay as they were measured
    python benchmarks/report.py --sections gpu             on a computer with a CUDA device and torch
    python benchmarks/report.py --pages                    no measurement: write the pages from the JSON files

FOLDER holds the .npz files that benchmarks/data.py fetches; without it, generated sets and those of scikit-learn are
measured. The figures go to one JSON file for each computer in benchmarks/results, record by record, so that nothing is
lost if a section fails. A section runs in a process of its own and ends when its share of the time is over; what was
left out, and why, is in the file and on the page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import data
import harness
import report_page
import report_sections

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    *("mercer", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex", "libsvm-official", "liblinear-official"),
    *("shap", "pandas", "dask", "torch", "triton"),
)
# Seconds that all sections may take together.
TOTAL = 1740.0
# A section that does not stop by itself is ended after this many times its share, and the seconds of its imports.
_GRACE, _IMPORTS = 1.5, 20.0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FOLDER", help="where the .npz files are")
    parser.add_argument("--quick", action="store_true", help="small sizes, one repeat")
    parser.add_argument(
        "--sections",
        default=",".join(report_sections.DEFAULT),
        help="names with commas between them; by default all but gpu",
    )
    parser.add_argument("--threads", type=int, default=2, help="for everybody; 2 unless told")
    parser.add_argument("--repeats", type=int, help="3 unless told, 1 with --quick")
    parser.add_argument("--peers", help="some of the competitors in kernel classification, such as sklearn,libsvm")
    parser.add_argument("--name", help="of the JSON file; by default made of the processor's name and the threads")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results", help="folder of the JSON files")
    parser.add_argument("--root", type=Path, default=ROOT, help="folder with README.md and docs, which are written")
    parser.add_argument("--pages", action="store_true", help="only write the pages")
    parser.add_argument("--no-pages", action="store_true", help="do not write the pages")
    parser.add_argument("--measure", choices=tuple(report_sections.SECTIONS), help=argparse.SUPPRESS)
    parser.add_argument("--into", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.sections = [name for name in options.sections.split(",") if name]
    unknown = [name for name in options.sections if name not in report_sections.SECTIONS]
    if unknown:
        parser.error(f"there is no section {unknown[0]!r}; choose from {', '.join(report_sections.SECTIONS)}")
    options.repeats = options.repeats or (1 if options.quick else 3)
    return options


def name_of(facts: dict[str, Any], quick: bool) -> str:
    """Return the name of this computer's JSON file: its processor, its threads, and whether the run was quick."""
    processor = re.sub(r"\W+", "_", facts["cpu"].lower()).strip("_")
    return f"{processor}_{facts['threads']}_threads{'_quick' if quick else ''}"


def commit() -> str:
    """Return git's name of the sources, or "unknown" without git."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def command_of(options: argparse.Namespace) -> str:
    """Return the command that repeats a section, with FOLDER for the user's own folder."""
    words = ["python", "benchmarks/report.py"]
    words += ["--data", "FOLDER"] if options.data else []
    words += ["--quick"] if options.quick else []
    words += ["--threads", str(options.threads)] if options.threads != 2 else []
    words += ["--peers", options.peers] if options.peers else []
    return shlex.join(words)


def measure(options: argparse.Namespace) -> None:
    """Measure one section in this process, and save each record when it is there."""
    harness.same_threads_for_all(report_sections.threads_of(options.measure, options.threads))
    run = report_sections.Run(
        folder=options.data,
        quick=options.quick,
        threads=options.threads,
        repeats=options.repeats,
        peers=tuple(options.peers.split(",")) if options.peers else None,
        deadline=time.monotonic() + options.seconds,
    )
    found: dict[str, Any] = {"records": [], "skipped": run.skipped}
    for record in report_sections.SECTIONS[options.measure].measure(run):
        found["records"].append(record)
        harness.save_json(found, options.into)
        if run.over():
            run.skipped.append(f"whatever would begin after the section's {options.seconds:.0f} s")
            break
    harness.save_json(found, options.into)


def section(options: argparse.Namespace, name: str, seconds: float) -> dict[str, Any]:
    """Measure a section in a process of its own; return its records, what was left out, and its error."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        into = Path(folder) / "records.json"
        words = [sys.executable, str(Path(__file__).resolve()), "--measure", name, "--into", str(into)]
        words += ["--seconds", str(seconds), "--threads", str(options.threads), "--repeats", str(options.repeats)]
        words += ["--data", str(Path(options.data).resolve())] if options.data else []
        words += ["--quick"] if options.quick else []
        words += ["--peers", options.peers] if options.peers else []
        with (Path(folder) / "errors").open("w+") as errors:
            error = _ended(words, seconds * _GRACE + _IMPORTS, errors)
            errors.seek(0)
            told = [line for line in errors.read().splitlines() if line.strip()]
        found = json.loads(into.read_text()) if into.exists() else {"records": [], "skipped": []}
    if error:
        found["error"] = f"{error}: {_without_paths(told[-1])}" if "code" in error and told else error
    for line in told:
        harness.progress(f"  {line}")
    return found | {"seconds": time.monotonic() - begun}


def _ended(words: list[str], seconds: float, errors: Any) -> str:
    """Run a command with all its children for at most so many seconds; return why it failed, or nothing."""
    process = subprocess.Popen(words, stdout=sys.stderr, stderr=errors, start_new_session=True)
    try:
        code = process.wait(seconds)
        return "" if code == 0 else f"ended with code {code}"
    except subprocess.TimeoutExpired:
        return f"did not end within {seconds:.0f} s"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _without_paths(text: str) -> str:
    return re.sub(r"(?<![\w.])/[\w./-]+/", "…/", text)


def checksums(folder: str | None) -> dict[str, str]:
    """Return the beginnings of the checksums of the data sets that are there."""
    if folder is None:
        return {}
    present = [name for name in data.SETS if (Path(folder) / f"{name}.npz").exists()]
    return {name: data.checksum(data.stored(Path(folder), name))[:16] for name in present}


def run(options: argparse.Namespace) -> Path:
    """Measure the sections, write the JSON file after each, and return its path."""
    from mercer import _core

    facts = harness.machine(PACKAGES, options.threads) | {"level": _core.level(), "commit": commit()}
    if harness.is_busy(facts):
        harness.progress(f"this computer is not idle (load {facts['load']:.1f}): do not publish these figures")
    options.results.mkdir(parents=True, exist_ok=True)
    path = options.results / f"{options.name or name_of(facts, options.quick)}.json"
    results = json.loads(path.read_text()) if path.exists() else {"sections": {}}
    results |= {"machine": facts, "quick": options.quick, "data": checksums(options.data)}
    end = time.monotonic() + TOTAL
    for name in options.sections:
        spec = report_sections.SECTIONS[name]
        seconds = min(spec.quick_seconds if options.quick else spec.seconds, end - time.monotonic())
        harness.progress(f"--- {name}, at most {max(seconds, 0):.0f} s")
        found: dict[str, Any] = {"records": [], "skipped": [f"all of it: the {TOTAL:.0f} s of all sections were over"]}
        if seconds > 5:
            found = section(options, name, seconds)
        told = {"date": facts["date"], "commit": facts["commit"], "command": command_of(options)}
        told |= {"versions": facts["versions"], "threads": facts["threads"], "load": facts["load"]}
        results["sections"][name] = {**told, "repeats": options.repeats, **found}
        harness.save_json(results, path)
        if "error" in found:
            harness.progress(f"{name}: {found['error']}")
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse(arguments)
    if options.measure:
        measure(options)
        return
    if not options.pages:
        harness.progress(f"figures are in {run(options)}")
    if not options.no_pages:
        for page in report_page.write(options.results, options.root):
            harness.progress(f"wrote {page}")


if __name__ == "__main__":
    main()
