"""Run the attempts to refute certificates, or mutation tests, and record how they ended for docs/results.md.

    python benchmarks/checks.py falsifier               470 problems, some minutes
    python benchmarks/checks.py falsifier --thorough    20,300 problems and large ones, hours
    python benchmarks/checks.py mutants [words …]       40 slips in the sources, an hour at most; words choose files

The last line that the command prints goes to benchmarks/results/checks.json with the date, the commit and the command,
also if the command failed. The run before of the same command is replaced. The hour of `mutants` begins when a run of
all tests has recorded which functions they call, which takes some minutes.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import harness
from report import ROOT, commit
from report_page import CHECKS

TITLES = {"falsifier": "attempts to refute certificates", "mutants": "mistakes in the sources, noticed by tests"}


def command_of(what: str, thorough: bool, words: Sequence[str]) -> list[str]:
    """Return the command without the interpreter."""
    if what == "mutants":
        return ["tests/mutants.py", "--random", "40", "--seed", "1", "--minutes", "60", *words]
    files = ["tests/claims/test_false_claims.py"]
    chosen = ["-m", "thorough", *files, "tests/claims/test_false_claims_large.py"] if thorough else files
    return ["-m", "pytest", "-q", *chosen, *words]


def last_line(text: str) -> str:
    """Return the last line that says something, without pytest's frame."""
    lines = [re.sub(r"\x1b\[[\d;]*m|^=+ | =+$", "", line).strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "nothing was printed")


def record(path: Path, run: dict[str, Any]) -> None:
    """Put a run into the file, in the place of one with the same command."""
    runs = json.loads(path.read_text())["runs"] if path.exists() else []
    kept = [one for one in runs if one["command"] != run["command"]]
    path.parent.mkdir(parents=True, exist_ok=True)
    harness.save_json({"runs": [*kept, run]}, path)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=tuple(TITLES))
    parser.add_argument("words", nargs="*", help="passed on")
    parser.add_argument("--thorough", action="store_true", help="of the falsifier: all problems")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks/results", help="folder of the file")
    options = parser.parse_args(arguments)
    words = command_of(options.what, options.thorough, options.words)
    done = subprocess.run([sys.executable, *words], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    run = {"what": TITLES[options.what], "date": datetime.now(UTC).strftime("%Y-%m-%d"), "commit": commit()}
    failed = "" if done.returncode == 0 else f" (ended with code {done.returncode})"
    run |= {"command": " ".join(["python", *words]), "result": last_line(done.stdout) + failed}
    record(options.results / CHECKS, run)
    print(run["result"])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
