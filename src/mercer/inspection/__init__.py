"""Tools for fitted models: explanations, certificates of other libraries' models, compression, feature maps, plots."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # the names are listed in __init__.pyi
