"""The engine for torch devices: samples, kernel values, solves and proofs stay on the device."""

from __future__ import annotations

from mercer.places.torch.engine import TorchEngine
from mercer.samples.engine import register

ENGINE = TorchEngine()
register(ENGINE)

__all__ = ["ENGINE", "TorchEngine"]
