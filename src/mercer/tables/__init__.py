"""Tables as they come: every column of a frame, whatever it holds, as numbers that a kernel machine can learn from."""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)  # the names stand in __init__.pyi
