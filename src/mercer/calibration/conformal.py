"""Sets of classes that hold the true one with a chosen probability, class by class (Mondrian conformal prediction).

A class's p-value at x is the share of that class's own samples, x counted among them, whose score for the class is not
above that of x. The set at level α holds the classes with a p-value above α. If the scores of the class's samples and
of x are exchangeable, the true class is left out with probability at most α, whichever class it is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mercer.arrays import Floats, Indices


@dataclass(frozen=True, eq=False)
class OwnScores:
    """The sorted scores of each class's samples for that class: class k's stand from starts[k] to starts[k + 1]."""

    scores: Floats
    starts: Indices

    @classmethod
    def of(cls, own: Floats, codes: Indices, n_classes: int) -> OwnScores:
        """From the score of each sample for its own class."""
        order = np.lexsort((own, codes))
        return cls(own[order], np.searchsorted(codes[order], np.arange(n_classes + 1)))

    def p_values(self, scores: Floats) -> Floats:
        """A column for each class, from scores with a column for each class."""
        out = np.empty_like(scores)
        for k in range(scores.shape[1]):
            known = self.scores[self.starts[k] : self.starts[k + 1]]
            out[:, k] = (1.0 + np.searchsorted(known, scores[:, k], side="right")) / (1.0 + len(known))
        return out
