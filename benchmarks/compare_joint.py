"""The joint multi-class machines against kernlab's, an R package: same data, same kernel, same problem, same tol.

    python benchmarks/compare_joint.py --data FOLDER [--name letter] [--C 1,10] [--rows N] [--patience SECONDS]

kernlab's "spoc-svc" is Crammer–Singer without bias and "kbb-svc" Weston–Watkins with the regularised bias; the margin
of the latter is 2, so that its C is twice ours. Times are of the training call alone. Prints Markdown.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import tasks

from mercer import SVC

MACHINES = (("crammer-singer", False, "spoc-svc", 1.0), ("weston-watkins", "regularized", "kbb-svc", 2.0))

R_SCRIPT = """
suppressMessages(library(kernlab)); a <- commandArgs(TRUE)
read <- function(name) as.matrix(read.csv(file.path(a[1], name), header = FALSE))
X <- read("X.csv"); y <- factor(read("y.csv")); Z <- read("Z.csv"); t <- factor(read("t.csv"), levels = levels(y))
seconds <- system.time(m <- ksvm(X, y, type = a[2], kernel = "rbfdot", kpar = list(sigma = as.numeric(a[3])),
                                 C = as.numeric(a[4]), tol = 1e-3, scaled = FALSE, cache = 1000, fit = FALSE))[3]
cat(seconds, nSV(m), mean(predict(m, Z) == t), "\\n")
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--name", default="letter")
    parser.add_argument("--C", default="1,10")
    parser.add_argument("--rows", type=int)
    parser.add_argument("--patience", type=float, default=3600.0, help="seconds for each call of R")
    options = parser.parse_args()
    task = tasks.load(options.data, options.name).dense().first(options.rows)
    print(f"{task.name}, {task.form}: {task.X.shape[0]:,} × {task.X.shape[1]}, {len(np.unique(task.y))} classes\n")
    print("| machine | C | library | seconds | support vectors | test accuracy | relative gap |")
    print("|---|---|---|---|---|---|---|")
    for C in map(float, options.C.split(",")):
        for machine, bias, theirs, factor in MACHINES:
            start = time.perf_counter()
            model = SVC(C=C, multiclass=machine, bias=bias, gamma=task.gamma()).fit(task.X, task.y)
            seconds = time.perf_counter() - start
            score, gap = model.score(task.Xtest, task.ytest), model.certificate_.relative_gap
            print(f"| {machine} | {C:g} | mercer | {seconds:.2f} | {len(model.support_):,} | {score:.4f} | {gap:.1e} |")
            print(
                f"| {machine} | {C:g} | kernlab {theirs} | {kernlab(task, theirs, C * factor, options.patience)} | |",
                flush=True,
            )


def kernlab(task: tasks.Task, kind: str, C: float, patience: float) -> str:
    """Seconds, support vectors and test accuracy as cells of a table, or why there are none."""
    if shutil.which("Rscript") is None:
        return "R is not installed | |"
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("X", task.X), ("y", task.y), ("Z", task.Xtest), ("t", task.ytest)):
            np.savetxt(Path(folder) / f"{name}.csv", part, delimiter=",", fmt="%.17g")
        command = ["Rscript", "-e", R_SCRIPT, folder, kind, repr(task.gamma()), repr(C)]
        try:
            found = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=True)
        except subprocess.TimeoutExpired:
            return f"more than {patience:g} | |"
        except subprocess.CalledProcessError as error:
            return f"failed: {error.stderr.strip().splitlines()[-1]} | |"
    seconds, vectors, accuracy = found.stdout.split()[-3:]
    return f"{float(seconds):.2f} | {int(vectors):,} | {float(accuracy):.4f}"


if __name__ == "__main__":
    main()
