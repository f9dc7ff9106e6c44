"""The price of errors under its several names, converted in one place.

Every machine here minimises  ½‖w‖² + C Σ loss_i.  With n = Σ sample weights, these are the same problem:

    (1/n) Σ loss_i + ϑ‖w‖²        C = 1/(2ϑn)    Igel's ϑ, Rosasco's λ; the parameter `theta` of the machines
    Σ loss_i + λ‖f‖²              C = 1/(2λ)     the λ of least squares and of any loss; `lam` of those
    (α/2)‖w‖² + (1/n) Σ loss_i    C = 1/(αn)     Shalev-Shwartz's λ; `alpha` of PegasosSVC, as scikit-learn's
    ½‖w‖² + C' Σ ξ_i²             C = 2C'        LIBLINEAR's C' for squared losses; ours multiplies ½ξ_i²

The first three are their own inverse: with C in the place of ϑ, λ or α they give that. For the λ of least squares
others have other words: alpha of scikit-learn's Ridge and KernelRidge is λ, GURLS's λ is λ/n, an LS-SVM's gamma is 1/λ.

C that makes a machine consistent as n grows: `C_from_consistency`.

For several classes one against one, n is the weight of the two classes of the pair. The ν-machines choose C or ε
themselves, and report it (`equivalent_C_`, `epsilon_`).
"""

from __future__ import annotations

from typing import Any

from mercer.kernels import as_kernel
from mercer.parameters import positive


def C_from_theta(theta: float, n: float) -> float:
    """C of the problem (1/n) Σ loss + ϑ‖w‖².

    Parameters
    ----------
    theta : float
        ϑ of that problem: `theta` of the machines.
    n : float
        The number of samples, or the sum of their weights.
    """
    return 0.5 / (positive("theta", theta) * positive("n", n))


def C_from_lam(lam: float) -> float:
    """C of the problem Σ loss + λ‖f‖².

    Parameters
    ----------
    lam : float
        λ of that problem: `lam` of `KernelMachine` and of least squares.

    Examples
    --------
    >>> from mercer.estimators.regularisation import C_from_lam
    >>> C_from_lam(0.1), C_from_lam(5.0)  # C, and λ of C = 5
    (5.0, 0.1)
    """
    return 0.5 / positive("lam", lam)


def C_from_alpha(alpha: float, n: float) -> float:
    """C of the problem (α/2)‖w‖² + (1/n) Σ loss.

    Parameters
    ----------
    alpha : float
        α of that problem: `alpha` of `PegasosSVC`, which Shalev-Shwartz writes as λ.
    n : float
        The number of samples, or the sum of their weights.
    """
    return 1.0 / (positive("alpha", alpha) * positive("n", n))


def C_from_liblinear(C: float) -> float:
    """C of a squared loss that LIBLINEAR prices C·ξ².

    Parameters
    ----------
    C : float
        LIBLINEAR's.
    """
    return 2.0 * positive("C", C)


def C_from_consistency(n: float, C0: float, n0: float, *, a: float = 0.25, kernel: Any = "rbf") -> float:
    """C for n samples so that machines become consistent as n grows, from a C₀ that was good for n₀: C₀(n₀/n)^(1−a).

    ϑ = 1/(2Cn) then falls like n^(−a), and ϑ²n grows: with a universal kernel the error approaches that of the Bayes
    rule (Steinwart, 2002; Igel, sec. 4.2). No other kernel can promise that, so it is refused.

    Parameters
    ----------
    n : float
        The number of samples, or the sum of their weights.
    C0, n0 : float
        A good C, and the number of samples it was good for.
    a : float, default=0.25
        How fast ϑ falls; strictly between 0 and ½.
    kernel : str or Kernel, default="rbf"
        The machine's.

    Examples
    --------
    >>> from mercer.estimators.regularisation import C_from_consistency
    >>> [round(C_from_consistency(n, 1.0, 100), 4) for n in (100, 1600, 10_000)]
    [1.0, 0.125, 0.0316]
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
    theta = machine.theta
    if theta is None:
        positive("C", machine.C)
        return
    positive("theta", theta, "it is the ϑ of (1/n)Σ loss + ϑ‖w‖²")
    if machine.C != 1.0:  # the default of every machine that has both
        raise ValueError(
            f"C={machine.C!r} and theta={theta!r} both set the price of errors (C = 1/(2·theta·n)); give one and leave "
            "the other at its default"
        )


def price(machine: Any, n: float) -> float:
    """C, from ϑ where that was given; n is the total weight of the samples of this problem."""
    return positive("C", machine.C) if machine.theta is None else C_from_theta(machine.theta, n)
