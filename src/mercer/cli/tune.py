"""``mercer tune``: grid.py, with kernel values shared between all fits."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mercer.cli.grid_file import exponents, line_of, read_rates
from mercer.cli.libsvm_flags import Letters
from mercer.cli.terminal import WithExamples, examples

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

GRID_LETTERS = {"log2c": "--log2c", "log2g": "--log2g", "v": "--folds", "m": "--cache-size", "e": "--tol"}
_LETTERS = {**GRID_LETTERS, "out": "--out", "resume": "--resume"}
_USAGE = "usage: mercer tune [options] data_file; mercer tune --help tells them all"


def register(commands: Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "tune",
        usage="mercer tune [options] DATA",
        allow_abbrev=False,
        description="Find C and gamma of a support vector classifier with the Gaussian kernel by cross-validation, as "
        "grid.py does, with its options, output and file of results. The last line is: C gamma rate.",
        formatter_class=WithExamples,
        epilog=examples(
            ("mercer tune heart", "the grid of grid.py, 11 × 10 cells"),
            ("mercer tune -log2c -1,10,1 -log2g null -v 10 heart", "C alone, ten folds"),
            ("mercer tune -resume heart.out -log2c -5,20,1 heart", "go on where a search ended"),
        ),
    )
    parser.add_argument("file", metavar="DATA", help="LIBSVM text")
    add_grid_options(parser)
    parser.add_argument("--out", metavar="FILE", help="where to write the rates, -out; null: nowhere (DATA.out)")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="a file of rates to go on from, -resume")
    parser.add_argument("--quiet", action="store_true", help="print nothing but the last line (-q)")
    parser.set_defaults(run=run, parser=parser, letters=Letters(_LETTERS, _USAGE))


def add_grid_options(parser: Any) -> None:
    """The ranges, the folds, and what a fit may take."""
    add = parser.add_argument
    told = "begin,end,step of the exponents of 2, or null for no search"
    add("--log2c", type=exponents, default="-5,15,2", metavar="RANGE", help=f"of C: {told}, -log2c (-5,15,2)")
    add("--log2g", type=exponents, default="3,-15,-2", metavar="RANGE", help=f"of gamma: {told}, -log2g (3,-15,-2)")
    add("--folds", type=int, default=5, help="of the cross-validation, -v (5)")
    add("--skip", action="store_true", help="skip cells that provably lose; they have no rate then")
    add("--seed", type=int, default=0, help="of the folds (0)")
    add("--cache-size", type=float, default=1000, metavar="MB", help="memory for the search, -m (1000)")
    add("--tol", type=float, default=1e-3, help="largest violation of optimality to stop at, -e (0.001)")


def run(args: argparse.Namespace) -> None:
    """Carry out the subcommand."""
    data = read_rows(args.file)
    known = read_rates(args.resume) if args.resume is not None else {}
    out = args.out or (str(args.resume) if args.resume is not None else f"{Path(args.file).name}.out")
    C, gamma, rate = search(args, data.X, data.y, known, None if out == "null" else Path(out))
    print(f"{C:g} {gamma:g} {rate:g}")


def read_rows(file: str) -> Any:
    """The rows of a LIBSVM text file, with whole numbers as labels."""
    from dataclasses import replace

    from mercer.cli.data import read_data
    from mercer.cli.formats import format_of
    from mercer.cli.labels import integer_labels

    if format_of(file, None) != "libsvm":
        raise ValueError(
            f"{file} is a table, and grid.py's grid is for LIBSVM text; mercer.tune(mercer.tabular(...), ...) searches "
            "tables in Python"
        )
    data = read_data(file, "libsvm")
    if data.X.shape[0] == 0:
        raise ValueError(f"{file} holds no rows")
    return replace(data, y=integer_labels(data.y, data.source))


def search(args: argparse.Namespace, X: Any, y: Any, known: Any, out: Path | None) -> tuple[float, float, float]:
    """The best C, gamma and rate; cells that are `known` are not fitted again."""
    import numpy as np
    from sklearn.model_selection import StratifiedKFold

    import mercer

    n_features = max(1, X.shape[1])
    cells = [(c, g) for c in args.log2c or [None] for g in args.log2g or [None]]
    params = {(c, g): {"C": 2.0 ** (c or 0.0), "gamma": 1.0 / n_features if g is None else 2.0**g} for c, g in cells}
    left = [cell for cell in cells if cell not in known]
    rates: dict[Any, float] = {cell: known[cell] for cell in cells if cell in known}
    file = None if out is None else out.open("a" if known else "w")

    def told(fit: dict[str, Any]) -> None:
        cell = by_params[fit["params"]["C"], fit["params"]["gamma"]]
        so_far.setdefault(cell, []).append(fit["score"])
        if len(so_far[cell]) == args.folds:
            _tell(cell, 100.0 * float(np.mean(so_far[cell])))

    def _tell(cell: Any, rate: float) -> None:
        rates[cell] = rate
        best = max(rates, key=lambda one: (rates[one], -params[one]["C"]))
        if not args.quiet:
            c, g = (math.log2(params[cell][name]) for name in ("C", "gamma"))
            of = params[best]
            told = f"(best c={of['C']:g}, g={of['gamma']:g}, rate={rates[best]:g})"
            print(f"[local] {c:g} {g:g} {rate:g} {told}", flush=True)
        if file is not None:
            file.write(line_of(cell[0], cell[1], rate) + "\n")
            file.flush()

    by_params = {(params[cell]["C"], params[cell]["gamma"]): cell for cell in left}
    so_far: dict[Any, list[float]] = {}
    try:
        if left:
            points = [{name: [value] for name, value in params[cell].items()} for cell in left]
            found = mercer.tune(
                mercer.SVC(cache_size=args.cache_size, tol=args.tol),
                X,
                y,
                grid=points,
                cv=StratifiedKFold(args.folds, shuffle=True, random_state=args.seed),
                skip=args.skip,
                refit=False,
                callback=told,
            )
            if found.interrupted_:
                raise KeyboardInterrupt
            if not rates:
                raise ValueError(next(why for why in found.cv_results_["why"] if why))
    finally:
        if file is not None:
            file.close()
    best = max(rates, key=lambda one: (rates[one], -params[one]["C"]))
    return params[best]["C"], params[best]["gamma"], rates[best]
