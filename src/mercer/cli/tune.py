"""``mercer tune``: grid.py, with kernel values shared between all fits, for more machines and kinds of data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mercer.cli.formats import KINDS, add_data, format_of
from mercer.cli.libsvm.grid_file import exponents, read_rates
from mercer.cli.terminal import Subparsers, add_command

if TYPE_CHECKING:
    from mercer.cli.data import Data

_MACHINES = ("c_svc", "epsilon_svr", "one_class")


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "tune",
        run,
        ("mercer tune heart", "the grid of grid.py, 11 × 10 cells"),
        ("mercer tune -log2c -1,10,1 -log2g null -v 10 heart", "C alone, ten folds"),
        ("mercer tune -resume heart.out -log2c -5,20,1 heart", "go on where a search ended"),
        ("mercer tune iris.csv --target species --skip", "a table, whose columns are read as in mercer train"),
        ("mercer tune houses.csv --target price -s 3 -log2p -4,-1,1", "a regression"),
        usage="mercer tune [options] DATA",
        description="Find the parameters of a machine and its kernel by cross-validation, as grid.py does, with its "
        "options, output and file of results. The last line is: C gamma rate; of a regression: C gamma epsilon mse; of "
        "a one-class machine: nu gamma score.",
        files="data_file",
        computes=True,
    )
    add_data(parser, "the column to learn; tables need one", KINDS)
    parser.add_argument("-s", "--machine", choices=_MACHINES, default="c_svc", help="-s 0, 3 or 2 (c_svc)")
    parser.add_argument("-t", "--kernel", default="rbf", help="rbf, laplacian, poly or sigmoid, -t 1 to 3 (rbf)")
    add_grid_options(parser)
    told = "begin,end,step of the exponents of 2, or null"
    parser.add_argument(
        "-log2p", "--log2p", type=exponents, default="null", metavar="RANGE", help=f"of epsilon: {told} (null)"
    )
    parser.add_argument(
        "-log2n", "--log2n", type=exponents, default="-6,-1,1", metavar="RANGE", help=f"of nu: {told} (-6,-1,1)"
    )
    parser.add_argument("-out", "--out", metavar="FILE", help="where to write the rates; null: nowhere (DATA.out)")
    parser.add_argument("-resume", "--resume", type=Path, metavar="FILE", help="a file of rates to go on from")
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but the last line")


def add_grid_options(parser: argparse.ArgumentParser) -> None:
    """The ranges, the folds, and what a fit may take."""
    add = parser.add_argument
    told = "begin,end,step of the exponents of 2, or null for no search"
    add("-log2c", "--log2c", type=exponents, default="-5,15,2", metavar="RANGE", help=f"of C: {told} (-5,15,2)")
    add("-log2g", "--log2g", type=exponents, default="3,-15,-2", metavar="RANGE", help=f"of gamma: {told} (3,-15,-2)")
    add("-v", "--folds", type=int, default=5, help="of the cross-validation (5)")
    add("--skip", action="store_true", help="skip cells that provably lose; they have no rate then")
    add("--seed", type=int, default=0, help="of the folds (0)")
    add("-m", "--cache-size", type=float, default=1000, metavar="MB", help="memory for the search (1000)")
    add("-e", "--tol", type=float, default=1e-3, help="largest violation of optimality to stop at (0.001)")


def run(args: argparse.Namespace) -> None:
    from mercer.cli.libsvm.grid_search import GridSearch

    data = read_rows(args.file, args.machine) if format_of(args.file, args.format) == "libsvm" else _read_table(args)
    search = GridSearch.of(args, data)
    known = read_rates(args.resume, search.letters, search.word) if args.resume is not None else {}
    out = args.out or (str(args.resume) if args.resume is not None else f"{Path(args.file).name}.out")
    params, rate = search.run(known, None if out == "null" else Path(out))
    print(" ".join(f"{value:g}" for value in (*params, rate)))


def read_rows(file: str, machine: str = "c_svc") -> Data:
    """The rows of a LIBSVM text file, with whole numbers as labels unless they are the targets of a regression."""
    from dataclasses import replace

    from mercer.cli.data import integer_labels, read_data

    if format_of(file, None) != "libsvm":
        raise ValueError(f"{file} is a table, and this command reads LIBSVM text; mercer tune searches tables")
    data = read_data(file, "libsvm")
    if data.X.shape[0] == 0:
        raise ValueError(f"{file} holds no rows")
    return data if machine == "epsilon_svr" else replace(data, y=integer_labels(data.y, data.source))


def _read_table(args: argparse.Namespace) -> Data:
    from mercer.cli.data import read_data

    return read_data(args.file, args.format, args.target, regression=args.machine == "epsilon_svr", as_frame=True)
