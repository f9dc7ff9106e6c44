"""Solvers: functions from a problem and a Gram matrix to a solution and its certificate, by the name users choose."""

from collections.abc import Callable

from mercer.certificates.certificate import Certificate
from mercer.solution import Solution
from mercer.solvers.dual.certified import solve_certified
from mercer.solvers.dual.chunking import solve_by_chunks
from mercer.solvers.dual.qp import solve_by_qp

# "auto" is block decomposition as long as nothing beats it.
SOLVERS: dict[str, Callable[..., tuple[Solution, Certificate]]] = {
    "auto": solve_certified,
    "decomposition": solve_certified,
    "chunking": solve_by_chunks,
    "qp": solve_by_qp,
}

__all__ = ["SOLVERS"]
