"""Gram matrices: kernel values of a data set, evaluated block by block within a memory budget."""

from mercer.gram.gram import Gram

__all__ = ["Gram"]
