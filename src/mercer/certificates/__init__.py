"""Every proof; nothing else builds a Certificate."""

from typing import TYPE_CHECKING

from mercer.runtime.on_demand import on_demand

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_demand(__name__, {"lagrangian": "mercer.certificates.lagrangian"})
