"""Calibration of an SVC: mercer's `calibrate` against scikit-learn's CalibratedClassifierCV, to the same five folds.

    python benchmarks/compare_calibration.py [--data FOLDER] [--sets spam,letter,digits,mixture] [--rows 8000]

Both fit an SVC with the same C and gamma, and a sigmoid to decision values of held-out rows. The time of mercer is that
of the calibration after a fit, in fits of the same machine; that of scikit-learn is of everything, since it has no
fitted machine to begin with. The log loss on test rows says whether both do the same. Prints Markdown.
"""

from __future__ import annotations

import argparse
from typing import Any

import harness
import numpy as np
import tasks
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.svm import SVC as ScikitSVC

import mercer

SETS = ("spam", "letter", "digits", "mixture")
C = 10.0


def measure(task: tasks.Task, threads: int, repeats: int) -> dict[str, Any]:
    """Return the seconds of a fit, of its calibration and of scikit-learn's, and the log loss of both."""
    gamma = task.gamma()
    model = mercer.SVC(C=C, gamma=gamma, n_jobs=threads).fit(task.X, task.y)

    def peer() -> Any:
        return CalibratedClassifierCV(ScikitSVC(C=C, gamma=gamma), cv=5, ensemble=False).fit(task.X, task.y)

    calls = {
        "fit": lambda: mercer.SVC(C=C, gamma=gamma, n_jobs=threads).fit(task.X, task.y),
        "calibrate": lambda: model.calibrate(task.X, task.y),
        "scikit-learn": peer,
    }
    calls["calibrate"]()  # imports, and whatever else only a first call needs
    timings = harness.interleave(calls, repeats)
    labels = np.unique(task.y)
    losses = {
        who: float(log_loss(task.ytest, timings[call].result.predict_proba(task.Xtest), labels=labels))
        for who, call in (("mercer", "calibrate"), ("scikit-learn", "scikit-learn"))
        if timings[call].result is not None
    }
    record = {"data": task.name, "n": len(task.y), "d": task.X.shape[1], "classes": len(labels), "log loss": losses}
    return record | {"seconds": {name: timing.to_dict() for name, timing in timings.items()}}


def rows_of(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of the table."""
    header = ["data", "rows × features", "classes", "fit s", "calibrate s", "in fits", "scikit-learn s (1 thread)"]
    header += ["log loss", "of scikit-learn"]
    rows = []
    for one in records:
        best = {name: seconds.get("best", float("nan")) for name, seconds in one["seconds"].items()}
        cells = [one["data"], f"{one['n']:,} × {one['d']}", str(one["classes"]), f"{best['fit']:.3g}"]
        cells += [f"{best['calibrate']:.3g}", f"{best['calibrate'] / best['fit']:.1f}", f"{best['scikit-learn']:.3g}"]
        rows.append([*cells, *(f"{one['log loss'].get(who, np.nan):.4f}" for who in ("mercer", "scikit-learn"))])
    return header, rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="FOLDER", help="where the .npz files are; without it, digits and mixture")
    parser.add_argument("--sets", default=None, help=f"of {','.join(SETS)}")
    parser.add_argument("--rows", type=int, default=8000, help="at most so many training rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    harness.same_threads_for_all(options.threads)
    names = options.sets.split(",") if options.sets else SETS if options.data else ("digits", "mixture")
    records = []
    for name in names:
        records.append(measure(tasks.load(options.data, name, options.rows).dense(), options.threads, options.repeats))
        harness.progress(f"{name}: {records[-1]['seconds']}")
    print(harness.table(*rows_of(records)))


if __name__ == "__main__":
    main()
