"""The price of errors under its several names, converted in one place.

Every machine here minimises  ½‖w‖² + C Σ loss_i.  With n = Σ sample weights, these are the same problem:

    (1/n) Σ loss_i + ϑ‖w‖²        C = 1/(2ϑn)    Igel's ϑ, Rosasco's λ; the parameter `theta` of the machines
    Σ loss_i + λ‖f‖²              C = 1/(2λ)     the λ of least squares and of any loss; `lam` of those
    (λ/2)‖w‖² + (1/n) Σ loss_i    C = 1/(λn)     Shalev-Shwartz's λ; `alpha` of PegasosSVC, as scikit-learn's
    ½‖w‖² + C Σ ξ_i²              C = 2C'        LIBLINEAR's C' for squared losses; ours multiplies ½ξ_i²

C that makes a machine consistent as n grows: `C_from_consistency`.

For several classes one against one, n is the weight of the two classes of the pair. The ν-machines choose C or ε
themselves, and report it (`equivalent_C_`, `epsilon_`).
"""

from __future__ import annotations

from typing import Any

from mercer.kernels import as_kernel
from mercer.parameters import positive

_DEFAULT_C = 1.0


def C_from_lam(lam: float, n: float) -> float:
    """C of the problem (1/n) Σ loss + λ‖w‖².

    Parameters
    ----------
    lam : float
        λ of that problem.
    n : float
        The number of samples, or the sum of their weights.
    """
    return 1.0 / (2.0 * lam * n)


def lam_from_C(C: float, n: float) -> float:
    """λ of the problem (1/n) Σ loss + λ‖w‖².

    Parameters
    ----------
    C : float
        The price of slack.
    n : float
        The number of samples, or the sum of their weights.
    """
    return 1.0 / (2.0 * C * n)


def C_from_theta(theta: float, n: float) -> float:
    """C for Igel's ϑ, which is the λ of `C_from_lam`.

    Parameters
    ----------
    theta : float
        ϑ of (1/n) Σ loss + ϑ‖w‖².
    n : float
        The number of samples, or the sum of their weights.
    """
    return C_from_lam(theta, n)


def C_from_half_lam(lam: float, n: float) -> float:
    """C of the problem (λ/2)‖w‖² + (1/n) Σ loss.

    Parameters
    ----------
    lam : float
        λ of that problem: `alpha` of PegasosSVC.
    n : float
        The number of samples, or the sum of their weights.
    """
    return 1.0 / (lam * n)


def C_from_liblinear(C: float) -> float:
    """C of a squared loss that LIBLINEAR prices C·ξ².

    Parameters
    ----------
    C : float
        LIBLINEAR's.
    """
    return 2.0 * C


def C_from_consistency(n: float, C0: float, n0: float, a: float = 0.25, *, kernel: Any = "rbf") -> float:
    """C for n samples so that machines become consistent as n grows, from a C₀ that was good for n₀: C₀(n₀/n)^(1−a).

    ϑ = 1/(2Cn) then falls like n^(−a), and ϑ²n grows: with a universal kernel the error approaches that of the Bayes
    rule (Steinwart, 2002; Igel, sec. 4.2). No other kernel can promise that, so it is refused.
    """
    for name, value in (("n", n), ("C0", C0), ("n0", n0)):
        positive(name, value)
    if not 0 < a < 0.5:
        raise ValueError(f"a={a!r} must lie between 0 and 1/2: ϑ = 1/(2Cn) ~ n^(−a) must vanish, and ϑ²n must not")
    known = as_kernel(kernel)
    if known.universal != "yes":
        raise ValueError(
            f"{known!r} is not known to be universal (universal={known.universal!r}), so that no schedule of C makes "
            "its machines consistent; use a Gaussian or Laplacian kernel, or choose C by validation"
        )
    return float(C0 * (n0 / n) ** (1.0 - a))


def check_price(machine: Any) -> None:
    """C or ϑ, a positive number, and not both."""
    theta = _theta(machine)
    if theta is None:
        positive("C", machine.C)
        return
    positive("theta", theta, "it is the ϑ of (1/n)Σ loss + ϑ‖w‖²")
    if machine.C != _DEFAULT_C:
        raise ValueError(
            f"C={machine.C!r} and theta={theta!r} both set the price of errors (C = 1/(2·theta·n)); give one and leave "
            "the other at its default"
        )


def price(machine: Any, n: float) -> float:
    """C, from ϑ where that was given; n is the total weight of the samples of this problem."""
    theta = _theta(machine)
    return positive("C", machine.C) if theta is None else C_from_theta(positive("theta", theta), n)


def _theta(machine: Any) -> Any:
    return machine.theta if machine.lam is None else machine.lam
