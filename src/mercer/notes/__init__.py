"""Tools for the lecture notes: theory as numbers, textbook algorithms, data sets, and the interactive page."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # the names are listed in __init__.pyi
