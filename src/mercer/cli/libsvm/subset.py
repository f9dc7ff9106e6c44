"""``mercer subset``: subset.py, which draws rows of a text file, with the classes' shares or at random."""

from __future__ import annotations

import argparse

from mercer.cli.terminal import Subparsers, add_command


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "subset",
        run,
        ("mercer subset heart 100 some others", "100 rows, with as much of each class as in all, and the rest"),
        ("mercer subset -s 1 heart 100", "any 100 rows, to standard output"),
        usage="mercer subset [options] DATA N [DRAWN] [REST]",
        description="Draw N rows of a text file without replacement, in the file's order, as subset.py does.",
    )
    parser.add_argument("-s", dest="method", type=int, choices=(0, 1), default=0, help="0: stratified, 1: random (0)")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (0)")
    parser.add_argument("file", metavar="DATA", help="LIBSVM text")
    parser.add_argument("count", metavar="N", type=int, help="how many rows to draw")
    parser.add_argument("drawn", metavar="DRAWN", nargs="?", default="-", help="where to write them (-)")
    parser.add_argument("rest", metavar="REST", nargs="?", help="where to write the others")


def run(args: argparse.Namespace) -> None:
    import sys

    import numpy as np

    from mercer.files.atomic_write import replacing
    from mercer.files.libsvm_text import content_of

    lines = bytes(content_of(args.file)).splitlines(keepends=True)
    lines = [line if line.endswith(b"\n") else line + b"\n" for line in lines]
    if not 0 < args.count <= len(lines):
        raise ValueError(f"{args.count} rows cannot be drawn of {args.file}, which has {len(lines)}")
    rng, labels = np.random.default_rng(args.seed), np.array([line.split(maxsplit=1)[0] for line in lines])
    chosen = rng.permutation(len(lines))[: args.count]
    if args.method == 0:
        # Each class gets the whole part of its share, and the largest remainders one more.
        names, member, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        exact = sizes * args.count / len(lines)
        each = np.floor(exact).astype(int)
        each[np.argsort(each - exact, kind="stable")[: args.count - each.sum()]] += 1
        own = (rng.permutation(np.flatnonzero(member == k))[: each[k]] for k in range(len(names)))
        chosen = np.concatenate(list(own))
    taken = np.zeros(len(lines), dtype=bool)
    taken[chosen] = True
    for path, wanted in ((args.drawn, taken), (args.rest, ~taken)):
        content = b"".join(line for line, is_wanted in zip(lines, wanted.tolist(), strict=True) if is_wanted)
        if path == "-":
            sys.stdout.buffer.write(content)
        elif path is not None:
            with replacing(path) as file:
                file.write(content)
