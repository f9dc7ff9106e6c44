"""``mercer subset``: draw a stratified or random subset of the rows of a text file, as subset.py does."""

from __future__ import annotations

import argparse

from mercer.cli.terminal import Subparsers, add_command


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "subset",
        run,
        ("mercer subset heart 100 sample rest", "100 rows, with the classes in proportion; the others in rest"),
        ("mercer subset -s 1 heart 100", "100 random rows, to standard output"),
        usage="mercer subset [options] DATA N [DRAWN] [REST]",
        description="Draw N rows of a text file without replacement, in the file's order, as subset.py does.",
    )
    parser.add_argument("-s", dest="method", type=int, choices=(0, 1), default=0, help="0: stratified, 1: random (0)")
    parser.add_argument("--seed", type=int, default=0, help="random seed (0)")
    parser.add_argument("file", metavar="DATA", help="LIBSVM text")
    parser.add_argument("count", metavar="N", type=int, help="number of rows to draw")
    parser.add_argument("drawn", metavar="DRAWN", nargs="?", default="-", help="file for the drawn rows (-)")
    parser.add_argument("rest", metavar="REST", nargs="?", help="file for the other rows")


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    import sys

    import numpy as np

    from mercer.files.atomic_write import replacing
    from mercer.files.libsvm_text import read_bytes_unpacked

    lines = bytes(read_bytes_unpacked(args.file)).splitlines(keepends=True)
    lines = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
    if not 0 < args.count <= len(lines):
        raise ValueError(f"{args.count} rows cannot be drawn from {args.file}, which has {len(lines)} rows")
    rng, labels = np.random.default_rng(args.seed), np.array([line.split(maxsplit=1)[0] for line in lines])
    chosen_lines = rng.permutation(len(lines))[: args.count]
    if args.method == 0:
        # Each class gets the integer part of its share; the classes with the largest remainders get one more row.
        names, member, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        exact_sizes = sizes * args.count / len(lines)
        n_per_class = np.floor(exact_sizes).astype(int)
        n_per_class[np.argsort(n_per_class - exact_sizes, kind="stable")[: args.count - n_per_class.sum()]] += 1
        drawn_by_class = (rng.permutation(np.flatnonzero(member == k))[: n_per_class[k]] for k in range(len(names)))
        chosen_lines = np.concatenate(list(drawn_by_class))
    is_drawn = np.zeros(len(lines), dtype=bool)
    is_drawn[chosen_lines] = True
    for path, is_selected in ((args.drawn, is_drawn), (args.rest, ~is_drawn)):
        content = b"".join(line for line, selected in zip(lines, is_selected.tolist(), strict=True) if selected)
        if path == "-":
            sys.stdout.buffer.write(content)
        elif path is not None:
            with replacing(path) as file:
                file.write(content)
