"""Threads, long calls, progress, optional packages, versions, errors and configuration, for all folders."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # the names stand in __init__.pyi
