"""How many support vectors there are at least: n(2ϑ‖f‖² + hinge risk) for a 1-norm soft margin with ϑ = 1/(2Cn).

At the optimum Σα = ‖w‖² + CΣξ, and every α is at most C; so at least Σα/C of them are not 0.
"""

from __future__ import annotations

import math

from mercer.parameters import integer, not_negative, positive
from mercer.theory.bound import Assumption, Bound


def support_vectors_bound(
    norm: float, hinge_risk: float, C: float, n: int, *, gap: float = 0.0, plain: bool | None = None
) -> Bound:
    """A lower bound on the number of support vectors of a 1-norm soft margin machine.

    Parameters
    ----------
    norm, hinge_risk : float
        ‖w‖ and the mean slack of the training samples.
    C : float
        The price of slack, the same for all samples.
    n : int
        The number of samples.
    gap : float
        The machine's duality gap: away from the optimum, Σα = ‖w‖² + CΣξ − gap.
    plain : bool, optional
        Whether it is that machine: trained without weights of samples or classes.

    Examples
    --------
    >>> from mercer.theory import support_vectors_bound
    >>> support_vectors_bound(norm=2.0, hinge_risk=0.1, C=1.0, n=100).value
    14.0
    """
    integer("n", n, 1, "the number of samples")
    price = positive("C", C)
    theta = 1.0 / (2.0 * price * n)
    terms = {
        "2nϑ‖f‖²": 2.0 * n * theta * not_negative("norm", norm) * norm,
        "n·hinge risk": n * not_negative("hinge_risk", hinge_risk),
        "−gap/C": -not_negative("gap", gap) / price,
    }
    value = math.fsum(terms.values())
    soft = Assumption("the machine is the 1-norm soft margin with one C for all samples", plain)
    return Bound("support vectors", value, terms, (soft,), None, 0.0, "lower", source="Igel, section 4.3.3")
