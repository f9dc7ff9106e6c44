"""``mercer tune``: grid search by cross-validation as grid.py does it, also for tables and other machines."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mercer.cli.formats import DATA_KINDS, format_of
from mercer.cli.libsvm.grid_file import parse_exponents, read_rates
from mercer.cli.machines import AUTO
from mercer.cli.terminal import Subparsers, add_command, printable
from mercer.cli.train import (
    TABLE_OPTIONS,
    add_machine_options,
    add_output_options,
    add_table_options,
    refuse_unused_options,
    resolve_output,
)

if TYPE_CHECKING:
    from mercer.cli.data import Data

_MACHINES = ("c_svc", "epsilon_svr", "one_class")


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "tune",
        run,
        ("mercer tune heart", "the grid of grid.py, 11 × 10 cells"),
        ("mercer tune -log2c -1,10,1 -log2g null -v 10 heart", "C only, ten folds"),
        ("mercer tune -resume heart.out -log2c -5,20,1 heart", "continue a search"),
        ("mercer tune iris.csv --target species --skip", "a table: saves the best model as iris.mercer"),
        ("mercer tune houses.csv --target price -log2p -4,-1,1 -b 1", "a regression, with intervals"),
        usage="mercer tune [options] DATA [MODEL]",
        add_help=False,
        description="Search for the parameters of a machine and its kernel by cross-validation, as grid.py does, "
        "with the same options, output (below a header) and results file. For LIBSVM text the last line is C gamma "
        "rate; for a regression C gamma epsilon mse; for one_class nu gamma score. For a table the output is in words. "
        "The best model is trained on all rows and saved: for a table always, for LIBSVM text only if MODEL is given. "
        "Every option of mercer train works.",
        files="data_file [model_file]",
        computes=True,
    )
    parser.add_argument("--help", action="help", help="show this message and exit (-h is svm-train's shrinking)")
    parser.add_argument("file", metavar="DATA", help=DATA_KINDS)
    parser.add_argument("model", nargs="?", metavar="MODEL", type=Path, help="file to save the best model in")
    add_table_options(parser.add_argument_group("data"))
    add_machine_options(parser.add_argument_group("machine"))
    add_output_options(parser.add_argument_group("output"))
    search = parser.add_argument_group("search")
    add_grid_options(search)
    values = "begin,end,step of powers of 2, or null for no search"
    search.add_argument(
        "-log2p",
        "--log2p",
        type=parse_exponents,
        default="null",
        metavar="RANGE",
        help=f"grid of epsilon: {values} (null)",
    )
    search.add_argument(
        "-log2n",
        "--log2n",
        type=parse_exponents,
        default="-6,-1,1",
        metavar="RANGE",
        help=f"grid of nu: {values} (-6,-1,1)",
    )
    search.add_argument("-out", "--out", metavar="FILE", help="file for the results; null for none (DATA.out)")
    search.add_argument(
        "-resume", "--resume", type=Path, metavar="FILE", help="results file of an earlier search to continue"
    )


def add_grid_options(parser: argparse._ActionsContainer) -> None:
    """Add the options for the grid and the cross-validation."""
    add = parser.add_argument
    values = "begin,end,step of powers of 2, or null for no search"
    add(
        "-log2c",
        "--log2c",
        type=parse_exponents,
        default="-5,15,2",
        metavar="RANGE",
        help=f"grid of C: {values} (-5,15,2)",
    )
    add(
        "-log2g",
        "--log2g",
        type=parse_exponents,
        default="3,-15,-2",
        metavar="RANGE",
        help=f"grid of gamma: {values} (3,-15,-2)",
    )
    add("-v", "--folds", type=int, default=5, help="number of folds of the cross-validation (5)")
    add("--skip", action="store_true", help="skip cells of the grid that provably cannot win; they are not listed")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    resolve_output(args)
    if format_of(args.file, args.format) == "libsvm":
        _run_text(args)
    else:
        _run_table(args)


def _run_text(args: argparse.Namespace) -> None:
    """Search as grid.py does, and if a model file is named, train as svm-train does with the best parameters."""
    from mercer.cli import train
    from mercer.cli.machines import build_estimator, class_weights

    refuse_unused_options(args, (*TABLE_OPTIONS, "target"), f"tables, but {args.file} is LIBSVM text")
    args.machine = _check_machine(args.machine or "c_svc")
    data = read_rows(args.file, args.machine)
    weights = class_weights(args.weight, set(data.y.tolist()))[0]
    gamma = args.gamma or 1.0 / max(1, data.X.shape[1])
    params, rate, _ = _search(args, data, build_estimator(args, gamma, args.class_weight or weights), gamma)
    if args.output is not None:
        vars(args).update(params)
        training_only = {
            "model": None,
            "folds": None,
            "cluster": None,
            "weight_file": None,
            "quiet": True,
            "json": False,
        }
        train.run(argparse.Namespace(**{**vars(args), **training_only}))
    _print_result(args, params, rate, args.output)


def _run_table(args: argparse.Namespace) -> None:
    """Search on a table, then train the best model on all rows and save it."""
    from mercer.cli.machines import build_estimator, class_weights
    from mercer.cli.train_table import (
        check_overwrite,
        check_same_target,
        fit_final_model,
        model_path,
        read_table,
        save_with_dialect,
        wrap_machine,
    )
    from mercer.files.atomic_write import check_save_path
    from mercer.runtime.progress import waiting

    path = model_path(args)
    check_save_path(path)  # fail now rather than after the search
    check_overwrite(args, path)
    args.machine = args.machine or AUTO
    data = read_table(args)
    check_same_target(args, path)
    weights, unknown = class_weights(args.weight, set(data.y.tolist()))
    if unknown:
        raise ValueError(f"--weight names {', '.join(map(repr, unknown))}, but no row of {data.source} has that class")
    args.machine = _check_machine(args.machine)
    gamma = "scale" if args.gamma is None else args.gamma
    model = wrap_machine(build_estimator(args, gamma, args.class_weight or weights), data, args)
    params, rate, description = _search(args, data, model, gamma)
    prefix = next(name for name in model.get_params() if name.endswith("__kernel")).removesuffix("kernel")
    with waiting(f"training on {len(data.y):,} rows", args.quiet or args.json, verbose=args.verbose):
        model.set_params(**{prefix + name: value for name, value in params.items()})
        save_with_dialect(fit_final_model(model, (data.X, data.y), args), data, path)
    if args.json:
        _print_result(args, params, rate, path)
    elif not args.quiet:
        baseline = _constant_accuracy(data.y) if args.machine == "c_svc" else ""
        print(printable(f"best in {args.folds}-fold cross-validation: {description}{baseline}"))
        print(printable(f"trained on all {len(data.y):,} rows with these parameters and saved as {path}"))
        print("the best of many scores is a little optimistic; mercer easy tests on rows that the search has not seen")


def _constant_accuracy(y: Any) -> str:
    """Return the accuracy of always predicting the most frequent class, in words."""
    import numpy as np

    labels, counts = np.unique(y, return_counts=True)
    k = int(np.argmax(counts))
    return f" (always predicting {str(labels[k])!r}: {counts[k] / len(y):.1%})"


def _check_machine(machine: str) -> str:
    """Return the machine if mercer tune can search its parameters; raise otherwise."""
    if machine not in _MACHINES:
        raise ValueError(f"mercer tune is for {', '.join(_MACHINES)}, not for {machine}")
    return machine


def _search(args: argparse.Namespace, data: Data, model: Any, gamma: Any) -> tuple[dict[str, Any], float, str]:
    """Return the best parameters, their score, and both in words."""
    from mercer.cli.libsvm.grid_search import GridSearch

    defaults = {"C": args.C, "epsilon": args.epsilon, "nu": args.nu, "gamma": gamma}
    search = GridSearch.of(args, data, model, args.machine, defaults)
    known_scores = read_rates(args.resume, search.letters, search.score_name) if args.resume is not None else {}
    out = args.out or (str(args.resume) if args.resume is not None else f"{Path(args.file).name}.out")
    params, number = search.run(known_scores, None if out == "null" else Path(out))
    return params, number, search.describe(params, number)


def _print_result(args: argparse.Namespace, params: dict[str, Any], rate: float, path: Path | None) -> None:
    """Print the best parameters and their score, as JSON or as grid.py's last line."""
    if args.json:
        print(json.dumps(params | {"rate": rate, "model_file": None if path is None else str(path)}))
    else:
        print(" ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in (*params.values(), rate)))


def read_rows(file: str, machine: str = "c_svc") -> Data:
    """Read a LIBSVM text file; labels become integers unless they are the targets of a regression."""
    from dataclasses import replace

    from mercer.cli.data import integer_labels, read_data

    if format_of(file, None) != "libsvm":
        raise ValueError(f"{file} is a table, but this command reads LIBSVM text; use mercer tune for tables")
    data = read_data(file, "libsvm")
    if data.X.shape[0] == 0:
        raise ValueError(f"{file} holds no rows")
    return data if machine == "epsilon_svr" else replace(data, y=integer_labels(data.y, data.source))
