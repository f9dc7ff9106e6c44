"""Gram matrices: kernel values of a data set, evaluated block by block within a memory budget."""

from mercer.places.choose import cross_for, evaluation_for, gram_for, rows_for
from mercer.places.gram import Eigensystem, Evaluation, Factor, Field, Gram, Kept, Provable
from mercer.places.protocols import Cross, LinearGram, Rows

__all__ = [
    "Cross",
    "Eigensystem",
    "Evaluation",
    "Factor",
    "Field",
    "Gram",
    "Kept",
    "LinearGram",
    "Provable",
    "Rows",
    "cross_for",
    "evaluation_for",
    "gram_for",
    "rows_for",
]
