"""``mercer tune``: grid.py, with kernel values shared between all fits, for more machines and kinds of data."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mercer.cli.formats import KINDS, format_of
from mercer.cli.libsvm.grid_file import exponents, read_rates
from mercer.cli.machines import AUTO
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.cli.train import (
    TABLE_OPTIONS,
    add_machine_options,
    add_output_options,
    add_table_options,
    expect_no_options,
    settle,
)

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
        ("mercer tune iris.csv --target species --skip", "a table: searched, and the best model saved as iris.mercer"),
        ("mercer tune houses.csv --target price -log2p -4,-1,1 -b 1", "a regression, with intervals"),
        usage="mercer tune [options] DATA [MODEL]",
        add_help=False,
        description="Find the parameters of a machine and its kernel by cross-validation, as grid.py does, with its "
        "options, output and file of results. The last line is: C gamma rate; of a regression: C gamma epsilon mse; of "
        "a one-class machine: nu gamma score; of a table it says so in words. The best model of a table is trained on "
        "all rows and saved; that of LIBSVM text if MODEL names a file. It takes every option of mercer train.",
        files="data_file [model_file]",
        computes=True,
    )
    parser.add_argument("--help", action="help", help="show this message and exit (-h is svm-train's shrinking)")
    parser.add_argument("file", metavar="DATA", help=KINDS)
    parser.add_argument("model", nargs="?", metavar="MODEL", type=Path, help="where to save the best model")
    add_table_options(parser.add_argument_group("data"))
    add_machine_options(parser.add_argument_group("machine"))
    add_output_options(parser.add_argument_group("output"))
    search = parser.add_argument_group("search")
    add_grid_options(search)
    told = "begin,end,step of the exponents of 2, or null"
    search.add_argument(
        "-log2p", "--log2p", type=exponents, default="null", metavar="RANGE", help=f"of epsilon: {told} (null)"
    )
    search.add_argument(
        "-log2n", "--log2n", type=exponents, default="-6,-1,1", metavar="RANGE", help=f"of nu: {told} (-6,-1,1)"
    )
    search.add_argument("-out", "--out", metavar="FILE", help="where to write the rates; null: nowhere (DATA.out)")
    search.add_argument("-resume", "--resume", type=Path, metavar="FILE", help="a file of rates to go on from")


def add_grid_options(parser: argparse._ActionsContainer) -> None:
    """The ranges and the folds."""
    add = parser.add_argument
    told = "begin,end,step of the exponents of 2, or null for no search"
    add("-log2c", "--log2c", type=exponents, default="-5,15,2", metavar="RANGE", help=f"of C: {told} (-5,15,2)")
    add("-log2g", "--log2g", type=exponents, default="3,-15,-2", metavar="RANGE", help=f"of gamma: {told} (3,-15,-2)")
    add("-v", "--folds", type=int, default=5, help="of the cross-validation (5)")
    add("--skip", action="store_true", help="skip cells that provably lose; they have no rate then")


def run(args: argparse.Namespace) -> None:
    settle(args)
    if format_of(args.file, args.format) == "libsvm":
        _run_text(args)
    else:
        _run_table(args)


def _run_text(args: argparse.Namespace) -> None:
    """grid.py; and, if a model is asked for, svm-train with what was found."""
    from mercer.cli import train
    from mercer.cli.machines import build, class_weights

    expect_no_options(args, (*TABLE_OPTIONS, "target"), f"tables, and {args.file} is LIBSVM text")
    args.machine = _searched(args.machine or "c_svc")
    data = read_rows(args.file, args.machine)
    weights = class_weights(args.weight, set(data.y.tolist()))[0]
    gamma = args.gamma or 1.0 / max(1, data.X.shape[1])
    params, rate, _ = _search(args, data, build(args, gamma, args.class_weight or weights), gamma)
    if args.output is not None:
        vars(args).update(params)
        alone = {"model": None, "folds": None, "cluster": None, "weight_file": None, "quiet": True, "json": False}
        train.run(argparse.Namespace(**{**vars(args), **alone}))
    _tell(args, params, rate, args.output)


def _run_table(args: argparse.Namespace) -> None:
    """The same on a table, whose best model is trained on all rows and saved."""
    from mercer.cli.machines import build, class_weights
    from mercer.cli.train_table import around, expect_no_loss, model_path, read_table, save_table, trained
    from mercer.files.atomic_write import checked_target
    from mercer.runtime.progress import waiting

    path = model_path(args)
    checked_target(path)  # better now than after a search
    expect_no_loss(args, path)
    args.machine = args.machine or AUTO
    data = read_table(args)
    weights, unknown = class_weights(args.weight, set(data.y.tolist()))
    if unknown:
        raise ValueError(f"--weight names {', '.join(map(repr, unknown))}, which no row of {data.source} has")
    args.machine = _searched(args.machine)
    gamma = "scale" if args.gamma is None else args.gamma
    model = around(build(args, gamma, args.class_weight or weights), data, args)
    params, rate, told = _search(args, data, model, gamma)
    prefix = next(name for name in model.get_params() if name.endswith("__kernel")).removesuffix("kernel")
    with waiting(f"training on {len(data.y):,} rows", args.quiet or args.json, verbose=args.verbose):
        model.set_params(**{prefix + name: value for name, value in params.items()})
        save_table(trained(model, (data.X, data.y), args), data, path)
    if args.json:
        _tell(args, params, rate, path)
    elif not args.quiet:
        print(printable(f"best of {args.folds} folds: {told}"))
        print(printable(f"trained on all {len(data.y):,} rows with these and saved as {path}"))
        print("the number is that of the best cell, and so a little too good: mercer easy judges on other rows")


def _searched(machine: str) -> str:
    if machine not in _MACHINES:
        raise ValueError(f"mercer tune searches {', '.join(_MACHINES)}, not {machine}")
    return machine


def _search(args: argparse.Namespace, data: Data, model: Any, gamma: Any) -> tuple[dict[str, Any], float, str]:
    """The best cell's parameters, its number, and both in words."""
    from mercer.cli.libsvm.grid_search import GridSearch

    usual = {"C": args.C, "epsilon": args.epsilon, "nu": args.nu, "gamma": gamma}
    search = GridSearch.of(args, data, model, args.machine, usual)
    known = read_rates(args.resume, search.letters, search.word) if args.resume is not None else {}
    out = args.out or (str(args.resume) if args.resume is not None else f"{Path(args.file).name}.out")
    params, number = search.run(known, None if out == "null" else Path(out))
    return params, number, search.describe(params, number)


def _tell(args: argparse.Namespace, params: dict[str, Any], rate: float, path: Path | None) -> None:
    if args.json:
        print(json.dumps(params | {"rate": rate, "model_file": None if path is None else str(path)}))
    else:
        print(" ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in (*params.values(), rate)))


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
