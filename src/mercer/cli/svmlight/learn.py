"""``mercer svm_learn``: SVMlight's program, with its options, its report and its model file."""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from mercer.cli.terminal import Subparsers, add_command

_KERNELS: Final = ("linear", "poly", "rbf", "sigmoid")
# How a solver goes about it; the answer is the same, and ours decides that for itself.
_SOLVER: Final = {
    "-q": "size of working sets",
    "-n": "variables that enter one",
    "-h": "steps before shrinking",
    "-f": "a last check of shrunk variables",
}


def register(commands: Subparsers) -> None:
    learn = add_command(
        commands,
        "svm_learn",
        run,
        ("mercer svm_learn -t 2 -g 0.1 train.dat model", "two classes, +1 and -1"),
        ("mercer svm_learn -z r -w 0.05 train.dat model", "a regression"),
        ("mercer svm_learn -z p train.dat model", "a ranking of the rows of each qid:"),
        ("mercer svm_learn train_transduction.dat model", "rows with the label 0 have none"),
        usage="mercer svm_learn [options] DATA MODEL",
        add_help=False,
        description="Train as SVMlight's svm_learn does, with its options, report and model file. Rows with the label "
        "0 are unlabelled: their labels are found with the machine (transduction).",
    )
    add = learn.add_argument
    add("--help", action="help", help="show this message and exit (-h is svm_learn's)")
    add("file", metavar="DATA", help="SVMlight text")
    add("model", metavar="MODEL", nargs="?", default="svm_model", help="where to save (svm_model)")
    add("-v", dest="verbosity", type=int, default=1, help="0 prints nothing (1)")
    add("-z", dest="task", choices=("c", "r", "p"), default="c", help="classification, regression or ranking (c)")
    add("-c", dest="C", type=float, help="price of an error; default: 1 over the squared mean length of the samples")
    add("-w", dest="epsilon", type=float, default=0.1, help="half the width of a regression's tube (0.1)")
    add("-j", dest="ratio", type=float, default=1.0, help="C of positive rows over that of negative ones (1)")
    add("-b", dest="bias", type=int, choices=(0, 1), default=1, help="whether f has a threshold b (1)")
    add("-i", dest="remove", type=int, choices=(0, 1), default=0, help="1 is refused: it leaves out rows and goes on")
    add("-x", dest="leave_one_out", type=int, choices=(0, 1), default=0, help="exact leave-one-out estimates (0)")
    add("-o", dest="rho", type=float, default=1.0, help="of the xi-alpha estimates; only 1 is here")
    add("-k", dest="depth", type=int, default=0, help="of the xi-alpha estimates; only 0 is here")
    add("-p", dest="share", type=float, help="share of unlabelled rows that are positive; default: as the others")
    add("-t", dest="kernel", type=int, choices=range(4), default=0, help="linear, poly, rbf, sigmoid (0)")
    add("-d", dest="degree", type=int, default=3, help="of poly (3)")
    add("-g", dest="gamma", type=float, default=1.0, help="of rbf (1)")
    add("-s", dest="scale", type=float, default=1.0, help="s of (s a*b + c)^d and tanh(s a*b + c) (1)")
    add("-r", dest="coef0", type=float, default=1.0, help="c of these (1)")
    add("-m", dest="cache_size", type=float, default=1000, metavar="MB", help="memory for a fit (1000)")
    add("-e", dest="tol", type=float, default=1e-3, help="largest violation of optimality to stop at (0.001)")
    add("-#", dest="max_iter", type=int, default=-1, metavar="N", help="most steps (-1: no other limit than ours)")
    add("-l", dest="labels", metavar="FILE", help="where to write the labels that were found for unlabelled rows")
    add("-a", dest="alphas", metavar="FILE", help="where to write alpha*y of every row")
    for letter, what in _SOLVER.items():
        add(letter, dest=f"unused{letter}", help=f"{what}; taken and not used: it does not change the answer")


def default_price(X: Any, kernel: Any) -> float:
    """SVMlight's C: 1 over the square of the mean distance of φ(x) from φ(0)."""
    length = float((_squared_lengths(X, kernel) ** 0.5).mean())
    return 1.0 / length**2 if length > 0 else 1.0


def _squared_lengths(X: Any, kernel: Any) -> Any:
    """‖φ(x) − φ(0)‖² of each row."""
    import numpy as np
    import scipy.sparse as sp

    origin = sp.csr_array((1, X.shape[1]))
    return np.maximum(kernel.diag(X) - 2 * kernel(X, origin)[:, 0] + kernel.diag(origin)[0], 0.0)


def run(args: argparse.Namespace) -> None:
    import numpy as np

    from mercer.files.atomic_write import checked_target
    from mercer.files.libsvm_text import read_labelled_text
    from mercer.kernels.names import kernel_named

    if args.remove or args.rho != 1 or args.depth != 0:
        raise ValueError(
            "-i 1, -o and -k are not here: rows are never left out of a training, and the xi-alpha estimates are those "
            "of Joachims' theorem (-o 1 -k 0); -x 1 leaves rows out exactly"
        )
    checked_target(args.model)
    text = read_labelled_text(args.file)
    X, y = text.X, text.y
    if X.shape[0] == 0:
        raise ValueError(f"{args.file} holds no rows")
    say = print if args.verbosity else _nothing
    say(f"Scanning examples...done\nReading examples into memory...OK. ({len(y)} examples read)")
    gamma = args.gamma if args.kernel == 2 else args.scale
    kernel = kernel_named(_KERNELS[args.kernel], degree=args.degree, gamma=gamma, coef0=args.coef0)
    price = args.C or default_price(X, kernel)
    if not args.C:
        say(f"Setting default regularization parameter C={price:.4f}")
    if args.task == "p" and text.queries is None:
        raise ValueError(f"{args.file} has no qid: fields; ranking compares the rows of one qid")
    begun = time.process_time()
    transduction = args.task == "c" and bool((y == 0).any())
    model, y = _trained(args, kernel, price, X, y, text.queries)
    proof, f = model.certificate_, np.ravel(model.decision_function(X) if args.task == "c" else model.predict(X))
    wrong = int(((f > 0) != (y > 0)).sum()) if args.task == "c" else int((np.abs(f - y) > args.epsilon).sum())
    told = f"{wrong} misclassified, maxdiff" if args.task != "p" else "maxdiff"
    say(f"Optimizing...done. ({int(np.max(model.n_iter_))} iterations)")
    say(f"Optimization finished ({told}={proof.violation:.5f}).")
    say(f"Runtime in cpu-seconds: {time.process_time() - begun:.2f}")
    written = _as_libsvm(model, X)
    for line in _report(args, model, written, kernel, X, y, f, not transduction):
        say(line)
    from mercer.files.svmlight_model import write_svmlight_model

    write_svmlight_model(written, args.model, len(y))
    say("Writing model file...done")
    if args.alphas:
        with open(args.alphas, "w", encoding="ascii") as file:
            file.writelines(f"{value:.18g}\n" for value in _coefficients(model, len(y)))


def _nothing(*_: Any) -> None:
    """For -v 0."""


def _trained(args: Any, kernel: Any, price: float, X: Any, y: Any, queries: Any) -> tuple[Any, Any]:
    """The machine, and the labels of all rows."""
    import numpy as np

    from mercer import SVC, SVR, RankSVM
    from mercer.estimators.transduction import transduce

    common = {"C": price, "kernel": kernel, "max_iter": args.max_iter, "cache_size": args.cache_size}
    if args.task == "p":
        return RankSVM(**common, tol=min(1e-6, args.tol)).fit(X, y, qid=queries), y
    common |= {"tol": args.tol, "bias": bool(args.bias)}
    if args.task == "r":
        return SVR(**common, epsilon=args.epsilon).fit(X, y), y
    if not np.isin(y, (-1, 0, 1)).all() or not {-1.0, 1.0} <= set(y.tolist()):
        raise ValueError(f"{args.file}: the labels of a classification are +1 and -1, both, and 0 where there is none")
    machine = SVC(**common, class_weight={1.0: args.ratio, -1.0: 1.0})
    if (y != 0).all():
        return machine.fit(X, y), y
    found = transduce(machine, X, y, unlabelled=0, positive_share=args.share)
    if args.labels:
        with open(args.labels, "w", encoding="ascii") as file:
            file.writelines(f"{label:+.0f}\n" for label in found.labels[y == 0])
    return found.model, found.labels


def _coefficients(model: Any, n: int) -> Any:
    """α_i y_i, or β_i, of every row."""
    import numpy as np

    out = np.zeros(n)
    if hasattr(model, "support_"):
        out[model.support_] = np.ravel(model.dual_coef_)
    else:
        out[:] = np.ravel(model.dual_coef_)
    return out


def _as_libsvm(model: Any, X: Any) -> Any:
    """Its function as a model of one output: SVMlight's files say no more."""
    import numpy as np

    from mercer.files.libsvm_estimator import libsvm_kernel
    from mercer.files.libsvm_model import LibsvmModel

    beta = _coefficients(model, X.shape[0])
    used = np.flatnonzero(beta)
    rho = -np.atleast_1d(model.intercept_)
    return LibsvmModel("epsilon_svr", *libsvm_kernel(model.kernel_), rho, beta[used, None], X[used])


def _report(args: Any, model: Any, written: Any, kernel: Any, X: Any, y: Any, f: Any, labelled: bool) -> list[str]:
    import numpy as np

    from mercer.estimators.fitting.reports.dual_margins import n_bounded

    norms = np.sqrt(np.maximum(kernel.diag(X), 0.0))
    w = float(written.function(X.shape[1]).norms()[0])
    at_bound = f" (including {n_bounded(model, 0)} at upper bound)" if hasattr(model, "support_") else ""
    lines = [f"Number of SV: {len(written.coefficients)}{at_bound}"]
    if args.task != "p":
        slack = 1 - y * f if args.task == "c" else np.abs(y - f) - args.epsilon
        lines.append(f"L1 loss: loss={np.maximum(slack, 0.0).sum():.5f}")
    lines += [f"Norm of weight vector: |w|={w:.5f}", f"Norm of longest example vector: |x|={norms.max():.5f}"]
    if args.task == "c":
        from mercer import leave_one_out
        from mercer.model_selection.paths import xi_alpha

        longest = float(_squared_lengths(written.vectors, kernel).max())
        lines.append(f"Estimated VCdim of classifier: VCdim<={1 + w * w * longest:.5f}")
    if args.task == "c" and labelled:  # the theorem is about given labels
        found = xi_alpha(model, X, y)
        for name, sign, value in (
            ("error", "<=", found.error), ("recall", "=>", found.recall), ("precision", "=>", found.precision),
        ):  # fmt: skip
            lines.append(f"XiAlpha-estimate of the {name}: {name}{sign}{100 * value:.2f}% (rho=1.00,depth=0)")
        if args.leave_one_out:
            out = leave_one_out(model, X, y)
            right = (out.predictions > 0) & (y > 0)
            recall, precision = right.sum() / max(1, (y > 0).sum()), right.sum() / max(1, (out.predictions > 0).sum())
            for name, value in (("error", out.error), ("recall", recall), ("precision", precision)):
                lines.append(f"Leave-one-out estimate of the {name}: {name}={100 * value:.2f}%")
    if hasattr(model, "n_kernel_values_"):
        lines.append(f"Number of kernel evaluations: {model.n_kernel_values_}")
    lines.append(f"Duality gap: {model.certificate_.gap:.3g}, {model.certificate_.relative_gap:.1e} of the dual value")
    return lines
