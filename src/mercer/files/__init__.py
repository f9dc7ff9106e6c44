"""Models as files."""

from mercer.files.model_file import load, save

__all__ = ["load", "save"]
