"""Markdown of each section of report.py's results, and the blocks of README.md, docs/speed.md and docs/gpu.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import svc_report
from harness import geometric_mean, table

Record = dict[str, Any]
TITLES = {
    "fits": "Fits and predictions of kernel classifiers",
    "small": "Small data",
    "growth": "Growth with the number of rows",
    "growth_in_d": "Growth with the number of features",
    "threads": "Threads",
    "linear": "Linear machines",
    "least_squares": "Kernel ridge regression",
    "gpu": "GPU",
    "cluster": "Cluster",
    "tuning": "Tuning",
    "calibration": "Calibration",
    "shapley": "Shapley values",
    "compression": "Compression",
    "tables": "Tables",
    "pages": "Figures of single pages",
}
# Competitors with the words that a reader needs beside each ratio.
_HEADS = {
    "sklearn": "scikit-learn (1 thread)",
    "sklearnex": "scikit-learn-intelex",
    "libsvm": "LIBSVM",
    "thundersvm": "ThunderSVM",
    "sklearnex32": "scikit-learn-intelex, float32",
    "sklearn32": "scikit-learn, float32 (1 thread)",
    "mercer32": "mercer, float32",
}
_TITLES = {**svc_report.TITLES, "sklearnex": "scikit-learn-intelex", "sklearnex32": "scikit-learn-intelex, float32"}
_FORMS = {"standardised": ("standardised", "generated"), "raw": ("raw",)}
# The rows of README.md: data and C, standardised.
_README = (("letter", 1), ("spam", 10), ("usps", 10), ("mnist", 1))


def seconds(value: float | None) -> str:
    """Return a time with three digits."""
    if value is None:
        return ""
    return f"{value:.0f} s" if value >= 100 else f"{value:.3g} s" if value >= 0.01 else f"{1e3 * value:.3g} ms"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}×"


def _times_word(value: float) -> str:
    """Return a mean for a sentence: without decimals from 10 on."""
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}"


def ratio(record: Record, name: str) -> float | None:
    """Return the competitor's time over mercer's float64 time, None without one of them."""
    both = [record["competitors"].get(one, {}).get("best") for one in ("mercer", name)]
    return None if None in both else both[1] / both[0]


def mean_ratio(records: list[Record], name: str) -> float | None:
    found = [value for record in records if (value := ratio(record, name)) is not None]
    return geometric_mean(found) if found else None


# --- sections --------------------------------------------------------------------------------------------------------


def fits(section: Record) -> Iterator[str]:
    """Yield a table of fits for each form, what was missed, and a table of predictions."""
    fitted = [record for record in section["records"] if record.get("kind") == "fit"]
    for form, forms in _FORMS.items():
        some = [record for record in fitted if record["form"] in forms]
        if some:
            yield f'**Fit, {form} features**, Gaussian kernel, `gamma="scale"`, `tol=1e-3`, two classes:'
            yield fit_table(some)
    yield from misses(fitted)
    predicted = [record for record in section["records"] if record.get("kind") == "predict"]
    if predicted:
        names = _present(predicted, ("sklearn", "sklearnex", "libsvm"))
        rows = [
            [record["data"], record["form"], f"{record['n_test']:,}", f"{record['C']:g}", _best(record)]
            + [times(ratio(record, name)) for name in names]
            for record in predicted
        ]
        means = [f"**{times(mean_ratio(predicted, name))}**" for name in names]
        rows.append(["geometric mean", "", "", "", "", *means])
        yield "**Prediction** (`decision_function`) by the same models:"
        yield table(["data", "form", "test rows", "C", "mercer", *(_HEADS[name] for name in names)], rows)


def fit_table(records: list[Record]) -> str:
    """Return the table of some fits with geometric means in the last row."""
    names = _present(records, ("sklearn", "sklearnex", "sklearnex32", "libsvm"))
    header = ["data", "rows × features", "C", "support vectors", "mercer", *(_HEADS[name] for name in names)]
    rows = [_fit_row(record, names) for record in records]
    rows.append(["geometric mean", "", "", "", "", *(f"**{times(mean_ratio(records, name))}**" for name in names)])
    return table(header, rows)


def _fit_row(record: Record, names: list[str]) -> list[str]:
    vectors = record["competitors"]["mercer"].get("nSV")
    cells = [record["data"], f"{record['n']:,} × {record['d']}", f"{record['C']:g}"]
    cells += ["" if vectors is None else f"{vectors:,}", _best(record)]
    return [*cells, *(times(ratio(record, name)) for name in names)]


def misses(records: list[Record]) -> Iterator[str]:
    """Yield a sentence for each competitor that stopped above tol, and one for dual values that differ by more."""
    for name, title in _TITLES.items():
        missed = []
        for record in records:
            violation = record["competitors"].get(name, {}).get("violation")
            if violation is not None and violation > record["tol"] * (1.0 if name == "mercer" else 1.01):
                missed.append(f"{_named(record)} ({violation:.1e})")
        if missed:
            yield f"{title} stops above `tol` on {', '.join(missed)}."
    apart = [record for record in records if not record.get("check", {"same_objective": True})["same_objective"]]
    if apart:
        told = ", ".join(f"{_named(record)} ({record['check']['duals_apart']:.1e})" for record in apart)
        yield f"Dual values of float64 input differ by more than `tol` explains (relative): {told}."
    checked = [record["check"] for record in records if "check" in record]
    if checked and not apart:
        most = max(check["duals_apart"] for check in checked)
        yield f"All dual values of float64 input agree, up to a relative difference of at most {most:.1e}."


def _named(record: Record) -> str:
    return f"{record['data']} {record['form']} C={record['C']:g}"


def _present(records: list[Record], names: tuple[str, ...]) -> list[str]:
    return [name for name in names if any(ratio(record, name) is not None for record in records)]


def _best(record: Record) -> str:
    return seconds(record["competitors"]["mercer"].get("best"))


def small(section: Record) -> Iterator[str]:
    records = section["records"]
    header = ["data", "rows × features", "classes"]
    for what in records[0]["seconds"]:
        header += [f"{what}, mercer", "scikit-learn (1 thread)"]
    rows = []
    for record in records:
        cells = [record["data"], f"{record['n']:,} × {record['d']}", record["classes"]]
        for both in record["seconds"].values():
            cells += [seconds(both["mercer"]), times(both["sklearn"] / both["mercer"]) if "sklearn" in both else ""]
        rows.append(cells)
    yield table(header, rows)
    least = min(record["share of equal labels"] for record in records)
    yield f"Standardised, C = 1. Both predict the same label for at least {100 * least:.1f} % of the rows."


WRITERS: dict[str, Callable[[Record], Iterator[str]]] = {
    "fits": fits,
    "small": small,
}


# --- blocks of other pages -------------------------------------------------------------------------------------------


def host(results: Record) -> str:
    """Return the computer, the date and the versions in words."""
    facts = results["machine"]
    versions = facts.get("versions", {})
    names = ("mercer", "scikit-learn", "scikit-learn-intelex", "libsvm-official")
    told = [f"{name} {versions[name]}" for name in names if versions.get(name, "not installed") != "not installed"]
    level = {"avx2": "AVX2", "avx512": "AVX-512"}.get(
        facts.get("level", ""), facts.get("level", "unknown instructions")
    )
    known = f"{', '.join(told)}" if told else "versions not recorded"
    return f"{facts['threads']} threads of an {facts['cpu']} with {level}, {facts['date'][:10]}, {known}"


def speed_block(results: Record, page: str) -> str:
    """Return the opening of docs/speed.md with its tables."""
    section = results["sections"]["fits"]
    fitted = [record for record in section["records"] if record.get("kind") == "fit"]
    first = [record for record in fitted if record["form"] in _FORMS["standardised"]]
    means = {name: mean_ratio(first, name) for name in ("sklearn", "sklearnex")}
    told = f"{_times_word(means['sklearn'])} times as fast as scikit-learn, which computes on one thread"
    if means["sklearnex"] is not None:
        told += f", and {_times_word(means['sklearnex'])} times as fast as scikit-learn-intelex"
    parts = [
        f"mercer fits these kernel classifiers {told} (geometric means), and its time includes the certificate. The "
        f"last columns are multiples of mercer's time. Features are standardised. {host(results)}:",
        fit_table(first),
        *misses(first),
    ]
    raw = [record for record in fitted if record["form"] == "raw"]
    if raw:
        parts += ["Without standardisation (most of these data are mostly zeros, which mercer exploits):"]
        parts += [fit_table(raw), *misses(raw)]
    return "\n\n".join(parts)


def readme_block(results: Record, page: str) -> str:
    """Return README's table and the sentence about geometric means."""
    section = results["sections"]["fits"]
    fitted = [record for record in section["records"] if record.get("kind") == "fit"]
    first = [record for record in fitted if record["form"] in _FORMS["standardised"]]
    names = _present(first, ("sklearn", "sklearnex"))
    rows = [_fit_row(record, names) for record in first if (record["data"], record["C"]) in _README]
    header = ["data", "rows × features", "C", "support vectors", "mercer", *(_HEADS[name] for name in names)]
    means = " and ".join(times(mean_ratio(first, name)) for name in names)
    return "\n\n".join(
        [
            "The table shows the time of a fit with its certificate, and the times of other libraries as multiples of "
            "it: Gaussian kernel, `tol=1e-3`, float64, two classes, standardised features, "
            f"{host(results)}. scikit-learn's SVC always computes on one thread.",
            table(header, rows),
            f"Over all {len(first)} fits that we measured there, the geometric means are {means}.",
        ]
    )


def gpu_block(results: Record, page: str) -> str:
    """Return the table of docs/gpu.md."""
    return "\n\n".join(gpu(results["sections"]["gpu"]))


def gpu(section: Record) -> Iterator[str]:
    header = ["what", "rows × columns", "16 cores", "the device", "one pass"]
    rows = [
        [record[name] or ("not measured" if name == "16 cores" else "") for name in header]
        for record in section["records"]
    ]
    yield "\n".join(
        [
            "| " + " | ".join(header) + " |",
            "|---|---|---|---|---|",
            *("| " + " | ".join(map(str, row)) + " |" for row in rows),
        ]
    )


WRITERS["gpu"] = gpu


def checks(path: Path) -> Iterator[str]:
    """Yield the part about the falsifier and the mutation tests, or how to run them."""
    yield "## Attempts to refute, and mistakes that tests notice"
    if not path.exists():
        yield (
            "No run has been recorded. `python benchmarks/checks.py falsifier` and "
            "`python benchmarks/checks.py mutants` record one."
        )
        return
    found = json.loads(path.read_text())
    yield table(
        ["what", "date", "commit", "command", "result"],
        [[one["what"], one["date"], one["commit"], f"`{one['command']}`", one["result"]] for one in found["runs"]],
    )
