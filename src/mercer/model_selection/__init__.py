"""Model selection: searches on shared kernel values, held-out values, paths in C and λ, learnt kernels."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # names are listed in __init__.pyi
