"""Services for all other folders: threads, long calls, progress, optional packages, versions, errors, configuration."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # the names are listed in __init__.pyi
