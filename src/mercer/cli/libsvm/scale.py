"""``mercer scale``: scale the features of LIBSVM text, as svm-scale does."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mercer.cli.data import read_data
from mercer.cli.formats import format_of
from mercer.cli.terminal import Subparsers, add_command
from mercer.files.atomic_write import replacing
from mercer.files.model_text import as_float, as_integer
from mercer.runtime.errors import ModelFormatError
from mercer.samples.arrays import Floats


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "scale",
        run,
        ("mercer scale -s ranges train > train.scaled", ""),
        ("mercer scale -r ranges test > test.scaled", "uses the ranges of the training rows"),
        description="Scale every feature to [lower, upper] as svm-scale does; the result goes to standard output. "
        "Tables need no scaling: mercer train standardises their columns and stores the scaling in the model.",
        files="data_file",
    )
    parser.add_argument("file", metavar="DATA", help="LIBSVM text; - for standard input")
    parser.add_argument("-l", "--lower", type=float, default=-1.0, help="lower end of every scaled feature (-1)")
    parser.add_argument("-u", "--upper", type=float, default=1.0, help="upper end of every scaled feature (1)")
    parser.add_argument(
        "-y",
        "--target-range",
        type=_parse_range,
        metavar="LOWER,UPPER",
        help="scale the targets too; the short option takes two numbers as svm-scale does: -y LOWER UPPER",
    )
    files = parser.add_mutually_exclusive_group()
    files.add_argument("-s", "--save", metavar="RANGES", help="save the ranges in a file")
    files.add_argument("-r", "--restore", metavar="RANGES", help="use the ranges that --save wrote")
    parser.add_argument("-q", "--quiet", action="store_true", help="print no warnings")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    if format_of(args.file, None) != "libsvm":
        raise ValueError(
            f"{args.file} is a table, but mercer scale is for LIBSVM text; mercer train standardises the columns of a "
            "table and stores the scaling in the model"
        )
    data = read_data(args.file, "libsvm")
    if args.restore is not None:
        scaling = Scaling.load(args.restore)
        dropped_features = scaling.dropped_features(data.X) if data.X.shape[0] else []
        for j in [] if args.quiet else dropped_features:
            print(
                f"WARNING: feature index {j} appeared in file {args.file} was not seen in the scaling factor file "
                f"{args.restore}. The feature is ignored.",
                file=sys.stderr,
            )
    else:
        scaling = Scaling.of(data.X, data.y, args.lower, args.upper, args.target_range)
        if args.save is not None:
            scaling.save(args.save)
    n_nonzero = _write(scaling, data.X, data.y)
    if n_nonzero > data.X.nnz and not args.quiet:
        print(
            f"WARNING: original #nonzeros {data.X.nnz}\n       > new      #nonzeros {n_nonzero}\n"
            "If feature values are non-negative and sparse, use -l 0 rather than the default -l -1",
            file=sys.stderr,
        )


def _write(scaling: Scaling, X: Any, y: Any) -> int:
    """Write the scaled rows to standard output and return the number of nonzero values."""
    targets = scaling.targets(y).tolist()
    n_nonzero = 0
    for start in range(0, X.shape[0], 4096):  # the scaled rows are dense, so only a block of them is in memory
        lines = []
        for label, row in zip(targets[start:], scaling.rows(X[start : start + 4096]).tolist(), strict=False):
            pairs = [f"{j}:{value:g} " for j, value in enumerate(row, 1) if value != 0]
            n_nonzero += len(pairs)
            lines.append(f"{label:.17g} {''.join(pairs)}\n")
        sys.stdout.write("".join(lines))
    return n_nonzero


def _parse_range(text: str) -> tuple[float, float]:
    """Return the two numbers of a range LOWER,UPPER."""
    try:
        lower, upper = (float(part) for part in text.split(","))
    except ValueError:
        range_text = " ".join(text.split(","))
        raise argparse.ArgumentTypeError(
            f"two numbers are needed, such as -y 0 1, but {range_text!r} was given"
        ) from None
    return lower, upper


@dataclass(frozen=True, eq=False)
class Scaling:
    """Smallest and largest value of each feature, and the interval to which features are scaled.

    `target` holds the interval and the range of the targets if they are scaled. A feature whose smallest and largest
    value are equal is dropped.
    """

    lower: float
    upper: float
    least: Floats
    largest: Floats
    target: tuple[float, float, float, float] | None = None  # lower, upper, least, largest

    @classmethod
    def of(cls, X: Any, y: Floats, lower: float, upper: float, target: tuple[float, float] | None) -> Scaling:
        """Return the scaling for the ranges of a data set."""
        if not upper > lower or (target is not None and not target[1] > target[0]):
            low, high = (lower, upper) if not upper > lower else target or (lower, upper)
            raise ValueError(
                f"the lower end {low:g} is not below the upper end {high:g}; give the smaller number first"
            )
        n, d = X.shape
        least, largest = (
            np.asarray(getattr(X, name)(axis=0).toarray(), dtype=np.float64).ravel() if n else np.zeros(d)
            for name in ("min", "max")
        )
        ends = None if target is None else (*target, float(y.min()), float(y.max()))
        return cls(lower, upper, least, largest, ends)

    def rows(self, X: Any) -> Floats:
        """Return the scaled rows, dense, since 0 need not be scaled to 0. Features without a range become 0."""
        values = np.zeros((X.shape[0], max(len(self.least), X.shape[1])))
        values[:, : X.shape[1]] = X.toarray()
        out = np.zeros_like(values)
        for j in range(len(self.least)):
            if self.least[j] != self.largest[j]:
                out[:, j] = _scale(values[:, j], self.least[j], self.largest[j], self.lower, self.upper)
        return out

    def targets(self, y: Floats) -> Floats:
        """Return the targets, scaled if a target range was given."""
        if self.target is None:
            return y
        lower, upper, least, largest = self.target
        return _scale(y, least, largest, lower, upper) if least != largest else y

    def dropped_features(self, X: Any) -> list[int]:
        """Return the indices, from 1, of features that vary in the data and are dropped, since they have no range."""
        high, low = X.max(axis=0).toarray().ravel(), X.min(axis=0).toarray().ravel()
        has_range = np.zeros(X.shape[1], dtype=bool)
        n = min(len(self.least), X.shape[1])
        has_range[:n] = (self.least != self.largest)[:n]
        return (np.flatnonzero(~has_range & (high != low)) + 1).tolist()

    # --- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a range file of svm-scale."""
        lines = []
        if self.target is not None:
            lower, upper, least, largest = self.target
            lines += ["y", f"{lower:.17g} {upper:.17g}", f"{least:.17g} {largest:.17g}"]
        lines += ["x", f"{self.lower:.17g} {self.upper:.17g}"]
        ranges = enumerate(zip(self.least.tolist(), self.largest.tolist(), strict=True), 1)
        lines += [f"{j} {a:.17g} {b:.17g}" for j, (a, b) in ranges if a != b]
        with replacing(path) as file:
            file.write(("\n".join(lines) + "\n").encode("ascii"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scaling:
        """Read a range file that `save` or svm-scale wrote."""
        name = os.fspath(path)
        text = Path(path).read_text(encoding="ascii", errors="backslashreplace")
        lines = [line.split() for line in text.splitlines()]
        line_numbers = iter(range(1, len(lines) + 1))

        def next_words(count: int) -> list[str]:
            number = next(line_numbers, None)
            if number is None or len(lines[number - 1]) != count:
                raise ModelFormatError(f"{name}:{number or 'end'}: expected {count} values of svm-scale's range file")
            return lines[number - 1]

        target = None
        (word,) = next_words(1)
        if word == "y":
            ends = [as_float(text, name) for _ in range(2) for text in next_words(2)]
            target = (ends[0], ends[1], ends[2], ends[3])
            (word,) = next_words(1)
        if word != "x":
            raise ModelFormatError(f"{name}: expected the line 'x' of a range file of svm-scale, found {word!r:.40}")
        lower, upper = (as_float(text, name) for text in next_words(2))
        ranges: dict[int, tuple[float, float]] = {}
        for number in line_numbers:
            if len(lines[number - 1]) != 3:
                raise ModelFormatError(f"{name}:{number}: expected an index and its least and largest value")
            index, low, high = lines[number - 1]
            j = as_integer(index, f"{name}:{number}")
            if j < 1 or j in ranges:
                raise ModelFormatError(f"{name}:{number}: index {j} is below 1 or occurs twice")
            ranges[j] = as_float(low, f"{name}:{number}"), as_float(high, f"{name}:{number}")
        d = max(ranges, default=0)
        if d > 100 * (len(ranges) + 1000):
            raise ModelFormatError(f"{name}: index {d} is out of proportion to the {len(ranges)} ranges listed")
        least, largest = np.zeros(d), np.zeros(d)
        for j, (a, b) in ranges.items():
            least[j - 1], largest[j - 1] = a, b
        return cls(lower, upper, least, largest, target)


def _scale(values: Floats, least: float, largest: float, lower: float, upper: float) -> Floats:
    """Map values linearly from [least, largest] to [lower, upper], the two ends exactly."""
    out = lower + (upper - lower) * (values - least) / (largest - least)
    out[values == least] = lower
    out[values == largest] = upper
    return np.asarray(out)
