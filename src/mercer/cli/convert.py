"""``mercer convert``: models between formats."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mercer.cli.examples import WithExamples, examples
from mercer.cli.models import machine_of, read_model
from mercer.estimators import LinearSVC, LinearSVR
from mercer.files import save
from mercer.files.liblinear_estimator import estimator_from_liblinear, liblinear_from_estimator
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
        formatter_class=WithExamples,
        epilog=examples(
            ("mercer convert heart.model heart.mercer", "a LIBSVM model that mercer.load reads"),
            ("mercer convert iris.mercer iris.onnx --input float32", "needs the extra onnx"),
            ("mercer convert text.mercer text.model --to liblinear", "of a LinearSVC or LinearSVR"),
        ),
    )
    parser.add_argument("source", metavar="FROM", help="a model of any of these formats, told apart by its content")
    parser.add_argument("output", metavar="TO", type=Path, help="the new file: .mercer and .onnx say what it is")
    parser.add_argument(
        "--to", choices=_TARGETS, help="default: by TO's ending, else LIBLINEAR for linear machines, LIBSVM for others"
    )
    parser.add_argument(
        "--features", type=int, metavar="N", help="columns of the data to come, where FROM does not say"
    )
    parser.add_argument(
        "--input", choices=("float64", "float32"), default="float64", help="of ONNX: what X will be (float64)"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing but errors")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> None:
    """Carry out the subcommand."""
    model = read_model(args.source)
    own = "liblinear" if isinstance(model, LiblinearModel) or _is_linear(machine_of(model)) else "libsvm"
    target = args.to or _BY_SUFFIX.get(args.output.suffix.lower(), own)
    if target == "libsvm":
        write_libsvm_model(_as_libsvm(model, args.source), args.output)
    elif target == "liblinear":
        write_liblinear_model(_as_liblinear(model, args.source), args.output)
    elif target == "mercer":
        save(_as_estimator(model, args.features), args.output)
    else:
        export_onnx(_as_estimator(model, args.features), args.output, dtype=args.input)
    if not args.quiet:
        print(f"saved {args.output}, {target} format")


def _is_linear(machine: Any) -> bool:
    return isinstance(machine, (LinearSVC, LinearSVR))


def _as_estimator(model: Any, n_features: int | None) -> Any:
    if isinstance(model, LibsvmModel):
        return estimator_from_libsvm(model, n_features)
    return estimator_from_liblinear(model, n_features) if isinstance(model, LiblinearModel) else model


def _as_libsvm(model: Any, source: str) -> LibsvmModel:
    if isinstance(model, LibsvmModel):
        return model
    if isinstance(model, LiblinearModel):
        raise TypeError(f"{source} is a LIBLINEAR model, w alone: LIBSVM's format wants support vectors")
    return libsvm_from_estimator(_unscaled(model, source, "LIBSVM"))


def _as_liblinear(model: Any, source: str) -> LiblinearModel:
    if isinstance(model, LiblinearModel):
        return model
    if isinstance(model, LibsvmModel):
        raise TypeError(f"{source} is a machine with support vectors, which LIBLINEAR's format cannot hold")
    return liblinear_from_estimator(_unscaled(model, source, "LIBLINEAR"))


def _unscaled(model: Any, source: str, program: str) -> Any:
    if model is not machine_of(model):
        raise TypeError(
            f"{source} standardises its columns first, which a {program} file cannot hold; convert to ONNX, or train "
            "with --no-standardise on scaled data"
        )
    return model
