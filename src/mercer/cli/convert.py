"""``mercer convert``: models between formats."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mercer.cli.models import machine_of, read_model
from mercer.files import save
from mercer.files.liblinear_model import LiblinearModel, write_liblinear_model
from mercer.files.libsvm_estimator import estimator_from_libsvm, libsvm_from_estimator
from mercer.files.libsvm_model import LibsvmModel, write_libsvm_model
from mercer.files.onnx_export import export_onnx

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_BY_SUFFIX: Final = {".mercer": "mercer", ".onnx": "onnx"}
_TARGETS: Final = ("mercer", "libsvm", "liblinear", "onnx")


def register(commands: Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser(
        "convert",
        allow_abbrev=False,
        help="convert a model to another format",
        description="Convert .mercer, LIBSVM, LIBLINEAR and SVMlight models to .mercer, LIBSVM, LIBLINEAR or ONNX.",
    )
    parser.add_argument("source", metavar="FROM", help="told apart by its content")
    parser.add_argument("output", metavar="TO", type=Path)
    parser.add_argument(
        "--to", choices=_TARGETS, help="default: by TO's ending, else LIBSVM (or LIBLINEAR for its own)"
    )
    parser.add_argument(
        "--features", type=int, metavar="N", help="columns of the data to come, where FROM does not say"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> None:
    """Carry out the subcommand."""
    model = read_model(args.source)
    own = "liblinear" if isinstance(model, LiblinearModel) else "libsvm"
    target = args.to or _BY_SUFFIX.get(args.output.suffix.lower(), own)
    if isinstance(model, LiblinearModel) or target == "liblinear":
        _write_linear(model, target, args)
    elif target == "libsvm":
        write_libsvm_model(_as_libsvm(model, args.source), args.output)
    else:
        estimator = estimator_from_libsvm(model, args.features) if isinstance(model, LibsvmModel) else model
        if target == "mercer":
            save(estimator, args.output)
        else:
            export_onnx(estimator, args.output)
    if not args.quiet:
        print(f"saved {args.output}, {target} format")


def _as_libsvm(model: Any, source: str) -> LibsvmModel:
    if isinstance(model, LibsvmModel):
        return model
    if model is not machine_of(model):
        raise TypeError(
            f"{source} standardises its columns first, which a LIBSVM file cannot hold; scale the data instead"
        )
    return libsvm_from_estimator(model)


def _write_linear(model: Any, target: str, args: argparse.Namespace) -> None:
    if not isinstance(model, LiblinearModel):
        raise TypeError(f"{args.source} is no linear machine of the kind that LIBLINEAR's files hold")
    if target != "liblinear":
        raise TypeError(f"{args.source} is a LIBLINEAR model; mercer converts it to LIBLINEAR's own format only so far")
    write_liblinear_model(model, args.output)
