"""Conversion between the regularisation parameters of different conventions.

Every machine here minimises  ½‖w‖² + C Σ loss_i.  With n = Σ sample weights, the following problems are equivalent:

    (1/n) Σ loss_i + ϑ‖w‖²        C = 1/(2ϑn)    Igel's ϑ, Rosasco's λ; the parameter `theta` of the machines
    Σ loss_i + λ‖f‖²              C = 1/(2λ)     the λ of least squares and of any loss; `lam` of these machines
    (α/2)‖w‖² + (1/n) Σ loss_i    C = 1/(αn)     Shalev-Shwartz's λ; `alpha` of PegasosSVC, as scikit-learn's
    ½‖w‖² + C' Σ ξ_i²             C = 2C'        LIBLINEAR's C' for squared losses; ours multiplies ½ξ_i²

The first three formulas are their own inverse: with C in the place of ϑ, λ or α they give that parameter. Other
libraries name the λ of least squares differently: alpha of scikit-learn's Ridge and KernelRidge is λ, GURLS's λ is λ/n,
and an LS-SVM's gamma is 1/λ.

`C_from` converts these parameters, and returns the C that makes a machine consistent as n grows.

For several classes one against one, n is the total weight of the two classes of the pair. The ν-machines choose C or ε
themselves and report it (`equivalent_C_`, `epsilon_`).
"""

from __future__ import annotations

from typing import Any

from mercer.kernels.names import as_kernel
from mercer.runtime.parameters import positive


def C_from(
    *,
    theta: float | None = None,
    lam: float | None = None,
    alpha: float | None = None,
    liblinear: float | None = None,
    C0: float | None = None,
    n: float | None = None,
    n0: float | None = None,
    a: float = 0.25,
    kernel: Any = "rbf",
) -> float:
    """Return C of ½‖w‖² + C Σ loss, given the regularisation parameter of another convention.

    ============================ =============== ======================================================================
    call                         C               convention
    ============================ =============== ======================================================================
    ``C_from(theta=ϑ, n=n)``     1/(2ϑn)         (1/n) Σ loss + ϑ‖w‖²: `theta` of the machines, Igel's ϑ, Rosasco's λ
    ``C_from(lam=λ)``            1/(2λ)          Σ loss + λ‖f‖²: `lam` of `KernelMachine` and of least squares
    ``C_from(alpha=α, n=n)``     1/(αn)          (α/2)‖w‖² + (1/n) Σ loss: `alpha` of `PegasosSVC`, Shalev-Shwartz's λ
    ``C_from(liblinear=C)``      2C              ½‖w‖² + C Σ ξ²: LIBLINEAR's C of a squared loss; ours multiplies ½ξ²
    ``C_from(C0=, n0=, n=)``     C₀(n₀/n)^(1−a)  C for n samples, from a C₀ that works well for n₀: see the notes
    ============================ =============== ======================================================================

    The first three are their own inverse: given C in the place of ϑ, λ or α, they return that parameter.

    Parameters
    ----------
    theta, lam, alpha, liblinear, C0 : float
        Parameter of one convention. Give exactly one of them.
    n : float
        Number of samples, or the sum of their weights; required with theta, alpha and C0.
    n0 : float
        Number of samples for which C0 was chosen; required with C0.
    a : float, default=0.25
        Rate with which ϑ = 1/(2Cn) decreases, ϑ ~ n^(−a), strictly between 0 and ½; used with C0.
    kernel : str or Kernel, default="rbf"
        Kernel of the machine, which must be universal; used with C0.

    Returns
    -------
    float
        C.

    Notes
    -----
    With C = C₀(n₀/n)^(1−a), ϑ = 1/(2Cn) decreases like n^(−a) while ϑ²n grows: with a universal kernel the error
    converges to that of the Bayes rule (Steinwart, 2002; Igel, sec. 4.2). For other kernels this does not hold in
    general, and a ValueError is raised.

    Examples
    --------
    >>> import mercer
    >>> mercer.C_from(theta=0.01, n=100)
    0.5
    >>> mercer.C_from(lam=0.1), mercer.C_from(lam=5.0)  # C, and λ of C = 5
    (5.0, 0.1)
    >>> [round(mercer.C_from(C0=1.0, n0=100, n=n), 4) for n in (100, 1600, 10_000)]
    [1.0, 0.125, 0.0316]
    """
    conventions = {"theta": theta, "lam": lam, "alpha": alpha, "liblinear": liblinear, "C0": C0}
    given_names = [name for name, value in conventions.items() if value is not None]
    if len(given_names) != 1:
        raise TypeError(
            f"C_from takes exactly one of {', '.join(conventions)}, and {' and '.join(given_names) or 'none'} "
            f"{'was' if len(given_names) < 2 else 'were'} given"
        )
    (convention,) = given_names
    value = positive(convention, conventions[convention])
    sizes = {"theta": ("n",), "alpha": ("n",), "C0": ("n", "n0")}.get(convention, ())
    for name, size in {"n": n, "n0": n0}.items():
        if (size is not None) != (name in sizes):
            verb = "needs" if name in sizes else "does not take"
            raise TypeError(f"C_from({convention}=…) {verb} {name}, a number of samples")
    if convention == "lam":
        return 0.5 / value
    if convention == "liblinear":
        return 2.0 * value
    n_samples = positive("n", n)
    if convention == "C0":
        return _consistent_C(value, positive("n0", n0), n_samples, a, kernel)
    return (0.5 if convention == "theta" else 1.0) / (value * n_samples)


def _consistent_C(C0: float, n0: float, n: float, a: float, kernel: Any) -> float:
    """Return C₀(n₀/n)^(1−a); raise ValueError if the kernel is not known to be universal."""
    if not 0 < a < 0.5:
        raise ValueError(f"a={a!r} must lie between 0 and 1/2: ϑ = 1/(2Cn) ~ n^(−a) must vanish, and ϑ²n must not")
    kernel = as_kernel(kernel)
    if kernel.universal != "yes":
        raise ValueError(
            f"{kernel!r} is not known to be universal (universal={kernel.universal!r}), so that no schedule of C makes "
            "its machines consistent; use a Gaussian or Laplacian kernel, or choose C by validation"
        )
    return float(C0 * (n0 / n) ** (1.0 - a))


def check_C_or_theta(machine: Any) -> None:
    """Raise unless exactly one of C and theta is set, to a positive number."""
    theta = machine.theta
    if theta is None:
        positive("C", machine.C)
        return
    positive("theta", theta, "it is the ϑ of (1/n)Σ loss + ϑ‖w‖²")
    if machine.C != 1.0:  # the default of every machine that has both
        raise ValueError(
            f"C={machine.C!r} and theta={theta!r} both set the penalty for errors (C = 1/(2·theta·n)); give one and "
            "leave the other at its default"
        )


def penalty_C(machine: Any, n: float) -> float:
    """Return the machine's C, or 1/(2ϑn) if its `theta` is given; n is the total weight of the problem's samples."""
    return positive("C", machine.C) if machine.theta is None else C_from(theta=machine.theta, n=n)
