"""``mercer svm_learn``: train as SVMlight's svm_learn does, with its options, report and model file."""

from __future__ import annotations

import argparse
import time
from typing import Any, Final

from mercer.cli.terminal import Subparsers, add_command

_KERNELS: Final = ("linear", "poly", "rbf", "sigmoid")
# Options of SVMlight's solver, which do not change the solution; mercer's solver has no use for them.
_IGNORED_OPTIONS: Final = {
    "-q": "size of the working set",
    "-n": "new variables per working set",
    "-h": "iterations before shrinking",
    "-f": "final check of shrunk variables",
}


def register(commands: Subparsers) -> None:
    """Add the command and its options to the parser."""
    command = add_command(
        commands,
        "svm_learn",
        run,
        ("mercer svm_learn -t 2 -g 0.1 train.dat model", "two classes, +1 and -1"),
        ("mercer svm_learn -z r -w 0.05 train.dat model", "a regression"),
        ("mercer svm_learn -z p train.dat model", "ranks the rows of each qid:"),
        ("mercer svm_learn train_transduction.dat model", "rows with the label 0 are unlabelled"),
        usage="mercer svm_learn [options] DATA MODEL",
        add_help=False,
        description="Train as SVMlight's svm_learn does, with its options, report and model file. Rows with the label "
        "0 are unlabelled: their labels are learnt together with the machine (transduction).",
    )
    add = command.add_argument
    add("--help", action="help", help="show this message and exit (-h is svm_learn's)")
    add("file", metavar="DATA", help="SVMlight text")
    add("model", metavar="MODEL", nargs="?", default="svm_model", help="file to save the model in (svm_model)")
    add("-v", dest="verbosity", type=int, default=1, help="verbosity; 0 prints nothing (1)")
    add("-z", dest="task", choices=("c", "r", "p"), default="c", help="classification, regression or ranking (c)")
    add("-c", dest="C", type=float, help="penalty C; default: 1 over the squared mean norm of the samples")
    add("-w", dest="epsilon", type=float, default=0.1, help="half-width of the tube of a regression (0.1)")
    add("-j", dest="ratio", type=float, default=1.0, help="C of positive rows divided by C of negative rows (1)")
    add("-b", dest="bias", type=int, choices=(0, 1), default=1, help="1: with bias b, 0: without (1)")
    add(
        "-i",
        dest="remove",
        type=int,
        choices=(0, 1),
        default=0,
        help="removal of inconsistent rows; only 0 is supported (0)",
    )
    add("-x", dest="leave_one_out", type=int, choices=(0, 1), default=0, help="exact leave-one-out estimates (0)")
    add("-o", dest="rho", type=float, default=1.0, help="rho of the xi-alpha estimates; only 1 is supported")
    add("-k", dest="depth", type=int, default=0, help="depth of the xi-alpha estimates; only 0 is supported")
    add(
        "-p",
        dest="share",
        type=float,
        help="share of unlabelled rows that are positive; default: as among the labelled rows",
    )
    add("-t", dest="kernel", type=int, choices=range(4), default=0, help="kernel: linear, poly, rbf, sigmoid (0)")
    add("-d", dest="degree", type=int, default=3, help="degree of poly (3)")
    add("-g", dest="gamma", type=float, default=1.0, help="gamma of rbf (1)")
    add("-s", dest="scale", type=float, default=1.0, help="s of (s a*b + c)^d and tanh(s a*b + c) (1)")
    add("-r", dest="coef0", type=float, default=1.0, help="c of (s a*b + c)^d and tanh(s a*b + c) (1)")
    add("-m", dest="cache_size", type=float, default=1000, metavar="MB", help="memory for training (1000)")
    add(
        "-e",
        dest="tol",
        type=float,
        default=1e-3,
        help="violation of the optimality conditions at which training stops (0.001)",
    )
    add(
        "-#",
        dest="max_iter",
        type=int,
        default=-1,
        metavar="N",
        help="maximum number of iterations; -1: mercer's own limit (-1)",
    )
    add("-l", dest="labels", metavar="FILE", help="file for the learnt labels of unlabelled rows")
    add("-a", dest="alphas", metavar="FILE", help="file for alpha*y of every row")
    for letter, meaning in _IGNORED_OPTIONS.items():
        add(
            letter,
            dest=f"unused{letter}",
            metavar="N",
            help=f"{meaning}; accepted but ignored, since the solution does not change",
        )


def default_C(X: Any, kernel: Any) -> float:
    """Return SVMlight's default C: 1 over the square of the mean distance of φ(x) from φ(0)."""
    length = float((_squared_lengths(X, kernel) ** 0.5).mean())
    return 1.0 / length**2 if length > 0 else 1.0


def _squared_lengths(X: Any, kernel: Any) -> Any:
    """Return ‖φ(x) − φ(0)‖² for each row."""
    import numpy as np
    import scipy.sparse as sp

    origin = sp.csr_array((1, X.shape[1]))
    return np.maximum(kernel.diag(X) - 2 * kernel(X, origin)[:, 0] + kernel.diag(origin)[0], 0.0)


def run(args: argparse.Namespace) -> None:
    """Run the command with these options."""
    import numpy as np

    from mercer.files.atomic_write import check_save_path
    from mercer.files.libsvm_text import read_labelled_text
    from mercer.kernels.names import kernel_named

    if args.remove or args.rho != 1 or args.depth != 0:
        raise ValueError(
            "-i 1, -o and -k are not supported: training uses all rows, and the xi-alpha estimates are those of "
            "Joachims' theorem (-o 1 -k 0); -x 1 computes exact leave-one-out estimates"
        )
    check_save_path(args.model)
    text = read_labelled_text(args.file)
    X, y = text.X, text.y
    if X.shape[0] == 0:
        raise ValueError(f"{args.file} holds no rows")
    print_line = print if args.verbosity else _discard
    print_line(f"Scanning examples...done\nReading examples into memory...OK. ({len(y)} examples read)")
    gamma = args.gamma if args.kernel == 2 else args.scale
    kernel = kernel_named(_KERNELS[args.kernel], degree=args.degree, gamma=gamma, coef0=args.coef0)
    C = args.C or default_C(X, kernel)
    if not args.C:
        print_line(f"Setting default regularization parameter C={C:.4f}")
    if args.task == "p" and text.queries is None:
        raise ValueError(f"{args.file} has no qid: fields, but ranking compares rows with the same qid")
    start = time.process_time()
    is_transduction = args.task == "c" and bool((y == 0).any())
    model, y = _fit(args, kernel, C, X, y, text.queries)
    proof, f = model.certificate_, np.ravel(model.decision_function(X) if args.task == "c" else model.predict(X))
    n_wrong = int(((f > 0) != (y > 0)).sum()) if args.task == "c" else int((np.abs(f - y) > args.epsilon).sum())
    counts = f"{n_wrong} misclassified, maxdiff" if args.task != "p" else "maxdiff"
    print_line(f"Optimizing...done. ({int(np.max(model.n_iter_))} iterations)")
    print_line(f"Optimization finished ({counts}={proof.violation:.5f}).")
    print_line(f"Runtime in cpu-seconds: {time.process_time() - start:.2f}")
    written_model = _to_libsvm_model(model, X)
    for line in _report(args, model, written_model, kernel, X, y, f, not is_transduction):
        print_line(line)
    from mercer.files.svmlight_model import write_svmlight_model

    write_svmlight_model(written_model, args.model, len(y))
    print_line("Writing model file...done")
    if args.alphas:
        with open(args.alphas, "w", encoding="ascii") as file:
            file.writelines(f"{value:.18g}\n" for value in _coefficients(model, len(y)))


def _discard(*_: Any) -> None:
    """Print nothing, for -v 0."""


def _fit(args: Any, kernel: Any, C: float, X: Any, y: Any, queries: Any) -> tuple[Any, Any]:
    """Return the fitted machine and the labels of all rows, given or learnt."""
    import numpy as np

    from mercer import SVC, SVR, RankSVM
    from mercer.estimators.transduction import transduce

    common = {"C": C, "kernel": kernel, "max_iter": args.max_iter, "cache_size": args.cache_size}
    if args.task == "p":
        return RankSVM(**common, tol=min(1e-6, args.tol)).fit(X, y, qid=queries), y
    common |= {"tol": args.tol, "bias": bool(args.bias)}
    if args.task == "r":
        return SVR(**common, epsilon=args.epsilon).fit(X, y), y
    if not np.isin(y, (-1, 0, 1)).all() or not {-1.0, 1.0} <= set(y.tolist()):
        raise ValueError(
            f"{args.file}: the labels of a classification must be +1 and -1, both present, or 0 for unlabelled rows"
        )
    machine = SVC(**common, class_weight={1.0: args.ratio, -1.0: 1.0})
    if (y != 0).all():
        return machine.fit(X, y), y
    transduction = transduce(machine, X, y, unlabelled=0, positive_share=args.share)
    if args.labels:
        with open(args.labels, "w", encoding="ascii") as file:
            file.writelines(f"{label:+.0f}\n" for label in transduction.labels[y == 0])
    return transduction.model, transduction.labels


def _coefficients(model: Any, n: int) -> Any:
    """Return the coefficient α_i y_i or β_i of every row."""
    import numpy as np

    out = np.zeros(n)
    if hasattr(model, "support_"):
        out[model.support_] = np.ravel(model.dual_coef_)
    else:
        out[:] = np.ravel(model.dual_coef_)
    return out


def _to_libsvm_model(model: Any, X: Any) -> Any:
    """Return the decision function as a one-output LIBSVM model, which is all that SVMlight's files store."""
    import numpy as np

    from mercer.files.libsvm_estimator import libsvm_kernel
    from mercer.files.libsvm_model import LibsvmModel

    beta = _coefficients(model, X.shape[0])
    used = np.flatnonzero(beta)
    rho = -np.atleast_1d(model.intercept_)
    return LibsvmModel("epsilon_svr", *libsvm_kernel(model.kernel_), rho, beta[used, None], X[used])


def _report(
    args: Any, model: Any, written_model: Any, kernel: Any, X: Any, y: Any, f: Any, labelled: bool
) -> list[str]:
    """Return svm_learn's lines on the model and its estimates of the error."""
    import numpy as np

    from mercer.estimators.fitting.reports.dual_margins import n_bounded

    norms = np.sqrt(np.maximum(kernel.diag(X), 0.0))
    w = float(written_model.function(X.shape[1]).norms()[0])
    at_bound = f" (including {n_bounded(model, 0)} at upper bound)" if hasattr(model, "support_") else ""
    lines = [f"Number of SV: {len(written_model.coefficients)}{at_bound}"]
    if args.task != "p":
        slack = 1 - y * f if args.task == "c" else np.abs(y - f) - args.epsilon
        lines.append(f"L1 loss: loss={np.maximum(slack, 0.0).sum():.5f}")
    lines += [f"Norm of weight vector: |w|={w:.5f}", f"Norm of longest example vector: |x|={norms.max():.5f}"]
    if args.task == "c":
        from mercer import leave_one_out
        from mercer.model_selection.paths import xi_alpha

        longest = float(_squared_lengths(written_model.vectors, kernel).max())
        lines.append(f"Estimated VCdim of classifier: VCdim<={1 + w * w * longest:.5f}")
    if args.task == "c" and labelled:  # the theorem needs given labels
        estimates = xi_alpha(model, X, y)
        for name, sign, value in (
            ("error", "<=", estimates.error),
            ("recall", "=>", estimates.recall),
            ("precision", "=>", estimates.precision),
        ):
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
