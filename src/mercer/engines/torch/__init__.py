"""torch's devices: samples, kernel values, solves and proofs stay on the device; a few numbers per sample come back."""

from __future__ import annotations

from mercer.engine import register
from mercer.engines.torch.engine import TorchEngine

ENGINE = TorchEngine()
register(ENGINE)

__all__ = ["ENGINE", "TorchEngine"]
