"""What a running fit of a linear machine tells: its certificates on the way, a line a second."""

from __future__ import annotations

import time

from mercer.certificates.certificate import Certificate
from mercer.solvers.linear.choose import LinearReport


class LinearProgress:
    """The lines of one fit, which has `n_machines` sub-problems."""

    def __init__(self, n_machines: int) -> None:
        self._n_machines = n_machines
        self._begun = self._next_line = time.monotonic()

    def of(self, number: int) -> LinearReport:
        """What the solver of this sub-problem calls; several may do so at a time."""
        name = f"machine {number + 1} of {self._n_machines}: " if self._n_machines > 1 else ""

        def report(steps: int, certificate: Certificate) -> None:
            now = time.monotonic()
            if now < self._next_line:
                return
            self._next_line = now + 1.0
            print(
                f"[mercer] {name}{now - self._begun:7.1f} s  {steps:>8,} steps  violation {certificate.violation:.3e}  "
                f"gap {certificate.gap:.3e}, {certificate.relative_gap:.1e} of the dual value",
                flush=True,
            )

        return report
