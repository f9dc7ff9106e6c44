"""Command ``mercer``, with the programs of LIBSVM and SVMlight, and LIBSVM's functions for Python."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # the names stand in __init__.pyi
