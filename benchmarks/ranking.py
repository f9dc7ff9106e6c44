"""RankSVM against an SVM on every pair: seconds of both and how far their f are apart.

python benchmarks/ranking.py [--rows 2000] [--groups 100] [--levels 5]
"""

import argparse
import time

import numpy as np

from mercer import SVC, LinearSVC, RankSVM
from mercer.kernels import Gaussian


def main() -> None:
    """Both kernels, on one problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--groups", type=int, default=100)
    parser.add_argument("--levels", type=int, default=5)
    parser.add_argument("--only", choices=["kernel", "linear"])
    given = parser.parse_args()
    rng, n = np.random.default_rng(0), given.rows
    X = rng.normal(size=(n, 10))
    quality = X[:, 0] + np.sin(X[:, 1]) + 0.5 * rng.normal(size=n)
    y = np.digitize(quality, np.quantile(quality, np.linspace(0, 1, given.levels + 1)[1:-1]))
    qid = np.arange(n) % given.groups
    i, j = np.nonzero((y[:, None] > y[None, :]) & (qid[:, None] == qid[None, :]))
    sign = np.where(np.arange(len(i)) % 2 == 0, 1.0, -1.0)
    print(f"{n:,} rows, {len(i):,} pairs")
    for name in ("kernel", "linear") if given.only is None else (given.only,):
        kernel = "linear" if name == "linear" else Gaussian(gamma=0.05)
        begun = time.perf_counter()
        model = RankSVM(kernel=kernel, tol=1e-9).fit(X, y, qid=qid)
        ours = time.perf_counter() - begun
        print(f"{name}: RankSVM {ours:.2f} s, gap {model.certificate_.relative_gap:.1e}", flush=True)
        begun = time.perf_counter()
        if name == "linear":
            pairs = LinearSVC(loss="hinge", bias=False, tol=1e-8).fit(sign[:, None] * (X[i] - X[j]), sign)
            f = X @ pairs.coef_[0]
        else:
            K = Gaussian(gamma=0.05)(X, X)

            def of_pairs(P: np.ndarray, Q: np.ndarray, K: np.ndarray = K) -> np.ndarray:
                (a, b, s), (c, d, t) = (R.T for R in (P, Q))
                a, b, c, d = (v.astype(int) for v in (a, b, c, d))
                return s[:, None] * (K[np.ix_(a, c)] - K[np.ix_(a, d)] - K[np.ix_(b, c)] + K[np.ix_(b, d)]) * t

            rows = np.column_stack([i, j, sign]).astype(float)
            pairs = SVC(kernel=of_pairs, bias=False, tol=1e-7).fit(rows, sign)
            beta = np.zeros(n)
            alpha = np.abs(pairs.dual_coef_[0])
            np.add.at(beta, i[pairs.support_], alpha)
            np.add.at(beta, j[pairs.support_], -alpha)
            f = K @ beta
        theirs = time.perf_counter() - begun
        apart = np.abs(model.predict(X) - f).max()
        print(f"{name}: every pair {theirs:.2f} s, {theirs / ours:.1f} times as long, f apart by {apart:.1e}")


if __name__ == "__main__":
    main()
