"""Compression of kernel machines to fewer vectors, with a proven bound on the change."""

from mercer.inspection.compression.fewer_vectors import compress
from mercer.inspection.compression.report import Compression

__all__ = ["Compression", "compress"]
