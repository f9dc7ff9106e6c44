"""Gram matrices on the host, a device or a cluster: kernel values, computed block by block within a memory budget."""

from mercer.places.choose import cross_for, evaluation_for, gram_for, rows_for
from mercer.places.gram import BoundedProducts, Eigensystem, Evaluation, Factor, Field, Float64Matrix, Gram
from mercer.places.protocols import Cross, LinearGram, Rows

__all__ = [
    "BoundedProducts",
    "Cross",
    "Eigensystem",
    "Evaluation",
    "Factor",
    "Field",
    "Float64Matrix",
    "Gram",
    "LinearGram",
    "Rows",
    "cross_for",
    "evaluation_for",
    "gram_for",
    "rows_for",
]
