"""``mercer train FOLDER``: train on the files of a folder, read a chunk at a time, or on a Dask cluster."""

from __future__ import annotations

import argparse
import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import mercer
from mercer.cli.machines import build_estimator, class_weights
from mercer.cli.terminal import printable
from mercer.files.stored_rows import stored_rows
from mercer.runtime.progress import waiting


def train_folder(args: argparse.Namespace) -> None:
    """Train on all rows and save a .mercer model; no rows are held out, since each pass over the data is expensive."""
    if args.folds is not None:
        args.parser.error("--folds is for data in memory, not for a folder")
    path = args.output or Path(args.file).resolve().with_suffix(".mercer")
    if path.suffix != ".mercer":
        args.parser.error(f"{path}: a model of a folder must be saved as .mercer")
    with waiting(printable(f"reading {args.file}"), args.quiet or args.json):
        data = stored_rows(args.file, target=args.target)
    if data.y is None and args.machine not in ("one_class", "svdd"):
        args.parser.error("the files contain no targets: use LIBSVM text, or Parquet files with --target COLUMN")
    weights, _ = class_weights(args.weight, set() if data.y is None else set(data.y.tolist()))
    model = build_estimator(args, "scale" if args.gamma is None else args.gamma, args.class_weight or weights)
    with _cluster(args.cluster) as to_cluster, waiting("training", args.quiet or args.json, verbose=args.verbose):
        model.fit(to_cluster(data.X), data.y)
    mercer.save(model, path)
    if args.json:
        report = {"certificate": str(model.certificate_), "converged": model.converged_, "report": model.fit_report_}
        print(json.dumps(report))
    elif not args.quiet:
        print(model.certificate_)
        for operation, row in model.fit_report_.items():
            mb_sent, mb_back = row["bytes_sent"] / 1e6, row["bytes_received"] / 1e6
            print(
                f"{operation:18} {row['calls']:5.0f} × {row['seconds']:8.2f} s {mb_sent:9.1f} MB out {mb_back:9.1f} MB "
                "back"
            )
        print(printable(f"saved as {path}"))


def _cluster(address: str | None) -> Any:
    """Return a context that yields the function placing rows on the cluster; the identity without an address."""
    if address is None:
        return nullcontext(lambda X: X)
    from mercer.places.chunked.dask import on_cluster

    return on_cluster(address)
