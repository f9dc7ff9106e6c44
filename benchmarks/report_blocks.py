"""Markdown that report.py writes between the marks of README.md and of single pages, from one computer's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import report_tables
from harness import table
from report_tables import FORMS, HEADS, fit_row, fit_table, mean_cell, mean_ratio, misses, present, ratio, times_word

Record = dict[str, Any]
# The rows of README.md: data and C, standardised.
_README = (("letter", 1), ("spam", 10), ("usps", 10), ("mnist", 1))
# Packages whose versions matter beside mercer's, by section.
_RIVALS = {
    "fits": ("scikit-learn", "scikit-learn-intelex", "libsvm-official"),
    "linear": ("scikit-learn", "liblinear-official"),
    "shapley": ("shap",),
    "compression": (),
}


def host(results: Record, name: str = "fits") -> str:
    """Return the computer, and the date and the versions of a section, in words."""
    facts = results["machine"] | results["sections"][name]
    versions = facts.get("versions", {})
    names = ("mercer", *_RIVALS.get(name, ("scikit-learn",)))
    told = [f"{one} {versions[one]}" for one in names if versions.get(one, "not installed") != "not installed"]
    level = {"avx2": "AVX2", "avx512": "AVX-512"}.get(
        facts.get("level", ""), facts.get("level", "unknown instructions")
    )
    known = f"{', '.join(told)}" if told else "versions not recorded"
    return f"{facts['threads']} threads of an {facts['cpu']} with {level}, {facts['date'][:10]}, {known}"


def speed_block(results: Record, page: str) -> str:
    """Return the opening of docs/speed.md with its tables."""
    section = results["sections"]["fits"]
    fitted = [record for record in section["records"] if record.get("kind") == "fit"]
    first = [record for record in fitted if record["form"] in FORMS["standardised"]]
    means = {name: mean_ratio(first, name) for name in ("sklearn", "sklearnex")}
    told = f"{times_word(means['sklearn'])} times as fast as scikit-learn, which computes on one thread"
    if means["sklearnex"] is not None:
        told += f", and {times_word(means['sklearnex'])} times as fast as scikit-learn-intelex"
    parts = [
        f"mercer fits these kernel classifiers {told} (geometric means), and its time includes the certificate. The "
        f"last columns are multiples of mercer's time. Features are standardised. {host(results)}:",
        fit_table(first),
        *misses(first),
        *([section["note"]] if "note" in section else []),
    ]
    raw = [record for record in fitted if record["form"] == "raw"]
    if raw:
        parts += ["Without standardisation (most of these data are mostly zeros, which mercer exploits):"]
        parts += [fit_table(raw), *misses(raw)]
    return "\n\n".join(parts)


def has_readme_rows(section: Record) -> bool:
    """Return whether a section of fits has all rows of README's table, so that pages can be made from it."""
    fitted = [r for r in section["records"] if r.get("kind") == "fit" and r["form"] in FORMS["standardised"]]
    timed = {(record["data"], record["C"]) for record in fitted if ratio(record, "sklearn") is not None}
    return set(_README) <= timed


def readme_block(results: Record, page: str) -> str:
    """Return README's table and the sentence about geometric means."""
    section = results["sections"]["fits"]
    fitted = [record for record in section["records"] if record.get("kind") == "fit"]
    first = [record for record in fitted if record["form"] in FORMS["standardised"]]
    names = present(first, ("sklearn", "sklearnex"))
    rows = [fit_row(record, names) for record in first if (record["data"], record["C"]) in _README]
    header = ["data", "rows × features", "C", "support vectors", "mercer", *(HEADS[name] for name in names)]
    means = " and ".join(mean_cell(first, name).replace("*", "") for name in names)
    return "\n\n".join(
        [
            "The table shows the time of a fit with its certificate, and the times of other libraries as multiples of "
            "it: Gaussian kernel, `tol=1e-3`, float64, two classes, standardised features, "
            f"{host(results)}. scikit-learn's SVC always computes on one thread.",
            table(header, rows),
            f"Over all {len(first)} fits that we measured there, the geometric means are {means}. "
            "[Speed](docs/speed.md) says how we measured; [Results](docs/results.md) has all measurements with dates, "
            "versions and commands.",
        ]
    )


def table_of(name: str, write: Callable[[Record], Iterator[str]] | None = None) -> Callable[[Record, str], str]:
    """Return a function that writes a page's block: where and when a section was measured, and its tables."""

    def block(results: Record, page: str) -> str:
        tables = (write or report_tables.WRITERS[name])(results["sections"][name])
        return "\n\n".join([f"Measured on {host(results, name)}:", *tables])

    return block


def gpu_block(results: Record, page: str) -> str:
    """Return the table of docs/gpu.md."""
    return "\n\n".join(report_tables.gpu(results["sections"]["gpu"]))


def others_block(results: Record, page: str) -> str:
    """Return the table of docs/speed.md about machines and tasks other than kernel classifiers."""
    found = {
        name: results["sections"][name]["records"] for name in ("least_squares", "linear", "shapley", "compression")
    }
    ridge = [r["speedup"] for r in found["least_squares"] if r["kind"] == "ridge" and r["dtype"] == "float64"]
    linear = list(filter(None, map(_rival_ratio, found["linear"])))
    ours = [1e3 * r["wall"] for r in found["shapley"] if r["what"] == "mercer"]
    shap = [1e3 * r["wall"] for r in found["shapley"] if "mercer's predict" in r["what"]]
    small = [r for r in found["compression"] if r["vectors"] >= 500]
    faster, lost = ([r[what] for r in small] for what in ("times faster", "lost"))
    rows = [
        [
            "`RLSRegressor`",
            f"{_range(ridge)} times as fast as scikit-learn's `KernelRidge`",
            "[least squares](least_squares.md#measured)",
        ],
        [
            "`LinearSVC`",
            f"{_range(linear)} times as fast as LIBLINEAR or scikit-learn's, whichever is faster",
            "[linear machines](linear.md#against-liblinear)",
        ],
        [
            f"exact Shapley values of {found['shapley'][0]['features']} features",
            f"{_range(ours)} ms a row; `shap.KernelExplainer` takes {_range(shap)} ms for approximate ones",
            "[explanations](explanations.md#what-it-costs)",
        ],
        [
            "machines compressed to a tenth of their vectors",
            f"predict {_range(faster)} times as fast and lose at most {max(lost):.2f} points of accuracy",
            "[compression](compression.md)",
        ],
    ]
    return table(["what", "measured", "details"], rows)


def _rival_ratio(record: Record) -> float | None:
    """Return the fastest rival's time over mercer's, None where no rival solved the problem."""
    spent = {name: timing.get("best") for name, timing in record["seconds"].items() if not name.startswith("mercer")}
    times = [best for best in spent.values() if best is not None]
    return min(times) / record["seconds"]["mercer"]["best"] if times else None


def _range(values: list[float]) -> str:
    least, most = (f"{value:.{0 if value >= 10 else 1}f}" for value in (min(values), max(values)))
    return least if least == most else f"{least} to {most}"
