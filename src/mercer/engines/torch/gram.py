"""K on a device: blocks, products with proven errors, factors, and the state of a solve."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np

from mercer import _core
from mercer.arrays import Floats, Indices, Precision, Values
from mercer.engines.torch import fused
from mercer.engines.torch.factor import eigensystem_of, factor_of, kept_of
from mercer.engines.torch.field import TorchField
from mercer.engines.torch.formula import Formula, Rows
from mercer.engines.torch.numbers import TILE_BYTES, dtype_of, floats, matmul, places, to_device, to_host, torch
from mercer.engines.torch.samples import TorchSamples
from mercer.gram.ball import Ball
from mercer.gram.definite import has_negative_direction
from mercer.gram.gram import Eigensystem, Factor, Field, Gram, Kept, Provable
from mercer.gram.joint_field import HostJointField
from mercer.gram.linear_gram import linear_terms
from mercer.gram.pair_place import Layout, PairPlace
from mercer.gram.places import gram_for
from mercer.gram.prepared import EXACT
from mercer.gram.protocols import LinearGram
from mercer.gram.rounding import DOUBLE, Rounding
from mercer.kernels import Kernel
from mercer.problems.dual_problem import DualProblem
from mercer.problems.multiclass import JointProblem

# Columns whose products are summed before they are added to others: what bounds a sum's rounding is their number.
_SUMMED_COLUMNS = 2048
# From this many rows on working sets are nested, with an eighth of the variables or this many: a round's own cost grows
# with the rows (benchmarks/compare_gpu.py).
_NESTED_ROWS, _OUTER_ROWS = 100_000, 65_536
# Up to this many rows no difference in time between float32 and float64 can be measured.
_FLOAT64_ROWS = 1000


class Source:
    """What a Gram and its views share: samples, what was prepared of them, and whether K was refuted."""

    def __init__(self, kernel: Kernel, X: TorchSamples, budget: int, n_threads: int, constant: float) -> None:
        self.kernel, self.X, self.constant, self.n_threads = kernel, X, constant, n_threads
        self.given = kernel.accepts == "gram"
        self.formula = None if self.given else Formula.of(kernel, X.rows)
        self.refuted = False
        self._budget = budget
        self._prepared: dict[Any, Rows] = {}

    def prepared(self, dtype: Any) -> Rows:
        """All rows in a precision, made once."""
        assert self.formula is not None
        if dtype not in self._prepared:
            rows = self.formula.rows(self.X.rows, dtype)
            if self.fuses:
                ((x, norms),) = rows.parts
                if dtype == torch.float32 or fused.narrow(x):
                    rows = Rows([(fused.padded(x), norms)])
            self._prepared[dtype] = rows
        return self._prepared[dtype]

    @cached_property
    def fuses(self) -> bool:
        """Whether kernels of our own compute values and their sums: those of a Gaussian."""
        recipe = None if self.formula is None or self.formula.cancels else self.formula.recipe
        plain = recipe is not None and recipe.ending == "gaussian" and not recipe.constant
        return plain and fused.available(self.X.rows)

    @cached_property
    def here(self) -> Gram:
        """The same matrix on this machine, which proves what the device cannot."""
        return gram_for(self.kernel, self.X.host(), self._budget, self.n_threads, constant=self.constant)

    @cached_property
    def rounding(self) -> Rounding | None:
        return None if self.formula is None else self.formula.rounding

    @property
    def differences(self) -> bool:
        """Whether a recipe's float64 values are made of differences between the rows as they were given."""
        assert self.formula is not None
        assert self.formula.recipe is not None
        recipe = self.formula.recipe
        return recipe.ending == "laplacian" or (self.formula.cancels and recipe.factor is None)

    @cached_property
    def sizes(self) -> Floats:
        """N of every row; behind a factor, of the lengths of what is summed."""
        assert self.rounding is not None
        recipe = self.rounding.recipe
        if self.differences:  # whose error is relative
            return np.zeros(self.X.shape[0])
        if recipe.factor is None:
            return floats(self.prepared(torch.float64).parts[0][1]) + 2.0**-1074
        centre = 0.0 if recipe.inner == "dot" else self.X.rows.mean(dim=0, dtype=torch.float64)
        factor, scale = to_device(recipe.factor, self.X.rows).abs(), 1.0
        if recipe.ending == "gaussian":
            scale = math.sqrt(2 * recipe.numbers[0] * math.log2(math.e))
        sums = scale * ((self.X.rows.double() - centre).abs() @ factor)
        return floats(0.5 * sums.square().sum(dim=1)) * (1 + 8 * (self.X.shape[1] + 4) * DOUBLE)


class TorchGram:
    """The kernel matrix of samples on a torch device, or a view of some of its rows."""

    recomputes_cheaply, concurrent = True, False

    def __init__(self, source: Source, rows: Indices | None, diagonal: Floats, budget: int) -> None:
        self._source, self._rows, self.diagonal, self.budget = source, rows, diagonal, budget
        self.kernel, self.evaluations, self.n = source.kernel, 0, len(diagonal)

    @classmethod
    def of(cls, kernel: Kernel, X: TorchSamples, budget: int, n_threads: int, constant: float) -> TorchGram:
        """All samples under a bound kernel; of a given matrix a constant is added to its values."""
        if constant and kernel.accepts != "gram":
            kernel, constant = kernel + constant, 0.0
        if kernel.accepts == "gram":
            diagonal = floats(torch.diagonal(X.rows)) + constant
        else:
            diagonal = X.diagonal(kernel)
            if not np.isfinite(diagonal).all():
                raise FloatingPointError(f"k(x, x) overflows with {kernel!r}; scale the features")
        return cls(Source(kernel, X, budget, n_threads, constant), None, diagonal, budget)

    # --- facts ------------------------------------------------------------------------------------------------------

    @property
    def positive_definite(self) -> str:
        return "no" if self._source.refuted else self.kernel.positive_definite

    def looks_positive_definite(self) -> bool:
        if self.kernel.positive_definite == "yes":
            return True
        self._source.refuted |= has_negative_direction(self)
        return not self._source.refuted

    def refute(self) -> None:
        self._source.refuted = True

    @property
    def precisions(self) -> tuple[Precision, ...]:
        formula = self._source.formula
        single = self.n > _FLOAT64_ROWS and formula is not None and not formula.cancels
        return (np.float32, np.float64) if single else (np.float64,)

    @property
    def outer_rows(self) -> int:
        alone = fused.available(self.like) and self.precisions[0] == np.float32
        return min(self.n // 8, _OUTER_ROWS) if self.n >= _NESTED_ROWS and not alone else 0

    @property
    def chunk_rows(self) -> int:
        return int(self.budget / (40 * max(1, self._source.X.shape[1])))

    @property
    def linear(self) -> LinearGram | None:
        return self._here.linear if self._source.formula is not None and self._is_linear else None

    @property
    def _is_linear(self) -> bool:
        recipe = self._source.formula.recipe if self._source.formula is not None else None
        return recipe is not None and recipe.linear

    @property
    def _here(self) -> Gram:
        whole = self._source.here
        return whole if self._rows is None else whole.view(self._rows)

    @property
    def proof(self) -> Provable:
        return self if self._source.rounding is not None else self._here

    # --- proofs -----------------------------------------------------------------------------------------------------

    @property
    def reach(self) -> Floats:
        rounding = self._source.rounding
        if rounding is None:
            return self._here.reach
        sizes = self._source.sizes
        if rounding.recipe.ending in ("gaussian", "laplacian"):
            return np.sqrt(self.diagonal) * (1 + 8 * DOUBLE)
        return rounding.reach(sizes if self._rows is None else sizes[self._rows])

    @property
    def levels(self) -> tuple[Precision, ...]:
        rounding = self._source.rounding
        if rounding is None:
            return self._here.levels
        radial = rounding.recipe.ending in ("gaussian", "laplacian") and rounding.recipe.factor is None
        return (np.float64, EXACT) if radial or linear_terms(self.kernel) is not None else (np.float64,)

    def product_bound(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Ball:
        if self._source.rounding is None or level == EXACT:
            return self._here.product_bound(coefficients, rows, level)
        if coefficients.ndim == 2:
            each = [self.product_bound(column, rows, level) for column in coefficients.T]
            return Ball(*map(np.column_stack, zip(*each, strict=True)))
        return Ball(
            self._product(coefficients, rows, torch.float64, proven=True), self.errors(coefficients, rows, level)
        )

    def errors(self, coefficients: Floats, rows: Indices | None = None, level: Precision = np.float64) -> Floats:
        rounding = self._source.rounding
        if rounding is None or level == EXACT:
            return self._here.errors(coefficients, rows, level)
        J, sizes = np.flatnonzero(coefficients), self._source.sizes
        which = slice(None) if rows is None and self._rows is None else self._global(rows)
        in_sequence = _SUMMED_COLUMNS + len(J) // _SUMMED_COLUMNS + 8
        level = EXACT if self._source.differences else np.float64
        return rounding.errors(sizes[which], sizes[self._global(J)], coefficients[J], level, in_sequence=in_sequence)

    # --- values -----------------------------------------------------------------------------------------------------

    def block(self, I: Indices, J: Indices) -> Floats:
        return floats(self._block(I, J, torch.float64))

    def full(self, dtype: Precision = np.float64) -> Any:
        out = np.empty((self.n, self.n), dtype=np.dtype(dtype))
        everything = np.arange(self.n)
        for some in self._strips(self.n, 8 * self.n):
            out[some] = to_host(self._block(everything[some], everything, dtype_of(dtype)))
        return out

    def rounded(self) -> Values:
        K = torch.empty((self.n, self.n), dtype=torch.float32, device=self.like.device)
        everything = np.arange(self.n)
        for some in self._strips(self.n, 8 * self.n):
            rest = self._block(everything[some], everything[some.start :], torch.float64)
            own = rest[:, : len(rest)]
            rest[:, : len(rest)] = own.triu() + own.triu(1).T
            K[some, some.start :] = rest
            K[some.start :, some] = rest.T
        K.diagonal().copy_(to_device(self.diagonal, K))
        out = np.empty((self.n, self.n), dtype=np.float32)
        torch.from_numpy(out).copy_(K)
        return out

    def device_full(self, dtype: Any) -> Any:
        """All of K on the device."""
        out = torch.empty((self.n, self.n), dtype=dtype, device=self._source.X.rows.device)
        everything = np.arange(self.n)
        for some in self._strips(self.n, 8 * self.n):
            out[some] = self._block(everything[some], everything, dtype)
        return out

    def product(self, coefficients: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(coefficients, rows, dtype_of(dtype))

    def products(self, C: Floats, rows: Indices | None = None, dtype: Precision = np.float64) -> Floats:
        return self._product(C, rows, dtype_of(dtype))

    def _product(self, C: Floats, rows: Indices | None, dtype: Any, *, proven: bool = False) -> Floats:
        J = np.flatnonzero(C if C.ndim == 1 else C.any(axis=1))
        left = self.prepared_rows(None if rows is None else places(rows, self.like), dtype)
        right = self.prepared_rows(places(J, self.like), dtype)
        return floats(self.device_sums(left, right, to_device(C[J], self.like), dtype, proven=proven))

    def _block(self, I: Indices, J: Indices, dtype: Any) -> Any:
        left, right = (self.prepared_rows(places(rows, self.like), dtype) for rows in (I, J))
        return self.device_block(left, right, dtype)

    # --- the same on the device ---------------------------------------------------------------------------------------

    @property
    def n_threads(self) -> int:
        """Of this machine, for what a solve does here."""
        return self._source.n_threads

    @property
    def features(self) -> int:
        return self._source.X.shape[1]

    @property
    def like(self) -> Any:
        """A tensor on the device."""
        return self._source.X.rows

    @cached_property
    def _places(self) -> Any:
        """The rows of a view in the whole matrix, on the device."""
        return None if self._rows is None else places(self._rows, self.like)

    def prepared_rows(self, which: Any, dtype: Any) -> Any:
        """Some samples of this Gram, or all of them, as `device_block` and `device_sums` take them."""
        if self._places is not None:
            which = self._places if which is None else self._places[which]
        if self._source.given:
            return torch.arange(self._source.X.shape[0], device=self.like.device) if which is None else which
        rows = self._source.prepared(dtype)
        return rows if which is None else rows[which]

    def device_block(self, left: Any, right: Any, dtype: Any, proven: bool = False) -> Any:
        """K between prepared rows."""
        source = self._source
        if source.given:
            values = self.like[left][:, right].double()
            return (values + source.constant if source.constant else values).to(dtype)
        assert source.formula is not None
        self.evaluations += left.n * right.n
        if dtype == torch.float32 and source.fuses and fused.narrow(left.parts[0][0]):
            assert source.formula.recipe is not None
            values = fused.tile32(*left.parts[0], *right.parts[0])
            return values if source.formula.recipe.scale == 1.0 else values.mul_(source.formula.recipe.scale)
        return source.formula.block(left, right, proven=proven)

    def device_sums(self, left: Any, right: Any, weights: Any, dtype: Any, *, proven: bool = False) -> Any:
        """K between prepared rows times weights: partial sums of some columns, added up in float64."""
        n, m = (len(left), len(right)) if self._source.given else (left.n, right.n)
        made = self._fused(left, right, weights, dtype, proven)
        if made is not None:
            self.evaluations += n * m
            return made
        weights = weights.to(dtype)
        out = torch.zeros((n, *weights.shape[1:]), dtype=torch.float64, device=weights.device)
        for some in self._strips(n, weights.element_size() * min(_SUMMED_COLUMNS, max(1, m))):
            for start in range(0, m, _SUMMED_COLUMNS):
                part = slice(start, start + _SUMMED_COLUMNS)
                out[some] += matmul(self.device_block(left[some], right[part], dtype, proven), weights[part])
        return out

    def _fused(self, left: Any, right: Any, weights: Any, dtype: Any, proven: bool) -> Any:
        """`device_sums` of a Gaussian by a kernel of our own, where there is one."""
        source = self._source
        if not source.fuses or weights.ndim > 1 or not len(weights) or proven != (dtype == torch.float64):
            return None
        assert source.formula is not None
        assert source.formula.recipe is not None
        scale, (x, x_norms), (z, z_norms) = source.formula.recipe.scale, left.parts[0], right.parts[0]
        if dtype == torch.float32:
            return scale * fused.sums32(x, x_norms, z, z_norms, weights.to(torch.float32))
        if fused.narrow(x) and fused.multiplies64():
            return scale * fused.narrow64(x, x_norms, z, z_norms, weights)
        out = torch.zeros(len(x), dtype=torch.float64, device=x.device)
        for some in self._strips(len(x), 8 * min(_SUMMED_COLUMNS, len(z))):
            for start in range(0, len(z), _SUMMED_COLUMNS):
                part = slice(start, start + _SUMMED_COLUMNS)
                out[some] += fused.sums64(x[some] @ z[part].T, x_norms[some], z_norms[part], weights[part])
        return scale * out

    def _global(self, rows: Indices | None) -> Indices:
        own = self._rows
        if rows is None:
            return np.arange(self.n) if own is None else own
        return rows if own is None else own[rows]

    @staticmethod
    def _strips(n: int, row_bytes: int) -> Any:
        step = max(1, TILE_BYTES // row_bytes)
        for start in range(0, n, step):
            _core.check_stop()
            yield slice(start, min(n, start + step))

    # --- the whole matrix, decomposed on the device -------------------------------------------------------------------

    def factor(self, d: Floats, dtype: Precision = np.float64, n_threads: int = 1) -> Factor | None:
        return factor_of(self.device_full(dtype_of(dtype)), self.diagonal + d)

    def kept(self, n_threads: int = 1) -> Kept:
        return kept_of(self.device_full(torch.float64), self.diagonal)

    def eigh(self, scale: Floats, centred: bool, deadline: float = math.inf) -> Eigensystem:
        return eigensystem_of(self.device_full(torch.float64), scale, centred)

    # --- parts, and the state of a solve ------------------------------------------------------------------------------

    def view(self, rows: Indices) -> Gram:
        return TorchGram(self._source, self._global(rows), self.diagonal[rows], self.budget)

    def streamed(self) -> Gram:
        return self

    def copied(self, rows: Indices, budget: int) -> Gram:
        part, source = self._global(rows), self._source
        X = source.X.take(part)
        if source.given:
            X = X.columns(part)
        made = TorchGram.of(self.kernel, X, budget, source.n_threads, source.constant if source.given else 0.0)
        made._source.refuted = source.refuted
        return made

    def share(self) -> None:
        pass

    def field(
        self, problem: DualProblem, beta: Floats | None = None, u: Floats | None = None, dtype: Precision = np.float64
    ) -> Field:
        beta = problem.feasible_start() if beta is None else beta
        if u is None:
            u = self.product(problem.row_coefficients(beta, self.n), dtype=dtype)
        return TorchField(self, problem, beta, u, dtype)

    def joint_field(
        self, problem: JointProblem, beta: Floats, u: Floats, dtype: Precision = np.float64
    ) -> HostJointField:
        return HostJointField(self, problem, beta, u, dtype)

    def pairs(self, layout: Layout, n_threads: int) -> PairPlace | None:
        return None
