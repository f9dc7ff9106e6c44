"""Write docs/results.md from all JSON files of report.py, and blocks of other pages from the newest of them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import data
import harness
import report_blocks
import report_tables

Record = dict[str, Any]
# A file with other fields, see checks.py.
CHECKS = "checks.json"
_HEAD = """# Results

<!-- Written by `python benchmarks/report.py --pages` from benchmarks/results; changes by hand are lost. -->

This page lists every measurement that mercer's pages quote, one part for each computer, newest first. Times are
wall-clock seconds of warm runs unless the text says otherwise: the minimum of repeats, all libraries in one process in
turns, with mercer's certificate in its time. `report.py` checks each comparison of kernel classifiers: the answers of
all libraries are judged in float64 by code that belongs to none of them (`benchmarks/truth.py`), and a difference that
their tolerance does not explain is named below the table. `×` is the other library's time divided by mercer's.
scikit-learn's `SVC` computes on one thread whatever it is given, which the heads of the tables say; the others use all
threads of the run.

Repeat it with `python benchmarks/report.py --data FOLDER` (at most 30 minutes; `--quick` takes a few).
`python benchmarks/data.py FOLDER` fetches the data sets. [Features of other packages](peers.md) says who has what.
"""


_DATA = """
`python benchmarks/data.py FOLDER` fetches these sets, and gives the same file from any order of the published rows. A
checksum is verified where an independent copy of the published table, or the source's own file, gave it; a set that
differs from it is refused. That the hosts are reachable and send these tables today was not tried. digits and
breast_cancer come with scikit-learn, and mixture is generated. reuters (money-fx) and rtpolarity (TF-IDF), which some
pages quote, are not fetched.
"""


def _data_sets() -> str:
    rows = []
    for name, source in data.SETS.items():
        whole = source.draw or source.rows
        train = source.first or round((source.share or 0.0) * whole)
        division = "as published" if source.first else "by hashes of rows"
        host = f"OpenML {source.openml}" if source.openml else source.urls[0].split("/")[2]
        state = "verified" if source.verified else "of another copy, not compared" if source.checksum else "none"
        kept = f"{train:,} + {whole - train:,}"
        rows.append([name, kept, source.d, division, host, state])
    return harness.table(["set", "training + test rows", "features", "division", "source", "checksum"], rows)


def load(folder: Path) -> list[tuple[str, Record]]:
    """Return the results of every computer with the names of their files, newest first."""
    found = [(path.name, json.loads(path.read_text())) for path in sorted(folder.glob("*.json")) if path.name != CHECKS]
    # What single pages state comes last.
    return sorted(found, key=lambda one: ("pages" not in one[1]["sections"], one[1]["machine"]["date"]), reverse=True)


def results_page(folder: Path) -> str:
    """Return docs/results.md."""
    parts = [_HEAD.strip()]
    for name, results in load(folder):
        parts += [f"## {_title(results)}", _machine(name, results)]
        for section, title in report_tables.TITLES.items():
            if section in results["sections"]:
                parts += list(_section(title, section, results["sections"][section], results["machine"]))
    parts += list(report_tables.checks(folder / CHECKS))
    parts += [
        "## Data sets",
        _DATA.strip(),
        _data_sets(),
        "## All programs",
        "Each has `--help`.",
        _programs(Path(__file__).parent),
    ]
    return "\n\n".join(parts) + "\n"


def _programs(folder: Path) -> str:
    """Return a table of the programs with the first sentence of each."""
    rows = []
    for path in sorted(folder.glob("*.py")):
        source = path.read_text(encoding="utf-8")
        if re.search(r"^if __name__ ==", source, flags=re.MULTILINE):
            first = (ast.get_docstring(ast.parse(source)) or "").partition("\n\n")[0]
            rows.append([f"`benchmarks/{path.name}`", " ".join(first.split())])
    return harness.table(["program", "what it does"], rows)


def _title(results: Record) -> str:
    facts = results["machine"]
    quick = ", quick run" if results.get("quick") else ""
    card = f"{facts['gpu'].partition(' with')[0]} and " if "gpu" in facts else ""
    return f"{card}{facts['cpu']}, {facts['date'][:10]}{quick}"


def _machine(name: str, results: Record) -> str:
    facts = results["machine"]
    if "note" in facts:
        return f"{facts['note']} (`benchmarks/results/{name}`)"
    versions = ", ".join(f"{one} {number}" for one, number in facts["versions"].items() if number != "not installed")
    absent = [one for one, number in facts["versions"].items() if number == "not installed"]
    load = "" if facts["load"] is None else f"load {facts['load']:.1f} at the start; "
    card = f"{facts['gpu']}; " if "gpu" in facts else ""
    lines = [
        f"{facts['cores']} cores, {facts['threads']} threads for everybody; {card}instructions of mercer's core: "
        f"{facts['level']}; {load}{facts['system']}; Python {facts['python']}, {versions}; commit {facts['commit']} "
        f"(`benchmarks/results/{name}`)."
    ]
    if results.get("data"):
        own = [name for name, found in results["data"].items() if not data.SETS[name].checksum.startswith(found)]
        lines.append(
            f"Data sets: {', '.join(results['data'])}, with the checksums of `benchmarks/data.py`"
            + (f", except for {', '.join(own)}, whose rows or division are others." if own else ".")
        )
    if absent:
        lines.append(f"Not installed: {', '.join(absent)}.")
    if harness.is_busy(facts):
        lines.append("**The computer was busy when this began: do not quote these figures.**")
    return " ".join(lines)


def _section(title: str, name: str, section: Record, facts: Record) -> Iterator[str]:
    yield f"### {title}"
    other = [f"{key} {section[key]}" for key in ("date", "commit") if section.get(key) != facts.get(key)]
    command = section.get("command", "")
    how = f"`{command} --sections {name}`" if "report.py" in command else f"`{command}`" if command else ""
    told = [how, f"Measured on another occasion: {', '.join(other)}." if other and how.startswith("`python") else ""]
    if any(told):
        yield " ".join(filter(None, told))
    if section.get("note"):
        yield section["note"]
    if section["records"]:
        try:
            yield from report_tables.WRITERS[name](section)
        except (KeyError, TypeError, ValueError) as error:  # a file of another version must not cost the whole page
            yield f"These records cannot be shown: {type(error).__name__} {error}."
    if section.get("skipped"):
        yield f"Left out: {'; '.join(section['skipped'])}."
    if section.get("error"):
        yield f"This section failed: {section['error']}."


# --- blocks of other pages -------------------------------------------------------------------------------------------


def newest(folder: Path, section: str) -> tuple[str, Record] | None:
    """Return the newest complete results of a section: not of a quick run, without an error, with README's rows."""
    for name, results in load(folder):
        found = results["sections"].get(section)
        if not found or not found["records"] or results.get("quick") or "error" in found:
            continue
        if section != "fits" or report_blocks.has_readme_rows(found):
            return name, results
    return None


def replace_block(text: str, name: str, block: str) -> str:
    """Put a block between its marks; refuse a text without them."""
    begin, end = f"<!-- results: {name} -->", "<!-- end of results -->"
    pattern = re.compile(re.escape(begin) + r".*?" + re.escape(end), re.DOTALL)
    if len(pattern.findall(text)) != 1:
        raise ValueError(f"there must be one block between {begin} and {end}")
    return pattern.sub(lambda _: f"{begin}\n{block.strip()}\n\n{end}", text)


BLOCKS: dict[str, dict[str, tuple[str, Callable[[Record, str], str]]]] = {
    "README.md": {"speed": ("fits", report_blocks.readme_block)},
    "docs/speed.md": {
        "fits": ("fits", report_blocks.speed_block),
        "others": ("compression", report_blocks.others_block),
    },
    "docs/gpu.md": {"gpu": ("gpu", report_blocks.gpu_block)},
    "docs/linear.md": {"linear": ("linear", report_blocks.table_of("linear"))},
    "docs/least_squares.md": {"ridge": ("least_squares", report_blocks.table_of("least_squares", report_tables.ridge))},
    "docs/landmarks.md": {
        "landmarks": ("least_squares", report_blocks.table_of("least_squares", report_tables.landmarks)),
    },
    "docs/explanations.md": {"shapley": ("shapley", report_blocks.table_of("shapley"))},
    "docs/compression.md": {"compression": ("compression", report_blocks.table_of("compression"))},
    "docs/tuning.md": {"tuning": ("tuning", report_blocks.table_of("tuning"))},
    "docs/probabilities.md": {"calibration": ("calibration", report_blocks.table_of("calibration"))},
}


def pages(folder: Path, root: Path) -> dict[Path, str]:
    """Return the texts of all pages that are made from the results."""
    made = {root / "docs/results.md": results_page(folder)}
    for page, blocks in BLOCKS.items():
        path = root / page
        if not path.exists():
            continue
        text = path.read_text(encoding="utf-8")
        for name, (section, block) in blocks.items():
            found = newest(folder, section)
            if found is not None:
                text = replace_block(text, name, block(found[1], page))
        made[path] = text
    return made


def write(folder: Path, root: Path) -> list[Path]:
    """Write the pages that change, and return their paths."""
    changed = []
    for path, text in pages(folder, root).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed
