"""``mercer easy``: easy.py, which scales, searches, trains and predicts."""

from __future__ import annotations

import argparse
from pathlib import Path

from mercer.cli.terminal import Subparsers, add_command
from mercer.cli.tune import add_grid_options, read_rows


def register(commands: Subparsers) -> None:
    parser = add_command(
        commands,
        "easy",
        run,
        ("mercer easy heart", "heart.range, heart.out, heart.model"),
        ("mercer easy --skip train test", "and test.predict"),
        usage="mercer easy [options] TRAIN [TEST]",
        description="Scale every feature to [-1, 1], find C and gamma by cross-validation, train on all rows, and "
        "predict a test file, as easy.py does. It writes TRAIN.range for mercer scale, TRAIN.out with the rates of the "
        "search, TRAIN.model for svm-predict, and TEST.predict.",
        files="training_file [testing_file]",
        computes=True,
    )
    parser.add_argument("file", metavar="TRAIN", help="LIBSVM text")
    parser.add_argument("test", nargs="?", metavar="TEST", help="LIBSVM text to predict")
    add_grid_options(parser)
    parser.add_argument("-q", "--quiet", action="store_true", help="print nothing but results")


def run(args: argparse.Namespace) -> None:
    from dataclasses import replace

    import numpy as np
    import scipy.sparse as sp

    import mercer
    from mercer.cli.data import order_of_appearance
    from mercer.cli.libsvm.grid_search import GridSearch
    from mercer.cli.libsvm.scale import Scaling
    from mercer.files.libsvm_estimator import libsvm_from_estimator
    from mercer.files.libsvm_model import write_libsvm_model

    def say(text: str) -> None:
        if not args.quiet:
            print(text, flush=True)

    train = read_rows(args.file)
    test = read_rows(args.test) if args.test is not None else None
    name = Path(args.file).name
    scaling = Scaling.of(train.X, train.y, -1.0, 1.0, None)
    scaling.save(f"{name}.range")
    X = sp.csr_array(scaling.rows(train.X))
    say(f"Scaled {X.shape[0]:,} rows; cross validation...")
    (C, gamma), rate = GridSearch.of(args, replace(train, X=X)).run({}, Path(f"{name}.out"))
    print(f"Best c={C:g}, g={gamma:g} CV rate={rate:g}")
    model = mercer.SVC(C=C, gamma=gamma, cache_size=args.cache_size, tol=args.tol).fit(X, train.y)
    write_libsvm_model(libsvm_from_estimator(model, label_order=order_of_appearance(train.y)), f"{name}.model")
    proof = model.certificate_
    say(f"Output model: {name}.model, gap {proof.gap:.3g}, {proof.relative_gap:.1e} of the dual value")
    if test is not None:
        rows = sp.csr_array(scaling.rows(test.X)[:, : X.shape[1]])
        predicted = model.predict(rows)
        path = Path(f"{Path(args.test).name}.predict")
        path.write_text("".join(f"{label:g}\n" for label in predicted.tolist()))
        right = int(np.sum(predicted == test.y))
        print(f"Accuracy = {100.0 * right / len(test.y):g}% ({right}/{len(test.y)}) (classification)")
        say(f"Output prediction: {path}")
