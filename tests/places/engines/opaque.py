"""An engine with an array type of its own that shows nothing: no `__array__`, no len, no iteration, no NumPy function.

It computes in plain float64, block by block, behind that. What runs on it asks the engine for everything: a line above
the engine that reads an array itself fails here.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy import sparse

from mercer.places import BoundedProducts, Cross, Evaluation, Gram, LinearGram, Rows
from mercer.places.choose import cross_for, rows_for
from mercer.places.gram import Eigensystem, Factor, Float32Matrix, Float64Matrix, LandmarkFactor
from mercer.places.host.evaluation import BlockEvaluation
from mercer.places.host.field import HostField
from mercer.places.host.joint_field import HostJointField
from mercer.places.host.kernel_matrix import KernelMatrix
from mercer.samples.arrays import moments, stack, take
from mercer.samples.engine import Engine, EngineSamples, engine_of, register
from mercer.samples.matrices import dense, squared_lengths
from mercer.samples.merging import _equal_rows, hash_samples


class Opaque:
    """An array that only `show` can read."""

    def __init__(self, hidden):
        self.__hidden = hidden

    def _refuse(self, *arguments, **options):
        raise TypeError("this array cannot be read from outside of its engine")

    __array__ = __array_function__ = __array_ufunc__ = __len__ = __iter__ = __getitem__ = __eq__ = __bool__ = _refuse
    __hash__ = None


class OpaqueSamples(EngineSamples):
    """Samples of the engine; `show` reads them."""

    def __init__(self, hidden):
        self.__hidden = hidden
        self.engine = ENGINE
        self.shape = hidden.shape if hasattr(hidden, "shape") else (len(hidden),)
        self.dtype = getattr(hidden, "dtype", np.dtype(object))
        self.sparse = sparse.issparse(hidden)

    __len__ = __iter__ = __getitem__ = __bool__ = Opaque._refuse

    def take(self, rows):
        return OpaqueSamples(take(show(self), rows))

    def joined(self, others):
        return OpaqueSamples(stack(show(self), show(others)))

    def host(self, rows=None):
        rows = np.arange(self.shape[0]) if rows is None else rows
        return take(show(self), rows)

    def first_not_finite(self):
        bad = np.argwhere(~np.isfinite(dense(show(self))))
        return None if len(bad) == 0 else (*map(int, bad[0]), float(dense(show(self))[tuple(bad[0])]), len(bad))

    def hash(self):
        return hash_samples(show(self), 1)

    def equal(self, left, right):
        return _equal_rows(show(self), left, right, 1)

    def moments(self):
        return moments(dense(show(self)))

    def sums_about(self, centre, weight):
        less = dense(show(self)).astype(np.float64) - centre
        return float(weight @ less.sum(axis=1)), float(weight @ (less**2).sum(axis=1))

    def extremes(self):
        return float(show(self).min()), float(show(self).max())

    def squared_lengths(self):
        return squared_lengths(show(self))

    def values(self, kernel, others=None):
        return kernel(show(self)) if others is None else kernel(show(self), show(others))

    def diagonal(self, kernel):
        return kernel.diag(show(self))

    def entries(self, rows, columns):
        return show(self)[rows, columns].astype(np.float64)

    def columns(self, which):
        return OpaqueSamples(show(self)[:, which])

    def asymmetry(self):
        return float(np.abs(show(self) - show(self).T).max())


def show(array):
    """What an array or samples of the engine hold."""
    return array._Opaque__hidden if isinstance(array, Opaque) else array._OpaqueSamples__hidden


def public_members(*protocols):
    bases = [base for one in protocols for base in one.__mro__]
    names = {name for base in bases for name in [*vars(base), *vars(base).get("__annotations__", ())]}
    return {name for name in names if not name.startswith("_")}


class Behind:
    """Something of this machine behind a protocol: what the protocol does not name is not there."""

    def __init__(self, inner, *protocols):
        self.__inner, self.__names = inner, public_members(*protocols)

    def __getattr__(self, name):
        if name in self.__names:
            return getattr(self.__inner, name)
        raise AttributeError(f"{name} is no member of the protocol")


class OpaqueGram(Behind):
    """K in plain float64, computed by the kernel itself."""

    def __init__(self, inner):
        super().__init__(inner, Gram, BoundedProducts)
        self.inner = inner

    @property
    def proof(self):
        return self

    @property
    def linear(self):
        found = self.inner.linear
        return None if found is None else Behind(found, LinearGram)

    def factor(self, d, dtype=np.float64, n_threads=1):
        found = self.inner.factor(d, dtype, n_threads)
        return None if found is None else Behind(found, Factor)

    def landmark_factor(self, landmarks, weight, n_threads=1):
        return Behind(self.inner.landmark_factor(landmarks, weight, n_threads), LandmarkFactor)

    def float64_matrix(self, n_threads=1):
        return Behind(self.inner.float64_matrix(n_threads), Float64Matrix)

    def float32_matrix(self):
        return Behind(self.inner.float32_matrix(), Float32Matrix)

    def eigh(self, scale, centred, deadline=math.inf):
        return Behind(self.inner.eigh(scale, centred, deadline), Eigensystem)

    def view(self, rows):
        return OpaqueGram(self.inner.view(rows))

    def copied(self, rows, budget):
        return OpaqueGram(plain(self.inner.copied(rows, budget)))

    def streamed(self):
        return OpaqueGram(self.inner.streamed())

    def field(self, problem, beta=None, u=None, dtype=np.float64):
        return HostField(self, problem, problem.feasible_start() if beta is None else beta, u)

    def joint_field(self, problem, beta, u, dtype=np.float64):
        return HostJointField(self, problem, beta, u, dtype)

    def pairs(self, layout, n_threads):
        return None


class OpaqueRows(Behind):
    """Rows of the engine, on which no step takes a single row."""

    descent = None

    def __init__(self, inner):
        super().__init__(inner, Rows)
        self.inner = inner

    def first(self, m):
        return OpaqueRows(self.inner.first(m))

    def take(self, which):
        return OpaqueRows(self.inner.take(which))


class OpaqueCross(Behind):
    """K between samples and landmarks of the engine."""

    def __init__(self, inner):
        super().__init__(inner, Cross)
        self.inner = inner

    def gather(self, sample=None):
        return self.inner.gather(None if sample is None else replace(sample, X=show(sample.X)))


def plain(gram):
    """A Gram of this machine that computes every value by the kernel in NumPy, without the core."""
    gram._source.prepared = None
    return gram


class OpaqueEvaluation:
    """f at samples of the engine."""

    def __init__(self, kernel, vectors, coefficients, columns):
        vectors = None if vectors is None else show(vectors)
        self.inner = BlockEvaluation(kernel, vectors, coefficients, columns)

    def add(self, out, X, n_threads):
        self.inner.add(out, show(X), n_threads)


class OpaqueEngine:
    """The engine of `Opaque`."""

    devices = ("opaque",)

    def accepts(self, X):
        return isinstance(X, Opaque)

    def samples(self, X):
        return X if isinstance(X, OpaqueSamples) else OpaqueSamples(show(X) if isinstance(X, Opaque) else X)

    def vector(self, values):
        return show(values)

    def given(self, values, like):
        return Opaque(values)

    def gram(self, kernel, X, budget, n_threads, constant):
        if constant and kernel.accepts != "gram":
            kernel, constant = kernel + constant, 0.0
        return OpaqueGram(plain(KernelMatrix.of(kernel, show(X), budget, n_threads, constant)))

    def rows(self, X, n_threads, which, centre):
        return OpaqueRows(rows_for(show(X), n_threads, which, centre))

    def cross(self, kernel, landmarks, chunks, budget, n_threads, K_MM):
        def shown():
            return (replace(chunk, X=show(chunk.X)) for chunk in chunks())

        landmarks = landmarks if kernel.accepts == "gram" else show(landmarks)
        return OpaqueCross(cross_for(kernel, landmarks, shown, budget, n_threads, K_MM))

    def evaluation(self, kernel, vectors, coefficients, columns):
        return OpaqueEvaluation(kernel, vectors, coefficients, columns)


ENGINE = OpaqueEngine()
register(ENGINE)
assert engine_of(Opaque(np.zeros((2, 2)))) is ENGINE
__all__ = ["ENGINE", "Engine", "Evaluation", "Opaque", "OpaqueGram", "OpaqueSamples", "plain", "show"]
