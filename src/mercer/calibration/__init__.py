"""Probabilities, prediction sets and prediction intervals for fitted machines."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # names are listed in __init__.pyi
