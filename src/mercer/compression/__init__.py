"""Machines on fewer vectors, and the proof of how far they are from the original."""

from mercer.compression.fewer_vectors import compress
from mercer.compression.report import Compression

__all__ = ["Compression", "compress"]
