"""The Mercer check: is K symmetric and positive semi-definite? Samples can refute a kernel, but never prove one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from mercer.kernels.function import FromFunction
from mercer.kernels.kernel import Kernel
from mercer.kernels.names import KernelLike, as_kernel
from mercer.samples.arrays import Floats, Samples, n_samples


@dataclass(frozen=True, eq=False, repr=False)
class KernelCheck:
    """Result of `check_kernel`.

    Attributes
    ----------
    symmetric : bool
        Whether K equals its transpose up to rounding.
    asymmetry : float
        Largest |K_ij − K_ji|.
    smallest_eigenvalue : float
        Smallest eigenvalue of (K + Kᵀ)/2.
    tolerance : float
        Largest size of a negative eigenvalue that rounding may cause.
    witness : array or None
        Vector c of length 1 with cᵀKc < −tolerance, if there is one.
    verdict : str
        Conclusion in words.

    Examples
    --------
    See `check_kernel`.
    """

    symmetric: bool
    asymmetry: float
    smallest_eigenvalue: float
    tolerance: float
    witness: Floats | None
    verdict: str

    def __repr__(self) -> str:
        smallest = f"{self.smallest_eigenvalue:.3g}"
        lines = [
            f"KernelCheck: {self.verdict}",
            f"  symmetric            {'yes' if self.symmetric else 'no'} (largest difference {self.asymmetry:.3g})",
            f"  smallest eigenvalue  {smallest} (down to {-self.tolerance:.1g} it may be rounding)",
        ]
        if self.witness is not None:
            lines.append(f"  witness              c with cᵀKc = {smallest}, {len(self.witness)} numbers in .witness")
        return "\n".join(lines)


def check_kernel(
    X: Samples,
    *,
    kernel: KernelLike,
    degree: int = 3,
    gamma: float | str = "scale",
    coef0: float = 0.0,
    tol: float = 1e-10,
) -> KernelCheck:
    """Look for a counterexample to a kernel's positive definiteness among the samples X.

    Parameters
    ----------
    X : array, CSR matrix, list of strings or kernel matrix
        Samples. The work grows with the cube of their number.
    kernel : str, Kernel or callable
        Kernel; "precomputed" if X is the matrix of kernel values itself.
    degree, gamma, coef0 : as for `SVC`
        Parameters of a kernel given by name.
    tol : float
        Size of rounding errors, relative to the largest value (symmetry) and eigenvalue (definiteness); at least 2⁻²³n
        for a float32 matrix of n samples.

    Returns
    -------
    KernelCheck
        ``verdict``, the conclusion in words; ``symmetric``, True if K equals its transpose up to rounding;
        ``asymmetry``, the largest |K_ij − K_ji|; ``smallest_eigenvalue`` of (K + Kᵀ)/2; ``tolerance``, the largest size
        of a negative eigenvalue that rounding may cause; and ``witness``, a vector c of length 1 with
        cᵀKc < −tolerance, or None.

    Examples
    --------
    >>> from mercer import check_kernel
    >>> check = check_kernel([[1.0], [2.0]], kernel=lambda X, Z: -(X @ Z.T))
    >>> check.verdict[:7], round(check.smallest_eigenvalue, 6)
    ('refuted', -5.0)
    """
    if not 0 <= tol < 1:
        raise ValueError(f"tol={tol!r} must be a number ≥ 0 and < 1: a share of the largest eigenvalue")
    if callable(kernel) and not isinstance(kernel, Kernel | type) and _are_strings(X):
        kernel = FromFunction(kernel, accepts="sequences")
    kernel = as_kernel(kernel, degree=degree, gamma=gamma, coef0=coef0).bind(X)
    # kernel(X) would be symmetric by construction, except for a precomputed matrix.
    K = kernel(X) if kernel.accepts == "gram" else kernel(X, X)
    if K.shape[0] != K.shape[1] or len(K) == 0:
        raise ValueError(f"the check needs the square matrix of at least one sample, but K has shape {K.shape}")
    if not np.isfinite(K).all():
        raise ValueError(f"{kernel!r} is not finite on these samples, so its eigenvalues cannot be computed")
    tol = max(tol, float32_rounding(X, kernel))
    asymmetry = float(np.abs(K - K.T).max())
    is_symmetric = asymmetry <= tol * float(np.abs(K).max())
    eigenvalues, vectors = eigh((K + K.T) / 2)
    smallest = float(eigenvalues[0])
    tolerance = tol * float(np.abs(eigenvalues).max())
    witness = vectors[:, 0].copy() if smallest < -tolerance else None
    return KernelCheck(is_symmetric, asymmetry, smallest, tolerance, witness, _verdict(len(K), is_symmetric, witness))


def float32_rounding(X: Samples, kernel: Kernel) -> float:
    """Return a bound on the effect of rounding a precomputed matrix to float32, relative to its largest eigenvalue."""
    is_float32 = kernel.accepts == "gram" and getattr(X, "dtype", None) == np.float32
    return float(np.finfo(np.float32).eps) * n_samples(X) if is_float32 else 0.0


def _are_strings(X: Samples) -> bool:
    """Return whether the samples are a sequence of strings."""
    return not hasattr(X, "shape") and len(X) > 0 and all(isinstance(sample, str) for sample in X)


def _verdict(n: int, symmetric: bool, witness: Floats | None) -> str:
    """Return the conclusion of the check in words."""
    faults = ["K is not symmetric"] * (not symmetric)
    faults += ["K has a negative eigenvalue, as the witness shows"] * (witness is not None)
    if faults:
        return f"refuted on these {n} samples: {'; '.join(faults)}"
    return f"no counterexample here ({n} samples); a finite check can refute a kernel, never prove one"
