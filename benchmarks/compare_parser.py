"""Reading LIBSVM text: mercer against scikit-learn's load_svmlight_file, on text like a9a's and on dense decimals.

    python benchmarks/compare_parser.py [--megabytes 200] [--threads 2] [--repeats 3]

Both read the same file in the same run, take turns, and must agree to the last bit. The minimum is what counts.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file

from mercer.files.libsvm_text import read_libsvm


def like_a9a(rng: np.random.Generator, rows: int) -> str:
    """14 of 123 indicator columns a row, as in the one-hot coded Adult data."""
    lines = []
    for label in rng.random(rows) < 0.24:
        columns = np.sort(rng.choice(123, 14, replace=False)) + 1
        lines.append(("+1 " if label else "-1 ") + " ".join(f"{c}:1" for c in columns) + " \n")
    return "".join(lines)


def decimals(rng: np.random.Generator, rows: int) -> str:
    """13 columns of six-digit decimals, as svm-scale writes them."""
    table = rng.uniform(-1, 1, (rows, 13))
    return "".join(
        f"{i % 2} " + " ".join(f"{j}:{v:g}" for j, v in enumerate(row, 1)) + "\n" for i, row in enumerate(table)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    for make in (like_a9a, decimals):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.txt"
            piece = make(np.random.default_rng(0), 20_000).encode()
            with open(path, "wb") as file:
                for _ in range(args.megabytes * 1_000_000 // len(piece) + 1):
                    file.write(piece)
            compare(make.__name__, path, args)


def compare(name: str, path: Path, args: argparse.Namespace) -> None:
    megabytes = os.path.getsize(path) / 1e6
    ours, theirs = [], []
    for _ in range(args.repeats):
        begin = time.perf_counter()
        X, y = read_libsvm(path, n_jobs=args.threads)
        ours.append(time.perf_counter() - begin)
        if len(theirs) < 2:
            begin = time.perf_counter()
            X_sk, y_sk = load_svmlight_file(str(path), zero_based=False)
            theirs.append(time.perf_counter() - begin)
            same = all(
                np.array_equal(a, b)
                for a, b in [(X.data, X_sk.data), (X.indices, X_sk.indices), (X.indptr, X_sk.indptr), (y, y_sk)]
            )
            assert same, "mercer and scikit-learn read different numbers"
            del X_sk, y_sk
        del X, y
    fast, slow = min(ours), min(theirs)
    print(
        f"{name}: {megabytes:.0f} MB; mercer {fast:.3f} s ({megabytes / fast:.0f} MB/s, {args.threads} threads), "
        f"scikit-learn {slow:.2f} s ({megabytes / slow:.0f} MB/s): {slow / fast:.1f} times faster, equal results",
        flush=True,
    )


if __name__ == "__main__":
    main()
