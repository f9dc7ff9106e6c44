"""mercer.SVC against other libraries, on the same problems, at the same true accuracy.

    python benchmarks/compare_svc.py --data FOLDER              everything, an hour or two on an idle machine
    python benchmarks/compare_svc.py --data FOLDER --quick      small sizes, less than three minutes
    python benchmarks/compare_svc.py --data FOLDER --sections fit,predict --json results.json
    python benchmarks/compare_svc.py --readme results.json      the tables of docs/speed.md from a results file

Every data set is measured standardised and raw, with float64 and float32 input.

Prints Markdown; `--json` keeps every number, after each row.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import harness
import peers
import svc_report
import svc_sections
import tasks
from threadpoolctl import threadpool_limits

from mercer import _core

SECTIONS = ("fit", "predict", "small", "threads", "multiclass", "kernels", "hard", "growth", "memory")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", metavar="FOLDER", help="where the .npz files are; without it, generated data only")
    parser.add_argument("--quick", action="store_true", help="small sizes, one repeat, less than three minutes")
    parser.add_argument("--sections", type=_names(SECTIONS), default=SECTIONS, help=f"of {','.join(SECTIONS)}")
    parser.add_argument("--sets", type=_names(), default=(), help="data sets, such as letter,mnist; all unless told")
    parser.add_argument("--forms", type=_names(tasks.FORMS), default=tasks.FORMS, help=f"of {','.join(tasks.FORMS)}")
    parser.add_argument("--peers", type=_names(tuple(peers.TITLES)), default=tuple(peers.TITLES)[1:])
    parser.add_argument("--rows", type=int, metavar="N", help="at most N training rows everywhere")
    parser.add_argument("--repeats", type=int, default=None, help="3 unless told, 1 with --quick")
    parser.add_argument("--threads", type=int, default=2, help="for everybody; 2 unless told")
    parser.add_argument("--patience", type=float, help="seconds for each peer in all; 3600 unless told, 12 if quick")
    parser.add_argument("--json", metavar="FILE", help="write all numbers here")
    parser.add_argument("--markdown", metavar="FILE", help="write the tables here too")
    parser.add_argument(
        "--readme", metavar="FILE", help="only print the tables of docs/speed.md from this results file"
    )
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Measure what was asked for; the results as plain values."""
    competitors, absent = peers.assemble(dict.fromkeys(("mercer", *options.peers)), options.threads)
    for name, why in absent.items():
        harness.progress(f"{peers.TITLES[name]} is left out: {why}")
    repeats = options.repeats or (1 if options.quick else 3)
    setting = svc_sections.Run(
        folder=options.data,
        competitors=competitors,
        repeats=repeats,
        threads=options.threads,
        only_sets=options.sets,
        forms=options.forms,
        limit=options.rows,
        test_limit=2000 if options.quick else None,
        patience=options.patience or (12.0 if options.quick else 3600.0),
    )
    plan = svc_sections.QUICK if options.quick else svc_sections.FULL
    results: dict[str, Any] = {
        "machine": harness.machine(peers.PACKAGES, options.threads) | {"level": _core.level()},
        "quick": options.quick,
        "repeats": repeats,
        "absent": absent,
        "skipped": setting.skipped,
        "sections": {name: [] for name in options.sections},
    }
    if (results["machine"]["load"] or 0) > 0.5:
        harness.progress(f"the machine is not idle (load {results['machine']['load']:.1f}): ratios will be rough")

    def keep(section: str, record: dict[str, Any]) -> None:
        results["sections"][section].append(record)
        harness.save_json(results, options.json)

    with threadpool_limits(options.threads):
        if {"fit", "predict"} & set(options.sections):
            both = svc_sections.fit_and_predict(setting, plan, "fit" in options.sections, "predict" in options.sections)
            for section, record in both:
                keep(section, record)
        for section, measure in _OTHERS.items():
            if section in options.sections:
                for record in measure(setting, plan):
                    keep(section, record)
    return results


_OTHERS = {
    "small": svc_sections.small,
    "threads": svc_sections.threads,
    "multiclass": svc_sections.multiclass,
    "kernels": svc_sections.kernels,
    "hard": svc_sections.hard,
    "growth": svc_sections.growth,
    "memory": svc_sections.extra_memory,
}


def _names(allowed: tuple[str, ...] = ()) -> Any:
    def names(text: str) -> tuple[str, ...]:
        found = tuple(name for name in text.split(",") if name)
        unknown = [name for name in found if allowed and name not in allowed]
        if unknown:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is not one of {', '.join(allowed)}")
        return found

    return names


def main() -> None:
    options = parse()
    if options.readme:
        print(svc_report.readme(json.loads(Path(options.readme).read_text())))
        return
    harness.same_threads_for_all(options.threads)
    text = svc_report.report(run(options))
    print(text)
    if options.markdown:
        Path(options.markdown).write_text(text)


if __name__ == "__main__":
    main()
