"""The cost of a decomposition of K against that of one linear system (Rosasco: "constant is maybe 4x worse").

    python benchmarks/eigen_constant.py [n ...]

Prints, for each n, the least processor time of some repetitions on one thread: Cholesky's factorisation of K + λI and a
solve, all eigenvalues and eigenvectors of K, their ratio, and c(λ) for one more λ from the decomposition.
"""

import argparse
import time

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_limits

from mercer.kernels import Gaussian

REPETITIONS = 5


def least_time(call):
    """Return the least processor time of a call in seconds."""
    times = []
    for _ in range(REPETITIONS):
        begun = time.process_time()
        call()
        times.append(time.process_time() - begun)
    return min(times)


def measure(n, lam=0.1):
    """Return the seconds of a linear system, of the decomposition, and of c(λ) from the decomposition."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 5)), rng.normal(size=n)
    K = Gaussian(gamma=0.2)(X)
    system = K + lam * np.eye(n)
    values, vectors = scipy.linalg.eigh(K)
    direct = scipy.linalg.cho_solve(scipy.linalg.cho_factor(system), y)
    np.testing.assert_allclose(vectors @ ((vectors.T @ y) / (values + lam)), direct, rtol=1e-6, atol=1e-8)
    return (
        least_time(lambda: scipy.linalg.cho_solve(scipy.linalg.cho_factor(system), y)),
        least_time(lambda: scipy.linalg.eigh(K)),
        least_time(lambda: vectors @ ((vectors.T @ y) / (values + lam))),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", nargs="*", type=int, default=[500, 1000, 2000])
    sizes = parser.parse_args().n
    print(f"{'n':>6} {'system (s)':>11} {'decomposition (s)':>18} {'ratio':>6} {'one more λ (s)':>15}")
    with threadpool_limits(1):
        for n in sizes:
            system, decomposition, product = measure(n)
            print(f"{n:6} {system:11.4f} {decomposition:18.4f} {decomposition / system:6.1f} {product:15.5f}")


if __name__ == "__main__":
    main()
