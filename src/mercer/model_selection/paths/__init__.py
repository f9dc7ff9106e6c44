"""Solution paths in C, and estimates of the leave-one-out error."""

from lazy_loader import attach_stub

from mercer.runtime.missing_names import missing_name_error

_import_name, __dir__, __all__ = attach_stub(__name__, __file__)  # names are listed in __init__.pyi


def __getattr__(name: str) -> object:
    if name in __all__:
        return _import_name(name)
    raise missing_name_error(__name__, name, __all__)
