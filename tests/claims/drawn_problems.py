"""Two-class problems that Hypothesis draws: samples of several kinds, kernels and C of all sizes."""

import warnings
from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

import mercer
from reference.problems import gram_matrix

# Seconds after which a fit that would not end is ended, so that it fails its test's deadline and not the whole run.
PATIENCE = 3.0
# For laws that hold or fail whatever the numbers are, such as that threads and copies change nothing.
FEW = settings(max_examples=max(25, settings().max_examples // 3))
KINDS = ("gaussian", "lattice", "constant column", "collinear", "scales")


@dataclass(frozen=True)
class Drawn:
    """A two-class problem: labels ±1, a kernel by name with its numbers, C."""

    X: np.ndarray
    y: np.ndarray
    kernel: str
    numbers: dict
    C: float

    def gram(self, X=None, Z=None):
        return gram_matrix(self.kernel, self.X if X is None else X, Z, **self.numbers)

    def fit(self, X=None, y=None, *, C=None, tol=1e-10, sample_weight=None, **options):
        """Fit, with the rounding floor allowed: it is a documented way to end."""
        options = self.numbers | options | {"C": self.C if C is None else C, "tol": tol, "max_time": PATIENCE}
        model = mercer.SVC(kernel=self.kernel, **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return model.fit(self.X if X is None else X, self.y if y is None else y, sample_weight=sample_weight)


@st.composite
def matrices(draw, n=(2, 40), d=(1, 6), kinds=KINDS):
    kind = draw(st.sampled_from(kinds))
    n_rows, n_columns = draw(st.integers(*n)), draw(st.integers(*d))
    if kind == "lattice":
        # Small integers: duplicates, ties and exact zeros are frequent, and hypothesis can shrink them.
        values = draw(st.lists(st.integers(-2, 2), min_size=n_rows * n_columns, max_size=n_rows * n_columns))
        return np.array(values, dtype=float).reshape(n_rows, n_columns)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n_rows, n_columns))
    if kind == "constant column":
        X[:, rng.integers(n_columns)] = rng.normal()
    elif kind == "collinear":
        X = np.outer(X[:, 0], rng.normal(size=n_columns))
    elif kind == "scales":
        X = X * 10.0 ** rng.integers(-6, 7, size=n_columns)
    return X


@st.composite
def problems(draw, C=(-4, 6), kinds=KINDS, kernels=("linear", "rbf", "poly", "laplacian"), n=(2, 40)):
    X = draw(matrices(kinds=kinds, n=n))
    signs = draw(st.lists(st.booleans(), min_size=len(X), max_size=len(X)).filter(lambda s: len(set(s)) == 2))
    kernel = draw(st.sampled_from(kernels))
    gamma = 10.0 ** draw(st.integers(-2, 1))
    numbers = {
        "linear": {},
        "rbf": {"gamma": gamma},
        "laplacian": {"gamma": gamma},
        "poly": {"gamma": gamma, "coef0": 1.0, "degree": draw(st.integers(1, 3))},
    }[kernel]
    exponent = draw(st.floats(*C).map(lambda e: round(e, 2)))
    return Drawn(X, np.where(signs, 1.0, -1.0), kernel, numbers, 10.0**exponent)
