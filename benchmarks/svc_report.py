"""Markdown from the results of compare_svc.py: the full report, and the tables of docs/speed.md."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

from harness import geometric_mean, table
from peers import TITLES

Record = dict[str, Any]
_WIDE = ("sklearn", "sklearnex", "libsvm", "thundersvm")  # compared with mercer on float64 input
_NARROW = ("sklearnex32", "sklearn32")  # compared with mercer on float32 input
_NAMES = {**TITLES, "sklearn32": "scikit-learn, float32"}
# The forms of the data that a table of docs/speed.md shows together.
_FORMS = {"Standardised data:": ("standardised", "generated"), "Raw data, most of them mostly zeros:": ("raw",)}
# Peers stop on numbers of their own that are rounded: a hair above tol is not worth a note.
_HAIR = 1.01


def report(results: Record) -> str:
    """Everything that was measured."""
    sections = results["sections"]
    parts = [heading(results)]
    for name, write in _WRITERS.items():
        if sections.get(name):
            parts.append(write(sections[name]))
    if results.get("skipped"):
        parts.append("Skipped: " + "; ".join(results["skipped"]) + ".")
    return "\n\n".join(parts) + "\n"


def heading(results: Record) -> str:
    """The machine, the versions, and who is not here."""
    facts = results["machine"]
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items())
    load = "" if facts["load"] is None else f", load {facts['load']:.1f} at the start"
    lines = [
        f"{facts['date']} · {facts['cpu']}, {facts['cores']} cores, {facts['threads']} threads for everybody{load}; "
        f"mercer on {facts['level']}; Python {facts['python']}, {versions}."
    ]
    if (facts["load"] or 0) > 0.5:
        lines.append(
            "The machine was busy: ratios are rough, and those of libsvm and thundersvm, whose OpenMP threads wait for "
            "each other, are far too large. Quote from an idle machine only."
        )
    lines += [f"{_NAMES[name]} is missing: {why}." for name, why in results.get("absent", {}).items()]
    return "\n\n".join(lines)


def readme(results: Record) -> str:
    """The tables of docs/speed.md: standardised data, and raw ones."""
    fits, facts = results["sections"]["fit"], results["machine"]
    predicted = {_key(record): record for record in results["sections"].get("predict", [])}
    shown = [name for name in (*_WIDE, "sklearnex32") if _present(fits, name)]
    header = ["data", "rows × features", "C", "SVs", "mercer", *(f"× {_NAMES[name]}" for name in shown)]
    header += ["predict, × scikit-learn"] if predicted else []
    parts = []
    for title, forms in _FORMS.items():
        some = [record for record in fits if record["form"] in forms]
        if not some:
            continue
        rows = []
        for record in some:
            cells = [record["data"], f"{record['n']} × {record['d']}", f"{record['C']:g}"]
            cells += [_get(record, "mercer", "nSV"), _seconds(_best(record, "mercer"))]
            cells += [_times(_ratio(record, name)) for name in shown]
            if predicted:
                cells.append(_times(_ratio(predicted.get(_key(record), {}), "sklearn")))
            rows.append(cells)
        means = [_mean_cell(some, name) for name in shown]
        known = [predicted[_key(record)] for record in some if _key(record) in predicted]
        means += [_mean_cell(known, "sklearn")] if predicted else []
        rows.append(["geometric mean", "", "", "", "", *means])
        parts += [title, table(header, rows)]
    notes = (
        f'Gaussian kernel, gamma="scale", tol=1e-3, {facts["threads"]} threads of {facts["cpu"]} ({facts["level"]}); '
        "minimum of interleaved runs in one process, mercer's certificate included. "
        "× is the other library's time divided by mercer's on the same input."
    )
    return "\n\n".join([*parts, notes, *_misses(fits)])


# --- sections -------------------------------------------------------------------------------------------------------


def _fit(records: list[Record]) -> str:
    return "\n\n".join(
        [
            "## Training, Gaussian kernel",
            _race_table(records, (*_WIDE, "mercer32", "sklearnex32")),
            "Cells: the competitor's time divided by mercer's on the same input (and its seconds, the minimum of its "
            "runs); ± is the spread of mercer's own runs. float64 input unless the column says float32.",
            *_slower(records),
            "### True violation, recomputed in float64 from the dual coefficients on the user's rows",
            _truth_table(records),
            *_misses(records),
            _inside(records),
        ]
    )


def _inside(records: list[Record]) -> str:
    header = ["data", "n", "C", "SVs", "bound", "solve ÷ bound", "of it the loop", "certificate ÷ bound"]
    header += ["kernel units", "of the certificate", "certificates"]
    rows = []
    for record in records:
        inside = record["inside"]
        ratio = {part: inside[part] / inside["bound"] for part in ("solve", "loop", "certificate")}
        cells = [record["data"], record["n"], f"{record['C']:g}", inside["nSV"], _seconds(inside["bound"])]
        cells += [f"{ratio['solve']:.1f}", f"{ratio['loop']:.1f}", f"{ratio['certificate']:.1f}"]
        rows.append([*cells, f"{inside['units']:.2f}", f"{inside['certificate_units']:.2f}", inside["certificates"]])
    chosen = {
        "n ≥ 10,000 and C ≤ 10": [r["inside"] for r in records if r["n"] >= 10_000 and r["C"] <= 10],
        "C = 100": [r["inside"] for r in records if r["C"] == 100],
        "all rows": [r["inside"] for r in records],
    }
    lines = [
        f"Median over {which}: solve {median(i['solve'] / i['bound'] for i in some):.1f}, "
        f"certificate {median(i['certificate'] / i['bound'] for i in some):.1f}, "
        f"kernel units {median(i['units'] for i in some):.2f}."
        for which, some in chosen.items()
        if some
    ]
    note = (
        "The bound is one fused float32 pass over all rows with the final support vectors. Solve is everything but the "
        "certificate: validation, merging and preparation too."
    )
    return "\n\n".join(["### Distance to the n × nSV bound", table(header, rows), note, *lines])


def _predict(records: list[Record]) -> str:
    peers = [name for name in (*_WIDE, "mercer32", "sklearn32", "sklearnex32") if _present(records, name)]
    header = ["data", "test rows", "d", "C", "mercer", *(_NAMES[name] for name in peers)]
    rows = [
        [record["data"], record["n_test"], record["d"], f"{record['C']:g}", _seconds(_best(record, "mercer"))]
        + [_cell(record, name) for name in peers]
        for record in records
    ]
    rows.append(["geometric mean", "", "", "", "", *(_mean_cell(records, name) for name in peers)])
    return "\n\n".join(["## Prediction (decision_function)", table(header, rows), *_slower(records)])


def _small(records: list[Record]) -> str:
    header = ["data", "rows × features", "classes"]
    header += [f"{what}, {side}" for what in records[0]["seconds"] for side in ("mercer", "× scikit-learn")]
    rows = []
    for record in records:
        cells = [record["data"], f"{record['n']} × {record['d']}", record["classes"]]
        for seconds in record["seconds"].values():
            ours, theirs = seconds["mercer"], seconds.get("sklearn")
            cells += [f"{1e3 * ours:.3g} ms", "" if theirs is None else f"{theirs / ours:.2f}×"]
        rows.append(cells)
    return "\n\n".join(["## Small data, standardised, C = 1", table(header, rows)])


def _threads(records: list[Record]) -> str:
    counts = list(records[0]["seconds"])
    header = ["data", "form", "n × d", "C", *(f"{count} threads" for count in counts)]
    header += [f"serial share, {count}" for count in records[0]["serial"]]
    rows = []
    for record in records:
        cells = [record["data"], record["form"], f"{record['n']} × {record['d']}", f"{record['C']:g}"]
        cells += [_seconds(record["seconds"][count]) for count in counts]
        rows.append([*cells, *(f"{100 * share:.0f} %" for share in record["serial"].values())])
    note = (
        "The serial share s is the part of the time in which one thread works: cpu ÷ wall = s + t(1 − s) for t "
        "threads, so that s = 2 − cpu ÷ wall for two."
    )
    return "\n\n".join(["## Threads", table(header, rows), note])


def _multiclass(records: list[Record]) -> str:
    peers = [name for name in TITLES if _present(records, name)]
    header = ["data", "n", "C", "", *(_NAMES[name] for name in peers)]
    rows: list[list[Any]] = []
    for record in records:
        start = [record["data"], record["n"], f"{record['C']:g}"]
        rows.append([*start, "time", *(_cell(record, name) for name in peers)])
        accuracies = [_get(record, name, "accuracy") for name in peers]
        rows.append(["", "", "", "accuracy", *("" if a is None else f"{100 * a:.2f} %" for a in accuracies)])
        rows.append(["", "", "", "violation", *(_violation(record, name) for name in peers)])
    return "\n\n".join(["## Several classes, one against one", table(header, rows), *_slower(records)])


def _kernels(records: list[Record]) -> str:
    header = ["kernel", "input", "data", "n × d", "C", "mercer", "scikit-learn", "violation", "of scikit-learn"]
    rows = []
    for record in records:
        cells = [record["kernel"], record["input"], record["data"], f"{record['n']} × {record['d']}"]
        cells += [f"{record['C']:g}", _seconds(_best(record, "mercer")), _cell(record, "sklearn")]
        rows.append([*cells, _violation(record, "mercer"), _violation(record, "sklearn")])
    return "\n\n".join(["## Other kernels and CSR input", table(header, rows)])


def _hard(records: list[Record]) -> str:
    header = ["data", "n", "C", "gamma ÷ scale", "tol", "true violation", "stop_reason_", "seconds"]
    rows = [
        [record["data"], record["n"], f"{record['C']:g}", f"{record['gamma_factor']:g}", f"{record['tol']:g}"]
        + ([f"{record['violation']:.2e}", record["stop_reason"]] if "violation" in record else ["", record["error"]])
        + [_seconds(record.get("best"))]
        for record in records
    ]
    wrong = [r for r in records if r.get("stop_reason") == "converged" and r["violation"] > r["tol"]]
    reached = sum(r.get("violation", float("inf")) <= r["tol"] for r in records)
    verdict = f"{reached} of {len(records)} reach tol; {len(wrong)} claim it and do not. "
    verdict += f"Defaults but for max_time={records[0]['max_time']:g} s."
    return "\n\n".join(["## Large C, extreme widths, tight tolerances", table(header, rows), verdict])


def _growth(records: list[Record]) -> str:
    sizes = sorted({n for record in records for n in record["sizes"]})
    header = ["data", "C", "", *(f"n = {n}" for n in sizes), "exponent"]
    rows = []
    for record in records:
        for name, seconds in record["seconds"].items():
            found = dict(zip(record["sizes"], seconds, strict=True))
            exponent = record["exponents"].get(name)
            cells = [_seconds(found.get(n)) for n in sizes] + ["" if exponent is None else f"{exponent:.2f}"]
            rows.append([record["data"], f"{record['C']:g}", _NAMES[name], *cells])
    return "\n\n".join(["## Growth with the number of rows", table(header, rows)])


def _memory(records: list[Record]) -> str:
    header = ["data", "n × d", "C", "", "extra peak memory", "cache_size", "seconds"]
    rows = []
    for record in records:
        start = [record["data"], f"{record.get('n')} × {record.get('d')}", f"{record['C']:g}"]
        start.append(_NAMES[record["competitor"]])
        if "error" in record:
            rows.append([*start, record["error"], "", ""])
        else:
            rows.append([*start, f"{record['megabytes']:.0f} MB", record["cache_size"], _seconds(record["seconds"])])
    return "\n\n".join(["## Memory of a fit beyond its data", table(header, rows)])


_WRITERS: dict[str, Callable[[list[Record]], str]] = {
    "fit": _fit,
    "predict": _predict,
    "small": _small,
    "threads": _threads,
    "multiclass": _multiclass,
    "kernels": _kernels,
    "hard": _hard,
    "growth": _growth,
    "memory": _memory,
}


# --- cells ----------------------------------------------------------------------------------------------------------


def _race_table(records: list[Record], names: Iterable[str]) -> str:
    peers = [name for name in names if _present(records, name)]
    header = ["data", "form", "n × d", "C", "gamma", "SVs", "mercer", "±", *(_NAMES[name] for name in peers)]
    rows = []
    for record in records:
        cells = [record["data"], record["form"], f"{record['n']} × {record['d']}", f"{record['C']:g}"]
        cells += [f"{record['gamma']:.4g}", _get(record, "mercer", "nSV"), _seconds(_best(record, "mercer"))]
        spread = _get(record, "mercer", "spread")
        cells.append("" if spread is None else f"{100 * spread:.0f} %")
        rows.append([*cells, *(_cell(record, name) for name in peers)])
    rows.append(["geometric mean", *[""] * 7, *(_mean_cell(records, name) for name in peers)])
    return table(header, rows)


def _truth_table(records: list[Record]) -> str:
    names = [name for name in TITLES if _present(records, name)]
    header = ["data", "n", "C", *(_NAMES[name] for name in names), "largest relative difference of dual values"]
    rows = []
    for record in records:
        duals = [dual for name in names if (dual := _get(record, name, "dual")) is not None]
        apart = (max(duals) - min(duals)) / max(duals) if duals else float("nan")
        cells = [record["data"], record["n"], f"{record['C']:g}", *(_violation(record, name) for name in names)]
        rows.append([*cells, f"{apart:.1e}"])
    return table(header, rows)


def _misses(records: list[Record]) -> list[str]:
    """One sentence per competitor that stopped above tol somewhere."""
    sentences = []
    for name in TITLES:
        missed = []
        for record in records:
            violation = _get(record, name, "violation")
            if violation is not None and violation > record["tol"] * (1.0 if name == "mercer" else _HAIR):
                missed.append(f"{_named(record)} ({violation:.1e})")
        if missed:
            sentences.append(f"{_NAMES[name]} misses tol on {', '.join(missed)}.")
    return sentences


def _slower(records: list[Record]) -> list[str]:
    """Where mercer loses."""
    lost = [
        f"{_named(record)} against {_NAMES[name]} ({ratio:.2f}×)"
        for record in records
        for name in (*_WIDE, *_NARROW)
        if (ratio := _ratio(record, name)) is not None and ratio < 1
    ]
    return [f"mercer is slower on {', '.join(lost)}."] if lost else ["mercer is the fastest on every row."]


def _named(record: Record) -> str:
    form = f" ({record['form']})" if record.get("form") in ("standardised", "raw") else ""
    return f"{record['data']}{form} C={record['C']:g}"


def _key(record: Record) -> tuple[Any, ...]:
    return record["data"], record["form"], record["n"], record["C"]


def _present(records: list[Record], name: str) -> bool:
    return any(name in record["competitors"] for record in records)


def _get(record: Record, name: str, key: str) -> Any:
    return record.get("competitors", {}).get(name, {}).get(key)


def _best(record: Record, name: str) -> float | None:
    return _get(record, name, "best")


def _ratio(record: Record, name: str) -> float | None:
    """The competitor's time over mercer's on input of the same precision."""
    ours, theirs = _best(record, "mercer32" if name in _NARROW else "mercer"), _best(record, name)
    return None if ours is None or theirs is None else theirs / ours


def _mean_cell(records: list[Record], name: str) -> str:
    """The geometric mean of the ratios, and of how many rows if not of all."""
    if name.startswith("mercer"):
        return ""
    ratios = [ratio for record in records if (ratio := _ratio(record, name)) is not None]
    mean = f"**{_times(geometric_mean(ratios))}**"
    return mean if len(ratios) == len(records) else f"{mean} ({len(ratios)} of {len(records)} rows)"


def _cell(record: Record, name: str) -> str:
    error = _get(record, name, "error")
    if error:
        return f"failed: {error}"
    if name.startswith("mercer"):
        return _seconds(_best(record, name))
    ratio = _ratio(record, name)
    return "" if ratio is None else f"{_times(ratio)} ({_seconds(_best(record, name))})"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}×"


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"


def _violation(record: Record, name: str) -> str:
    violation = _get(record, name, "violation")
    return "" if violation is None else f"{violation:.2e}"
