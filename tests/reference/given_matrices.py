"""Kernel matrices as users hand them over: of every type, symmetric or only nearly, positive definite or not."""

from dataclasses import dataclass

import numpy as np

from reference.decimals import decimals

MATRICES = ("f2", "f4", ">f4", "f8", "g", "i4", "i8", "u2", "asymmetric", "indefinite")


@dataclass(frozen=True, eq=False)
class GivenMatrix:
    """A kernel of which nothing is known but the matrix; it has the face of a `Formula`."""

    values: np.ndarray
    name: str = "precomputed"
    scale: float = 1.0
    known_psd: bool = False
    of_distances: bool = False

    def matrix(self, X, Z=None):
        assert Z is None
        return decimals(self.values)

    def error_scale(self, X):
        return np.abs(self.values)


def given_matrix(kind, plain, gamma, exponent, seed):
    """(the matrix as given, its numbers in float64); a Gaussian or an inner product of the samples, in some unit."""
    rng = np.random.default_rng([seed, 5])
    inner = plain @ plain.T
    squares = np.diag(inner)[:, None] + np.diag(inner) - 2 * inner
    K = np.exp(-gamma * np.maximum(squares, 0.0)) if seed % 3 else gamma * inner
    K = (K + K.T) / 2
    unit = 10.0 ** (exponent - 8)
    match kind:
        case "f2":
            made = K.astype("f2")
        case "i4" | "i8" | "u2":
            made = np.round(10.0 ** (exponent // 5) * 10 * (np.abs(K) if kind == "u2" else K)).astype(kind)
        case "asymmetric":  # by a rounding or two of each value
            made = unit * K * (1 + 2.0**-52 * rng.integers(-1, 2, K.shape))
        case "indefinite":
            noise = rng.normal(size=K.shape)
            made = unit * (K + 0.3 * (noise + noise.T))
        case _:
            made = (unit * K).astype(kind)
    return made, np.asarray(made, dtype=np.float64)
