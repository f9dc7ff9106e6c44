"""Machines on fewer vectors, and the proof of how far they are from the original."""

from mercer.inspection.compression.fewer_vectors import compress
from mercer.inspection.compression.report import Compression

__all__ = ["Compression", "compress"]
