"""Kernels made of kernels: what they share with their parts, and how they are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mercer.arrays import Floats
from mercer.kernels.kernel import Answer, Domain, Kernel, Slope

# How tightly an expression binds: a part that binds less tightly than its surroundings is written in brackets.
SUM, PRODUCT, POWER, ATOM = range(4)


class Composite(Kernel):
    """A kernel made of kernels, its parts. By default it has a property if all parts have it."""

    _binds = ATOM
    _part_names: tuple[str, ...] = ("kernel",)

    @property
    def parts(self) -> dict[str, Kernel]:
        """The kernels it is made of, by parameter name."""
        return {name: getattr(self, name) for name in self._part_names}

    def _check(self) -> None:
        for name, part in self.parts.items():
            if not isinstance(part, Kernel):
                raise TypeError(f"{name}={part!r} of {type(self).__name__} must be a kernel object, such as Gaussian()")
            if part.accepts == "gram":
                raise TypeError(
                    f"{type(part).__name__} stands for a matrix that is not known yet, so it cannot be combined: "
                    "combine the matrices before fitting"
                )
        domains = {part.accepts for part in self.parts.values()}
        if len(domains) > 1:
            described = ", ".join(f"{part!r} compares {part.accepts}" for part in self.parts.values())
            raise TypeError(f"kernels on different kinds of samples cannot be combined: {described}")

    @property
    def accepts(self) -> Domain:
        return next(iter(self.parts.values())).accepts

    @property
    def n_factors(self) -> int:
        return max(part.n_factors for part in self.parts.values())

    @property
    def mergeable(self) -> bool:
        return all(part.mergeable for part in self.parts.values())

    def _samples(self, X: Any) -> Any:
        self._check()
        for part in self.parts.values():
            X = part._samples(X)
        return X

    @property
    def bound(self) -> bool:
        return all(part.bound for part in self.parts.values())

    def bind(self, X: Any, sample_weight: ArrayLike | None = None) -> Kernel:
        self._check()
        parts = self.parts
        bound = {name: part.bind(X, sample_weight) for name, part in parts.items()}
        if all(bound[name] is part for name, part in parts.items()):
            return self
        return type(self)(**{**self.get_params(deep=False), **bound})

    def _holds(self, *statements: str) -> bool:
        """Whether every part answers "yes" to each of these."""
        return all(getattr(part, statement) == "yes" for part in self.parts.values() for statement in statements)

    def _follows(self, statement: str) -> Answer:
        """Yes if every part says so; "depends" if some say that instead, and no part says anything else."""
        answers = {getattr(part, statement) for part in self.parts.values()}
        if answers == {"yes"}:
            return "yes"
        return "depends" if answers <= {"yes", "depends"} else "unknown"

    @property
    def positive_definite(self) -> Answer:
        return self._follows("positive_definite")

    @property
    def strictly_positive_definite(self) -> Answer:
        return self._follows("strictly_positive_definite")

    @property
    def universal(self) -> Answer:
        return self._follows("universal")

    @property
    def differentiable(self) -> Answer:
        return self._follows("differentiable")

    def _text(self) -> str:
        raise NotImplementedError

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return self._text()


class OfOne(Composite):
    """A function of the values of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._check()

    def _of_values(self, values: Floats) -> Floats:
        """The function, which may overwrite its argument."""
        raise NotImplementedError

    def _values(self, X: Any, Z: Any) -> Floats:
        values = self.kernel._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._of_values(values)

    def diag(self, X: Any) -> Floats:
        values = np.array(self.kernel.diag(X), dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._of_values(values)

    def _slope_at(self, values: Floats) -> Floats | float:
        """The function's derivative; does not overwrite its argument."""
        raise NotImplementedError

    def _own_slopes(self, values: Floats) -> Iterator[Slope]:
        """The function's derivatives by its own parameters."""
        return iter(())

    def _gradient(self, X: Any, Z: Any, weights: Floats) -> Floats:
        return self.kernel._gradient(X, Z, weights * self._slope_at(self.kernel._values(X, Z)))

    def _diagonal_gradient(self, X: Any, weights: Floats) -> Floats:
        return self.kernel._diagonal_gradient(X, weights * self._slope_at(self.kernel.diag(X)))

    def _slopes(self, X: Any, Z: Any) -> Iterator[Slope]:
        values = self.kernel._values(X, Z)
        outer = self._slope_at(values)
        for name, place, slope in self.kernel._slopes(X, Z):
            yield f"kernel__{name}", place, slope * outer
        yield from self._own_slopes(values)


class OfTwo(Composite):
    """A kernel made of two by an operator: its sign, how tightly it binds, and what it does to arrays."""

    _part_names = ("left", "right")
    _sign: str
    _operator: np.ufunc

    def __init__(self, left: Kernel, right: Kernel) -> None:
        self.left = left
        self.right = right
        self._check()

    def _values(self, X: Any, Z: Any) -> Floats:
        left, right = self.left._values(X, Z), self.right._values(X, Z)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._operator(left, right, out=left))

    def diag(self, X: Any) -> Floats:
        left, right = self.left.diag(X), self.right.diag(X)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self._operator(left, right))

    def _partials(self, left: Floats, right: Floats) -> tuple[Floats | float, Floats | float]:
        """The operator's derivatives by its two sides."""
        raise NotImplementedError

    def _gradient(self, X: Any, Z: Any, weights: Floats) -> Floats:
        by_left, by_right = self._partials(self.left._values(X, Z), self.right._values(X, Z))
        return self.left._gradient(X, Z, weights * by_left) + self.right._gradient(X, Z, weights * by_right)

    def _diagonal_gradient(self, X: Any, weights: Floats) -> Floats:
        by_left, by_right = self._partials(self.left.diag(X), self.right.diag(X))
        left = self.left._diagonal_gradient(X, weights * by_left)
        return left + self.right._diagonal_gradient(X, weights * by_right)

    def _slopes(self, X: Any, Z: Any) -> Iterator[Slope]:
        partials = self._partials(self.left._values(X, Z), self.right._values(X, Z))
        for (side, part), outer in zip(self.parts.items(), partials, strict=True):
            for name, place, slope in part._slopes(X, Z):
                yield f"{side}__{name}", place, slope * outer

    def _text(self) -> str:
        return f"{inside(self.left, self._binds)} {self._sign} {inside(self.right, self._binds)}"


def inside(kernel: Kernel, binds: int = ATOM) -> str:
    """A part's text, in brackets where it binds less tightly than its surroundings."""
    own = kernel._binds if isinstance(kernel, Composite) else ATOM
    return f"({kernel!r})" if own < binds else repr(kernel)
