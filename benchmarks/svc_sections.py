"""The measurements of compare_svc.py, one function per section; each yields plain records as it goes along."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import harness
import instruments
import memory
import numpy as np
import svc_small
import tasks
import truth
from sklearn.exceptions import ConvergenceWarning
from truth import Setting

import mercer

Record = dict[str, Any]
_ALL = ("mercer", "sklearn", "sklearnex", "libsvm", "thundersvm", "mercer32", "sklearnex32")


@dataclass(frozen=True)
class Row:
    """A data set, how many of its rows (None: all), C, and its form (None: the usual one)."""

    data: str
    C: float
    n: int | None = None
    form: str | None = None


def _both(*rows: Row) -> tuple[Row, ...]:
    """Every row standardised, and every row raw; what is generated has one form."""
    forms = [replace(row, form=form) for form in tasks.FORMS for row in rows if row.data != "mixture"]
    return (*forms, *(row for row in rows if row.data == "mixture"))


@dataclass(frozen=True)
class Plan:
    """How large each section is."""

    fit: tuple[Row, ...]
    multiclass: tuple[tuple[Row, tuple[str, ...]], ...]  # with the competitors of each
    kernels: tuple[tuple[str, Row, bool], ...]  # kernel, row, as CSR
    hard: tuple[tuple[str, ...], int, tuple[float, ...], tuple[float, ...], tuple[float, ...], float]
    growth: tuple[tuple[str, float], ...]
    sizes: tuple[int, ...]
    memory: tuple[tuple[Row, tuple[str, ...]], ...]
    small: tuple[str, ...]  # data sets of svc_small.py
    threads: tuple[Row, ...]


FULL = Plan(
    fit=_both(
        Row("letter", 1),
        Row("letter", 10),
        Row("letter", 100),
        Row("spam", 10),
        Row("usps", 10),
        Row("a9a", 1),
        Row("a9a", 100, 10_000),
        Row("w8a", 1),
        Row("covtype10k", 10),
        Row("mnist", 1, 10_000),
        Row("mnist", 10, 10_000),
        Row("mnist", 10, 20_000),
        Row("mixture", 1, 50_000),
    ),
    multiclass=(
        (Row("letter", 10), _ALL),
        (Row("mnist", 10, 10_000), _ALL),
        (Row("mnist", 10, 60_000), ("mercer", "sklearnex")),
    ),
    kernels=(
        ("poly", Row("letter", 1), False),
        ("poly", Row("usps", 1), False),
        ("linear", Row("letter", 1), False),
        ("linear", Row("covtype10k", 1), False),
        ("sigmoid", Row("letter", 1), False),
        ("sigmoid", Row("mnist", 1, 10_000), False),
        ("rbf", Row("reuters", 10), True),
        ("rbf", Row("rtpolarity_tfidf", 10), True),
        ("rbf", Row("a9a", 1), True),
    ),
    hard=(("letter", "spam"), 3000, (1e4, 1e6), (0.01, 0.1, 1.0, 10.0), (1e-3, 1e-6), 600.0),
    growth=(("mnist", 10), ("mixture", 1)),
    sizes=(2000, 4000, 8000, 16_000, 32_000),
    memory=(
        (Row("letter", 100), ("mercer", "sklearn", "sklearnex")),
        (Row("mnist", 10, 20_000), ("mercer", "sklearnex")),
        (Row("mixture", 1, 50_000), ("mercer", "sklearnex")),
        (Row("mixture", 1, 200_000), ("mercer",)),
    ),
    small=svc_small.SETS,
    threads=(
        Row("letter", 10),
        Row("letter", 100),
        Row("usps", 10, form="standardised"),
        Row("w8a", 1, form="standardised"),
        Row("mnist", 10, 10_000, "standardised"),
        Row("mnist", 10, 20_000),
        Row("mixture", 1, 200_000),
    ),
)

QUICK = Plan(
    fit=_both(
        Row("letter", 1, 4000),
        Row("letter", 100, 4000),
        Row("spam", 10),
        Row("usps", 10, 3000),
        Row("a9a", 1, 4000),
        Row("w8a", 1, 4000),
        Row("covtype10k", 10, 3000),
        Row("mnist", 1, 3000),
        Row("mixture", 1, 6000),
    ),
    multiclass=((Row("letter", 10, 3000), _ALL), (Row("mnist", 10, 2000), _ALL)),
    kernels=(
        ("poly", Row("usps", 1, 3000), False),
        ("linear", Row("spam", 1, 2000), False),
        ("sigmoid", Row("letter", 1, 3000), False),
        ("rbf", Row("reuters", 10, 3000), True),
    ),
    hard=(("spam",), 1000, (1e4,), (0.1, 1.0), (1e-3, 1e-6), 10.0),
    growth=(("mixture", 1),),
    sizes=(2000, 4000, 8000),
    memory=((Row("letter", 10, 8000), ("mercer", "sklearn", "sklearnex")),),
    small=("iris", "mixture 300", "digits"),
    threads=(Row("letter", 10, 8000), Row("mixture", 1, 8000)),
)


@dataclass
class Run:
    """What the sections share: data, competitors, patience."""

    folder: str | None
    competitors: dict[str, Any]
    repeats: int = 3
    threads: int = 2
    only_sets: tuple[str, ...] = ()
    forms: tuple[str, ...] = tasks.FORMS
    limit: int | None = None
    test_limit: int | None = None
    patience: float = float("inf")  # seconds that each peer may take in all
    spent: dict[str, float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    def load(self, row: Row) -> tasks.Task | None:
        """The task of a row, or None if it was not asked for or is not there."""
        if not self.wanted(row):
            return None
        try:
            return tasks.load(self.folder, row.data, self.rows(row), row.form).first_tests(self.test_limit)
        except FileNotFoundError:
            why = f"{row.data}: there is no {row.data}.npz in the folder of --data (benchmarks/data.py fetches it)"
            if why not in self.skipped:
                self.skipped.append(why)
            return None

    def wanted(self, row: Row) -> bool:
        return (not self.only_sets or row.data in self.only_sets) and row.form in (None, *self.forms)

    def rows(self, row: Row) -> int | None:
        return row.n if self.limit is None else min(row.n or self.limit, self.limit)

    def choose(self, names: tuple[str, ...] = _ALL) -> dict[str, Any]:
        """Those of `names` that are here and have not used up our patience."""
        return {name: one for name, one in self.competitors.items() if name in names and self._patient(name)}

    def account(self, timings: dict[str, harness.Timing]) -> None:
        """Note the time that each competitor took."""
        for name, timing in timings.items():
            before = self._patient(name)
            self.spent[name] = self.spent.get(name, 0.0) + sum(timing.seconds)
            if before and not self._patient(name):
                self.skipped.append(f"the rest of {name}, after its {self.patience:g} s (--patience)")

    def _patient(self, name: str) -> bool:
        return name.startswith("mercer") or self.spent.get(name, 0.0) <= self.patience


def fit_and_predict(run: Run, plan: Plan, fits: bool, predictions: bool) -> Iterator[tuple[str, Record]]:
    """Shows 1, 2 and 4: time, truth and distance to the bound of RBF fits, then prediction by the same models."""
    for row in plan.fit:
        task = run.load(row)
        if task is None:
            continue
        task = task.dense().binary()
        setting = Setting(row.C, task.gamma())
        record, timings = _race(run, run.choose(), task, setting, run.repeats if fits else 1)
        if fits:
            _add_truth(record, run.competitors, timings, task, setting)
            record["check"] = agreement(record)
            ours = run.competitors["mercer"]
            watched = partial(_quietly, ours, ours.prepare(task.X, task.y), setting)
            record["inside"] = instruments.inspect_fit(watched)
            yield "fit", record
        if predictions:
            yield "predict", _predictions(run, task, record, timings)


def multiclass(run: Run, plan: Plan) -> Iterator[Record]:
    """Show 3: one against one, with test accuracy."""
    for row, names in plan.multiclass:
        task = run.load(row)
        if task is None:
            continue
        task = task.dense()
        setting = Setting(row.C, task.gamma())
        competitors = run.choose(names)
        record, timings = _race(run, competitors, task, setting, run.repeats)
        for name, timing in timings.items():
            if timing.result is None:
                continue
            _add_truth(record, {name: competitors[name]}, {name: timing}, task, setting)
            answer = competitors[name].predict(timing.result, competitors[name].prepare(task.Xtest))
            record["competitors"][name]["accuracy"] = float(np.mean(answer == task.ytest))
        yield record


def kernels(run: Run, plan: Plan) -> Iterator[Record]:
    """Show 6: other kernels, and CSR input, against scikit-learn."""
    for kernel, row, sparse in plan.kernels:
        task = run.load(row)
        if task is None:
            continue
        task = (task if sparse else task.dense()).binary()
        setting = Setting(row.C, task.gamma(), kernel, coef0=1.0 if kernel == "poly" else 0.0)
        competitors = run.choose(("mercer", "sklearn"))
        record, timings = _race(run, competitors, task, setting, run.repeats)
        _add_truth(record, competitors, timings, task, setting)
        yield {**record, "kernel": kernel, "input": "CSR" if sparse else "dense"}


def hard(run: Run, plan: Plan) -> Iterator[Record]:
    """Show 7: large C, extreme widths, tight tolerances; the violation reached and what the fit says about it."""
    names, n, Cs, factors, tols, max_time = plan.hard
    ours = run.competitors["mercer"]
    for name in names:
        task = run.load(Row(name, 0, n))
        if task is None:
            continue
        task = task.dense().binary()
        prepared, gamma = ours.prepare(task.X, task.y), task.gamma()
        for C, factor, tol in ((C, factor, tol) for C in Cs for factor in factors for tol in tols):
            setting = Setting(C, factor * gamma, tol=tol)
            call = partial(_quietly, ours, prepared, setting, max_time=max_time)
            timing = harness.interleave({"mercer": call}, 1)["mercer"]
            record = {"data": name, "n": len(task.y), "C": C, "gamma_factor": factor, "tol": tol, "max_time": max_time}
            record |= timing.to_dict()
            if timing.result is not None:
                model = timing.result
                verdict = truth.judge(setting, task.X, task.y, [ours.duals(model)])[0]
                record |= {"violation": verdict.violation, "certified_violation": model.certificate_.violation}
                record["stop_reason"] = model.stop_reason_
            harness.progress(f"hard  {name} C={C:g} γ×{factor:g} tol={tol:g}: {record.get('stop_reason', 'failed')}")
            yield record


def growth(run: Run, plan: Plan) -> Iterator[Record]:
    """Show 5: seconds over n, and the exponent that fits them."""
    competitors = run.choose(("mercer", "sklearnex"))
    for name, C in plan.growth:
        task = run.load(Row(name, C, max(plan.sizes)))
        if task is None:
            continue
        task = task.dense().binary()
        setting = Setting(C, task.gamma())
        sizes = [n for n in plan.sizes if n <= len(task.y)]
        if len(sizes) < 2:
            continue
        seconds: dict[str, list[float]] = {one: [] for one in competitors}
        truths = []
        for n in sizes:
            part = task.first(n)
            record, timings = _race(run, competitors, part, setting, run.repeats)
            _add_truth(record, competitors, timings, part, setting)
            truths.append(agreement(record))
            for one, timing in timings.items():
                seconds[one].append(timing.best)
        exponents = {one: harness.growth_exponent(sizes, times) for one, times in seconds.items()}
        yield {
            "data": name,
            "C": C,
            "sizes": sizes,
            "seconds": seconds,
            "exponents": exponents,
            "checks": truths,
        }


def growth_in_d(run: Run, n: int, features: Sequence[int]) -> Iterator[Record]:
    """Seconds of everybody over the number of features, on n generated rows."""
    for d in features:
        task = tasks.mixture(n, d)
        setting = Setting(1.0, task.gamma())
        competitors = run.choose(("mercer", "sklearn", "sklearnex"))
        record, timings = _race(run, competitors, task, setting, run.repeats)
        _add_truth(record, competitors, timings, task, setting)
        yield record | {"check": agreement(record)}


def agreement(record: Record) -> Record:
    """Say how far apart the dual values of all float64 input are, and whether that is what tol allows.

    A point that violates the optimality conditions by v is below the optimum by at most v(Σ|β| + Σ|β*|)/2, since one
    unit of β moves for every unit that comes. At the optimum Σ|β*| ≤ 2 D*, so two points with v ≤ tol differ by about
    2 tol D* at most.
    """
    wide = [one for name, one in record["competitors"].items() if "dual" in one and not name.endswith("32")]
    duals = [one["dual"] for one in wide]
    apart = (max(duals) - min(duals)) / max(duals) if duals else float("nan")
    violation = max((one["violation"] for one in wide), default=float("nan"))
    return {"duals_apart": apart, "violation": violation, "same_objective": bool(apart <= 2 * record["tol"])}


def extra_memory(run: Run, plan: Plan) -> Iterator[Record]:
    """Show 8: what a fit needs beyond the data."""
    for row, names in plan.memory:
        if not run.wanted(row):
            continue
        for name in run.choose(names):
            found = memory.extra_memory(name, run.threads, folder=run.folder, data=row.data, n=run.rows(row), C=row.C)
            harness.progress(f"memory  {row.data} {name}: {found.get('megabytes', found.get('error'))} MB")
            yield {"data": row.data, "C": row.C, "competitor": name, **found}


def threads(run: Run, plan: Plan) -> Iterator[Record]:
    """Part 8, show 3: mercer's seconds with 1, 2, 4, … threads, and the serial share of each fit."""
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= run.threads]
    for row in plan.threads:
        task = run.load(row)
        if task is None:
            continue
        task = task.dense().binary()
        calls = {str(t): partial(mercer.SVC(C=row.C, gamma=task.gamma(), n_jobs=t).fit, task.X, task.y) for t in counts}
        timings = harness.interleave(calls, run.repeats)
        shares = {str(t): harness.serial_share(calls[str(t)], t) for t in counts if t > 1}
        harness.progress(f"threads  {task.name} n={len(task.y)}: {[timing.best for timing in timings.values()]}")
        n, d = task.X.shape
        seconds = {count: timing.best for count, timing in timings.items()}
        duals = [timing.result.certificate_.dual for timing in timings.values()]
        record = {"data": task.name, "form": task.form, "n": n, "d": d, "C": row.C, "seconds": seconds}
        yield record | {"serial": shares, "duals_apart": (max(duals) - min(duals)) / max(duals)}


def small(run: Run, plan: Plan) -> Iterator[Record]:
    """Part 8, show 4: fits and predictions of small data."""
    if run.only_sets:
        return
    for name in plan.small:
        record = svc_small.measure(name, run.choose(("mercer", "sklearn")), 5 * run.repeats)
        harness.progress(f"small  {name}: {record['seconds']}")
        yield record


# --- what the sections have in common -------------------------------------------------------------------------------


def _race(
    run: Run, competitors: dict[str, Any], task: tasks.Task, setting: Setting, repeats: int
) -> tuple[Record, dict[str, harness.Timing]]:
    """Warm up, let everybody fit the same problem in turns, and write down the times."""
    few = tasks.few_of_each_class(task.y)
    calls, failed = {}, {}
    for name, one in competitors.items():
        try:
            _quietly(one, one.prepare(task.X[few], task.y[few]), setting)
            calls[name] = partial(_quietly, one, one.prepare(task.X, task.y), setting)
        except Exception as error:
            failed[name] = harness.Timing(error=f"{type(error).__name__}: {error}")
    timings = harness.interleave(calls, repeats) | failed
    run.account(timings)
    n, d = task.X.shape
    record = {
        "data": task.name,
        "form": task.form,
        "n": n,
        "d": d,
        "C": setting.C,
        "gamma": setting.gamma,
        "tol": setting.tol,
        "competitors": {name: timing.to_dict() for name, timing in timings.items()},
    }
    times = "  ".join(f"{name} {timing.error or format(timing.best, '.3g')}" for name, timing in timings.items())
    harness.progress(f"{setting.kernel}  {task.name} n={n} C={setting.C:g}: {times}")
    return record, timings


def _quietly(one: Any, prepared: Any, setting: Setting, **options: Any) -> Any:
    with warnings.catch_warnings():
        # That a fit stopped early is in the results; that a sigmoid is indefinite is known.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        return one.fit(prepared, setting, **options)


def _add_truth(
    record: Record, competitors: dict[str, Any], timings: dict[str, harness.Timing], task: tasks.Task, setting: Setting
) -> None:
    """True violation, dual value and number of support vectors, for each precision of input on its own samples."""
    for dtype in (np.float64, np.float32):
        names = [name for name, t in timings.items() if t.result is not None and competitors[name].dtype is dtype]
        if not names:
            continue
        duals = [competitors[name].duals(timings[name].result) for name in names]
        X = task.X if dtype is np.float64 else task.X.astype(dtype)
        for name, dual, verdict in zip(names, duals, truth.judge(setting, X, task.y, duals), strict=True):
            record["competitors"][name] |= {**vars(verdict), "nSV": len(dual.support)}


def _predictions(run: Run, task: tasks.Task, record: Record, timings: dict[str, harness.Timing]) -> Record:
    """decision_function on the test samples, float64 for the models of float64 input and float32 for the others."""
    calls = {}
    for name, timing in timings.items():
        if timing.result is None or name not in run.choose():
            continue
        one = run.competitors[name]
        one.decide(timing.result, one.prepare(task.Xtest[:100]))
        calls[name] = partial(one.decide, timing.result, one.prepare(task.Xtest))
        if name == "sklearn":  # it has one precision: what float32 input costs it is shown too
            calls["sklearn32"] = partial(one.decide, timing.result, (task.Xtest.astype(np.float32), None))
    found = harness.interleave(calls, run.repeats)
    run.account({name: timing for name, timing in found.items() if name in timings})
    shared = {key: record[key] for key in ("data", "form", "n", "d", "C", "gamma")}
    times = {name: timing.to_dict() for name, timing in found.items()}
    return {**shared, "n_test": len(task.ytest), "competitors": times}
