"""Distances and angles in the feature space of a kernel."""

from __future__ import annotations

from typing import Any

import numpy as np

from mercer.samples.arrays import Floats, Samples


class FeatureGeometry:
    """Mixin with distances and angles between the feature vectors φ(x) of a kernel."""

    def _with_diagonals(self: Any, X: Samples, Z: Samples) -> tuple[Floats, Floats, Floats]:
        """Return k(x_i, z_j), k(x_i, x_i) and k(z_j, z_j)."""
        K, rows = self(X, Z), self.diag(X)
        return K, rows, rows if Z is None else self.diag(Z)

    def distance(self, X: Samples, Z: Samples = None) -> Floats:
        """Compute the distances ‖φ(x_i) − φ(z_j)‖ = √(k(x, x) − 2k(x, z) + k(z, z)) in feature space.

        Because of cancellation, distances below about 10⁻⁶ √k(x, x) may be rounding errors.

        Parameters
        ----------
        X, Z : array, CSR matrix or sequence of samples
            Samples, as in a call of the kernel.

        Returns
        -------
        array of shape (len(X), len(Z))
            Distances.

        Raises
        ------
        ValueError
            If a square is negative by more than rounding, so that the kernel is not positive definite.

        Examples
        --------
        >>> from mercer.kernels import Gaussian, Linear
        >>> Linear().distance([[0.0, 0.0]], [[3.0, 4.0]])
        array([[5.]])
        >>> Gaussian(gamma=1.0).distance([[0.0], [9.0]]).round(4)  # never more than √2
        array([[0.    , 1.4142],
               [1.4142, 0.    ]])
        """
        K, rows, columns = self._with_diagonals(X, Z)
        size = rows[:, None] + columns
        squares = size - 2.0 * K
        bad = np.argwhere(squares < -1e-8 * np.abs(size))
        if len(bad) or (rows < 0).any() or (columns < 0).any():
            i, j = bad[0] if len(bad) else (0, 0)
            raise ValueError(
                f"{self!r} is not positive definite, so that distances are undefined: k(x, x) + k(z, z) − 2k(x, z) = "
                f"{squares[i, j]:.3g} for row {i} of X and row {j} of Z"
            )
        return np.asarray(np.sqrt(np.maximum(squares, 0.0)))

    def angle(self, X: Samples, Z: Samples = None) -> Floats:
        """Compute the angles between φ(x_i) and φ(z_j), in radians: arccos(k(x, z)/√(k(x, x) k(z, z))).

        Parameters
        ----------
        X, Z : array, CSR matrix or sequence of samples
            Samples, as in a call of the kernel.

        Returns
        -------
        array of shape (len(X), len(Z))
            Angles.

        Examples
        --------
        >>> from mercer.kernels import Gaussian, Linear
        >>> Linear().angle([[1.0, 0.0]], [[1.0, 1.0], [0.0, 2.0]]).round(4)  # π/4, π/2
        array([[0.7854, 1.5708]])
        >>> bool((Gaussian(gamma=1.0).angle([[0.0], [1.0], [5.0]]) < 1.5708).all())  # all in one orthant
        True
        """
        K, rows, columns = self._with_diagonals(X, Z)
        if not ((rows > 0).all() and (columns > 0).all()):
            smallest = min(rows.min(initial=np.inf), columns.min(initial=np.inf))
            raise ValueError(f"k(x, x) = {smallest:g} for some sample, so that φ(x) has no direction and no angle")
        return np.asarray(np.arccos(np.clip(K / np.sqrt(rows)[:, None] / np.sqrt(columns), -1.0, 1.0)))
