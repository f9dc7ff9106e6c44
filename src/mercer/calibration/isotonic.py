"""Isotonic regression: P(+ | f) is the best function of f that never falls, linear between the samples' steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.isotonic import IsotonicRegression

from mercer.arrays import Flags, Floats, Indices


@dataclass(frozen=True, eq=False)
class Steps:
    """The corners of one curve for each output: output k's stand from starts[k] to starts[k + 1]."""

    f: Floats
    p: Floats
    starts: Indices

    def probabilities(self, f: Floats) -> Floats:
        """P of each output's positive side; f has a column for each output."""
        return np.column_stack([self.of_plane(k, f[:, k]) for k in range(f.shape[1])])

    def of_plane(self, k: int, f: Floats) -> Floats:
        """P of the positive side of output k, from its decision values f."""
        mine = slice(self.starts[k], self.starts[k + 1])
        return np.interp(f, self.f[mine], self.p[mine])


def fit_steps(f: Floats, positive: Flags, weight: Floats, starts: Indices) -> Steps:
    """The curves of several outputs, whose values stand one after another and begin at `starts`."""
    corners = []
    for begin, end in zip(starts, np.append(starts[1:], len(f)), strict=True):
        mine = slice(begin, end)
        fitted = IsotonicRegression(y_min=0.0, y_max=1.0).fit(f[mine], positive[mine].astype(float), weight[mine])
        corners.append((fitted.X_thresholds_, fitted.y_thresholds_))
    sizes = np.array([0, *(len(x) for x, _ in corners)])
    return Steps(np.concatenate([x for x, _ in corners]), np.concatenate([p for _, p in corners]), np.cumsum(sizes))
