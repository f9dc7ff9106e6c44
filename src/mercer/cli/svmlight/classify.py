"""``mercer svm_classify``: evaluate a model as SVMlight's svm_classify does."""

from __future__ import annotations

import argparse

from mercer.cli.terminal import Subparsers, add_command


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    parser = add_command(
        commands,
        "svm_classify",
        run,
        ("mercer svm_classify test.dat model predictions", "writes f(x) of every row"),
        usage="mercer svm_classify [options] DATA MODEL [PREDICTIONS]",
        description="Evaluate a model that SVMlight or mercer svm_learn wrote, as SVMlight's svm_classify does.",
    )
    parser.add_argument("file", metavar="DATA", help="SVMlight text")
    parser.add_argument("model", metavar="MODEL", help="model file: SVMlight, LIBSVM, LIBLINEAR or .mercer")
    parser.add_argument(
        "output",
        metavar="PREDICTIONS",
        nargs="?",
        default="svm_predictions",
        help="file for the predictions (svm_predictions)",
    )
    parser.add_argument("-v", dest="verbosity", type=int, default=2, help="verbosity; 0 prints nothing (2)")
    parser.add_argument(
        "-f",
        dest="form",
        type=int,
        choices=(0, 1),
        default=1,
        help="format of the predictions; 0: that of SVMlight 1.0 (1)",
    )


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    import numpy as np

    from mercer.files.atomic_write import replacing
    from mercer.files.libsvm_text import read_labelled_text
    from mercer.files.models import read_model

    model = read_model(args.model)
    text = read_labelled_text(args.file)
    f = np.ravel(model.decisions(model.rows(text.X, args.file, text=True)))
    if len(f) != text.X.shape[0]:
        raise ValueError(
            f"{args.model} has several decision functions, but svm_classify evaluates one: use mercer predict"
        )
    pair_lines = (f"{value:.17g}:+1 {-value:.17g}:-1\n" for value in f.tolist())
    lines = (f"{value:.17g}\n" for value in f.tolist()) if args.form else pair_lines
    with replacing(args.output) as file:
        file.write("".join(lines).encode())
    if args.verbosity and np.isin(text.y, (-1.0, 1.0)).all():
        positive, predicted_positive = text.y > 0, f > 0
        right, hit = int((positive == predicted_positive).sum()), int((positive & predicted_positive).sum())
        n = len(f)
        print(f"Accuracy on test set: {100 * right / n:.2f}% ({right} correct, {n - right} incorrect, {n} total)")
        shares = [100 * hit / total if total else float("nan") for total in (predicted_positive.sum(), positive.sum())]
        print(f"Precision/recall on test set: {shares[0]:.2f}%/{shares[1]:.2f}%")
