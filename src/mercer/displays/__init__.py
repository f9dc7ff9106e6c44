"""Pictures of machines; they need the extra ``plot``."""

from mercer.displays.decision import DecisionDisplay

__all__ = ["DecisionDisplay"]
