"""Estimators with scikit-learn's interface."""

from lazy_loader import attach_stub

__getattr__, __dir__, _names = attach_stub(__name__, __file__)  # the names stand in __init__.pyi
__all__ = [name for name in _names if name[0].isupper()]  # the classes, without the folder `unsupervised`
