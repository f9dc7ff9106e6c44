"""LIBSVM's programs, and its functions for Python (`svmutil`)."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # __init__.pyi lists the names
