"""``mercer easy`` on LIBSVM text: scale, search for C and gamma, train and predict, as easy.py does."""

from __future__ import annotations

import argparse
from pathlib import Path

from mercer.cli.tune import read_rows


def run_text(args: argparse.Namespace) -> None:
    """Run easy.py's steps on LIBSVM text."""
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
    machine = mercer.SVC(cache_size=args.cache_size, tol=args.tol)
    defaults = {"C": 1.0, "gamma": 1.0 / max(1, X.shape[1])}
    search = GridSearch.of(args, replace(train, X=X), machine, "c_svc", defaults)
    params, rate = search.run({}, Path(f"{name}.out"))
    print(f"Best c={params['C']:g}, g={params['gamma']:g} CV rate={rate:g}")
    model = machine.set_params(**params).fit(X, train.y)
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
