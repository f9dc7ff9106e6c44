"""``mercer train FOLDER``: rows in the files of a folder, read a chunk at a time, or on a Dask cluster."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import mercer
from mercer.cli.machines import build, class_weights
from mercer.cli.terminal import printable
from mercer.files.stored_rows import stored_rows
from mercer.runtime.progress import waiting


def train_folder(args: argparse.Namespace) -> None:
    """Train on all rows, and save a .mercer model; no row is held out, since a look at each has its price."""
    if args.folds is not None:
        args.parser.error("--folds is for data in memory; a folder is trained on as a whole")
    path = args.output or Path(args.file).resolve().with_suffix(".mercer")
    if path.suffix != ".mercer":
        args.parser.error(f"{path}: machines trained on a folder are saved as .mercer")
    with waiting(printable(f"reading {args.file}"), args.quiet or args.json):
        data = stored_rows(args.file, target=args.target)
    if data.y is None and args.machine not in ("one_class", "svdd"):
        args.parser.error("the files hold no targets: give LIBSVM texts, or Parquet files and --target COLUMN")
    weights, _ = class_weights(args.weight, set() if data.y is None else set(data.y.tolist()))
    model = build(args, "scale" if args.gamma is None else args.gamma, args.class_weight or weights)
    with _cluster(args.cluster) as placed, waiting("training", args.quiet or args.json, verbose=args.verbose):
        model.fit(placed(data.X), data.y)
    mercer.save(model, path)
    if args.json:
        told = {"certificate": str(model.certificate_), "converged": model.converged_, "report": model.fit_report_}
        print(json.dumps(told))
    elif not args.quiet:
        print(model.certificate_)
        for verb, row in model.fit_report_.items():
            sent, received = row["bytes_sent"] / 1e6, row["bytes_received"] / 1e6
            print(f"{verb:18} {row['calls']:5.0f} × {row['seconds']:8.2f} s {sent:9.1f} MB out {received:9.1f} MB back")
        print(printable(f"saved as {path}"))


def _cluster(address: str | None) -> Any:
    if address is None:
        return nullcontext(lambda X: X)
    from mercer.places.chunked.dask import on_cluster

    return on_cluster(address)
