"""Markdown of each section of report.py's results, for docs/results.md."""

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
HEADS = {
    "sklearn": "scikit-learn (1 thread)",
    "sklearnex": "scikit-learn-intelex",
    "libsvm": "LIBSVM",
    "thundersvm": "ThunderSVM",
    "sklearnex32": "scikit-learn-intelex, float32",
    "sklearn32": "scikit-learn, float32 (1 thread)",
    "mercer32": "mercer, float32",
}
_TITLES = {**svc_report.TITLES, "sklearnex": "scikit-learn-intelex", "sklearnex32": "scikit-learn-intelex, float32"}
_NARROW = ("sklearnex32", "sklearn32")  # compared with mercer on float32 input
FORMS = {"standardised": ("standardised", "generated"), "raw": ("raw",)}
# Seconds above which report_sections.py times a library once.
ONCE = 10.0


def seconds(value: float | None) -> str:
    """Return a time with three digits."""
    if value is None:
        return ""
    return f"{value:.0f} s" if value >= 100 else f"{value:.3g} s" if value >= 0.01 else f"{1e3 * value:.3g} ms"


def times(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}×" if value >= 1000 else f"{value:.1f}×"


def times_word(value: float) -> str:
    """Return a mean for a sentence: without decimals from 10 on."""
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def ratio(record: Record, name: str) -> float | None:
    """Return the competitor's time over mercer's on input of the same precision, None without one of them.

    Files from before report.py have the ratio alone.
    """
    timings = record["competitors"]
    other = timings.get(name, {})
    if "ratio" in other:
        return other["ratio"]
    ours = timings.get("mercer32" if name in _NARROW else "mercer", {})
    both = [one.get("best") for one in (ours, other)]
    return None if None in both else both[1] / both[0]


def mean_ratio(records: list[Record], name: str) -> float | None:
    found = [value for record in records if (value := ratio(record, name)) is not None]
    return geometric_mean(found) if found else None


def mean_cell(records: list[Record], name: str) -> str:
    """Return the geometric mean for a table, with the number of rows that it is over if not of all."""
    count = sum(ratio(record, name) is not None for record in records)
    mean = f"**{times(mean_ratio(records, name))}**"
    return mean if count == len(records) else f"{mean} ({count} rows)"


# --- sections --------------------------------------------------------------------------------------------------------


def fits(section: Record) -> Iterator[str]:
    """Yield a table of fits for each form, what was missed, and a table of predictions."""
    fitted = [record for record in section["records"] if record.get("kind") == "fit"]
    for form, forms in FORMS.items():
        some = [record for record in fitted if record["form"] in forms]
        if some:
            yield f'**Fit, {form} features**, Gaussian kernel, `gamma="scale"`, `tol=1e-3`, two classes:'
            yield fit_table(some)
    yield from misses(fitted)
    spent = [one.get("best") or 0.0 for record in fitted for one in record["competitors"].values()]
    if max(spent, default=0.0) > ONCE and "repeats" in section:
        yield f"Whoever takes more than {ONCE:g} s is timed once, the others at least {section['repeats']} times."
    predicted = [record for record in section["records"] if record.get("kind") == "predict"]
    if predicted:
        names = present(predicted, ("sklearn", "sklearnex", "libsvm"))
        rows = [
            [record["data"], record["form"], f"{record.get('n_test', '')}", f"{record['C']:g}", _best(record)]
            + [times(ratio(record, name)) for name in names]
            for record in predicted
        ]
        means = [mean_cell(predicted, name) for name in names]
        rows.append(["geometric mean", "", "", "", "", *means])
        yield "**Prediction** (`decision_function`) by the same models:"
        yield table(["data", "form", "test rows", "C", "mercer", *(HEADS[name] for name in names)], rows)


def fit_table(records: list[Record]) -> str:
    """Return the table of some fits with geometric means in the last row."""
    names = present(records, ("sklearn", "sklearnex", "sklearnex32", "libsvm"))
    header = ["data", "rows × features", "C", "support vectors", "mercer", *(HEADS[name] for name in names)]
    rows = [fit_row(record, names) for record in records]
    rows.append(["geometric mean", "", "", "", "", *(mean_cell(records, name) for name in names)])
    return table(header, rows)


def fit_row(record: Record, names: list[str]) -> list[str]:
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


def present(records: list[Record], names: tuple[str, ...]) -> list[str]:
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


def growth(section: Record) -> Iterator[str]:
    records = section["records"]
    sizes = sorted({n for record in records for n in record["sizes"]})
    rows, unequal = [], []
    for record in records:
        for name, spent in record["seconds"].items():
            found = dict(zip(record["sizes"], spent, strict=True))
            who = "mercer" if name == "mercer" else HEADS[name]
            cells = [record["data"], f"{record['C']:g}", who, *(seconds(found.get(n)) for n in sizes)]
            rows.append([*cells, f"{record['exponents'][name]:.2f}"])
        unequal += [check["duals_apart"] for check in record["checks"] if not check["same_objective"]]
    header = ["data", "C", "library", *(f"n = {n:,}" for n in sizes), "exponent of n"]
    yield table(header, rows)
    if unequal:
        yield f"Dual values differ by up to {max(unequal):.1e} (relative), more than `tol` explains."


def growth_in_d(section: Record) -> Iterator[str]:
    yield fit_table(section["records"])
    yield from misses(section["records"])


def threads(section: Record) -> Iterator[str]:
    records = section["records"]
    counts = list(records[0]["seconds"])
    header = ["data", "rows × features", "C", *(f"{count} thread{'s' if count != '1' else ''}" for count in counts)]
    header += [f"{count} against 1" for count in counts[1:]]
    rows = []
    for record in records:
        spent = record["seconds"]
        cells = [record["data"], f"{record['n']:,} × {record['d']}", f"{record['C']:g}", *map(seconds, spent.values())]
        rows.append([*cells, *(times(spent["1"] / spent[count]) for count in counts[1:])])
    yield table(header, rows)
    yield f"Dual values of all numbers of threads differ by at most {max(r['duals_apart'] for r in records):.0e}."


_LINEAR = {
    "mercer": "mercer",
    "sklearn": "scikit-learn (1 thread)",
    "liblinear dual": "LIBLINEAR, dual (1 thread)",
    "liblinear primal": "LIBLINEAR, primal (1 thread)",
}


def linear(section: Record) -> Iterator[str]:
    rows = []
    for record in section["records"]:
        spent = {name: timing.get("best") for name, timing in record["seconds"].items()}
        cells = [record["set"], record["loss"], f"{record['target']:.0e}", seconds(spent["mercer"])]
        for name in list(_LINEAR)[1:]:
            reached = record["reached"].get(name)
            stuck = "" if reached is None else f"stuck at {reached:.0e}"
            cells.append(stuck if spent.get(name) is None else times(spent[name] / spent["mercer"]))
        rows.append([*cells, f"{record['reached']['mercer']:.0e}"])
    yield table(["data", "loss", "relative gap asked", *_LINEAR.values(), "mercer's true gap"], rows)
    yield (
        "Everybody solves LIBLINEAR's problem (regularised bias, C = 1) to the same relative duality gap, which is "
        "recomputed here. LIBLINEAR's time includes the copy of X that its interface makes. A library is stuck where "
        "it did not come closer with fits of two seconds. `data.py` does not fetch reuters and rtpolarity."
    )


def least_squares(section: Record) -> Iterator[str]:
    yield from ridge(section)
    yield from landmarks(section)


def ridge(section: Record) -> Iterator[str]:
    rows = []
    for r in section["records"]:
        if r["kind"] == "ridge":
            cells = [r["data"], f"{r['n']:,}", r["dtype"], seconds(r["mercer"]["best"]), times(r["speedup"])]
            cells += [
                f"{r['mercer']['rmse']:.6f}",
                f"{r['scikit-learn']['rmse']:.6f}",
                f"{r['mercer']['violation']:.0e}",
            ]
            rows.append(cells)
    header = ["data", "rows", "input", "`RLSRegressor`", "`KernelRidge`", "test RMSE", "of `KernelRidge`", "residual"]
    yield table(header, rows)


def landmarks(section: Record) -> Iterator[str]:
    rows = [
        [r["data"], f"{r['n']:,}", seconds(min(r["seconds"]["mercer"])), times(r["times faster"])]
        + [f"{r['rmse'][who]:.4f}" for who in ("mercer", "scikit-learn")]
        for r in section["records"]
        if r["kind"] == "landmarks"
    ]
    if rows:
        header = ["data", "rows", "`NystromRLS`, 2,000 landmarks", "`Nystroem` + `Ridge`", "test RMSE", "its RMSE"]
        yield table(header, rows)


def gpu(section: Record) -> Iterator[str]:
    header = ["what", "rows × columns", "16 cores", "the device", "one pass"]
    lines = [header, ["---"] * len(header)]
    for record in section["records"]:
        missing = {"16 cores": "not measured"}
        lines.append([str(record[name]) if record[name] is not None else missing.get(name, "") for name in header])
    yield "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cluster(section: Record) -> Iterator[str]:
    records = section["records"]
    first = records[0]
    rows = []
    for record in records:
        calls = sum(verb["calls"] for verb in record["report"].values())
        out, back = (
            sum(verb[f"bytes_{way}"] for verb in record["report"].values()) / 1e6 for way in ("sent", "received")
        )
        apart = abs(record["dual"] / first["dual"] - 1.0)
        cells = [record["what"], f"{record['n']:,} × {record['d']}", seconds(record["seconds"])]
        moved = [f"{calls:.0f}", f"{out:.0f} MB", f"{back:.0f} MB"] if record["report"] else ["", "", ""]
        rows.append([*cells, *moved, f"{apart:.0e}"])
    header = ["computed by", "rows × features", "fit", "calls", "sent", "received", "dual, relative to the first"]
    yield table(header, rows)
    yield (
        "Each is timed once, and workers have just started. All of them are processes of this one computer: the table "
        "shows what the division costs, not a speed-up."
    )


def tuning(section: Record) -> Iterator[str]:
    rows = []
    for r in section["records"]:
        cells = [r["data"], f"{r['n']:,}", seconds(r["mercer"]), seconds(r["scikit-learn, extrapolated"])]
        cells += [times(r["scikit-learn, extrapolated"] / r["mercer"]), r["cells"]]
        rows.append([*cells, f"{r['most samples that differ']:.0f} of {r['test samples of a fold']}"])
    header = ["data", "rows", "`tune`", "`GridSearchCV(SVC)`", "ratio", "cells timed", "held-out labels that differ"]
    yield table(header, rows)
    yield (
        "CPU seconds of one search, 5 folds, 10 C × 8 γ, nothing skipped. scikit-learn's time is extrapolated from "
        "some of the 80 cells in one fold; on each of them, the scores of both differ by at most the samples of the "
        "last column."
    )


def calibration(section: Record) -> Iterator[str]:
    from compare_calibration import rows_of

    yield table(*rows_of(section["records"]))
    yield (
        "Sigmoids on five folds. scikit-learn's time includes its fits: it has no fitted machine to begin with. With "
        "several classes, mercer couples probabilities of pairs and scikit-learn divides those of each class by their "
        "sum, so their losses differ."
    )


def shapley(section: Record) -> Iterator[str]:
    records = section["records"]
    rows = [
        [r["what"], r["rows"], seconds(r["wall"]), times(r["wall ratio"]), times(r["cpu ratio"]), f"{r['error']:.1%}"]
        for r in records
    ]
    header = ["", "rows at once", "time of a row", "wall ratio", "CPU ratio", "error ÷ largest value"]
    yield table(header, rows)
    one, worst = records[0], max(records[0]["definition"].values())
    yield (
        f"{one['features']} features, {one['vectors']:,} support vectors, {one['background']} background rows. With 8 "
        f"features, both agree with the sum over all sets of features up to {worst:.0e} of the largest value."
    )


def compression(section: Record) -> Iterator[str]:
    rows = []
    for r in section["records"]:
        wrong = r["kept but different"] + r["beyond the bound"]
        cells = [r["task"], f"{r['vectors']:,} to {r['kept vectors']:,}", f"{r['accuracy']:.2f} %", f"{r['lost']:.2f}"]
        cells += [times(r["times faster"]), seconds(r["processor seconds of compress"]), f"{r['labels kept']:.1%}"]
        rows.append([*cells, wrong])
    header = ["data", "vectors", "accuracy", "points lost", "predict", "compress", "labels proven", "false proofs"]
    yield table(header, rows)
    yield "C = 10, a tenth of the vectors, CPU seconds of one thread; `predict` is the speed relative to the original."


def tables(section: Record) -> Iterator[str]:
    who = ("mercer.easy", "by hand")
    rows = [
        [r["data"], f"{r['n']:,}"]
        + [f"{r['scores'][name]:.3f} ± {r['standard errors'][name]:.3f}" for name in who]
        + [seconds(r["cpu seconds"][name]) for name in who]
        for r in section["records"]
    ]
    header = ["table", "rows", *(f"score, {name}" for name in who), *(f"CPU of all folds, {name}" for name in who)]
    yield table(header, rows)
    yield (
        "Generated tables with dates, odd cells and categories (`benchmarks/compare_tables.py`), three outer folds: R² "
        "for numbers, balanced accuracy for classes. By hand: a column transformer and scikit-learn's `GridSearchCV`."
    )


def pages(section: Record) -> Iterator[str]:
    rows = []
    for r in section["records"]:
        target = r["page"].removeprefix("docs/")
        page = f"[{target}]({target})" if target != r["page"] else target  # README.md is no page of the site
        command = f"`{r['command']}`" if r.get("command") else "not recorded"
        told = [" ".join(figure.split()) for figure in r["figures"] if not figure.startswith("|")]
        told += [f"the {count} rows of a table"] if (count := len(r["figures"]) - len(told)) else []
        rows.append([page, r["what"], ", ".join(told), r["date"], command])
    yield table(["page", "what", "figures", "on the page since", "command"], rows)


WRITERS: dict[str, Callable[[Record], Iterator[str]]] = {
    "fits": fits,
    "small": small,
    "growth": growth,
    "growth_in_d": growth_in_d,
    "threads": threads,
    "linear": linear,
    "least_squares": least_squares,
    "gpu": gpu,
    "cluster": cluster,
    "tuning": tuning,
    "calibration": calibration,
    "shapley": shapley,
    "compression": compression,
    "tables": tables,
    "pages": pages,
}


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
