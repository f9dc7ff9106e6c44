"""torch's devices: samples, kernel values, solves and proofs stay on the device; a few numbers per sample come back."""

from __future__ import annotations

from mercer.places.torch.engine import TorchEngine
from mercer.samples.engine import register

ENGINE = TorchEngine()
register(ENGINE)

__all__ = ["ENGINE", "TorchEngine"]
