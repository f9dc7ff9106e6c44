"""The sections of report.py: what each measures with the other programs here, as plain records one after another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import peers
import svc_sections
from svc_sections import Row
from threadpoolctl import threadpool_limits

Record = dict[str, Any]


@dataclass
class Run:
    """The options of one section, and what it left out."""

    folder: str | None
    quick: bool
    threads: int
    repeats: int
    deadline: float
    peers: tuple[str, ...] | None = None
    skipped: list[str] = field(default_factory=list)

    def over(self) -> bool:
        return time.monotonic() >= self.deadline

    def svc(self, names: tuple[str, ...], patience: float) -> svc_sections.Run:
        """Return a run of compare_svc.py's sections with these competitors, as far as they are installed."""
        wanted = [name for name in names if self.peers is None or name.startswith("mercer") or name in self.peers]
        competitors, absent = peers.assemble(wanted, self.threads)
        self.skipped += [f"{peers.TITLES[name]} is missing: {why}" for name, why in absent.items()]
        return svc_sections.Run(
            folder=self.folder,
            competitors=competitors,
            repeats=self.repeats,
            threads=self.threads,
            test_limit=2000,
            patience=min(12.0, patience) if self.quick else patience,
            skipped=self.skipped,
        )


@dataclass(frozen=True)
class Section:
    """A function that yields records, its share of the time in seconds, and its threads (None: those of the run)."""

    measure: Callable[[Run], Iterator[Record]]
    seconds: float
    quick_seconds: float
    threads: int | None = None


# The sets of README's table first, those with a slow peer last.
_FITS = (
    *(Row("letter", C, form="standardised") for C in (1, 10, 100)),
    Row("spam", 10, form="standardised"),
    Row("usps", 10, form="standardised"),
    Row("covtype10k", 10, form="standardised"),
    Row("digits", 10, form="standardised"),
    Row("mnist", 1, 10_000, "standardised"),
    Row("mnist", 10, 10_000, "standardised"),
    Row("mixture", 1, 20_000),
    Row("letter", 10, form="raw"),
    Row("mnist", 1, 10_000, "raw"),
    Row("a9a", 1, form="raw"),
    Row("w8a", 1, form="raw"),
)


def fits(run: Run) -> Iterator[Record]:
    """Time Gaussian fits, and predictions by the same models."""
    setting = run.svc(("mercer", "sklearn", "sklearnex", "libsvm", "mercer32", "sklearnex32"), patience=200.0)
    rows = svc_sections.QUICK.fit if run.quick else _FITS
    with threadpool_limits(run.threads):
        both = svc_sections.fit_and_predict(setting, replace(svc_sections.FULL, fit=rows), True, True)
        for kind, record in both:
            yield {"kind": kind, **record}


def small(run: Run) -> Iterator[Record]:
    """Time fits and predictions of small data."""
    plan = svc_sections.QUICK if run.quick else svc_sections.FULL
    with threadpool_limits(run.threads):
        yield from svc_sections.small(run.svc(("mercer", "sklearn"), patience=60.0), plan)


SECTIONS = {
    "fits": Section(fits, 620.0, 60.0),
    "small": Section(small, 40.0, 15.0),
}


def threads_of(name: str, threads: int) -> int:
    """Return the number of threads to which a section is limited."""
    return SECTIONS[name].threads or threads
