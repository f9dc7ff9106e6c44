"""Products of BLAS on parts of a matrix, in place: scipy.linalg.blas copies what is not contiguous.

SciPy publishes the addresses of its BLAS for Cython (scipy.linalg.cython_blas), each with its signature.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from scipy.linalg import cython_blas

from mercer.arrays import Floats

_INT, _DOUBLE = b"int *", b"cython_blas_d *"


@cache
def usable() -> bool:
    """Whether this SciPy's BLAS has the types that are used here."""
    try:
        for name in ("dgemm", "dsyr2k"):
            _entry(name)
    except (AttributeError, KeyError, TypeError):
        return False
    return True


def add_product(C: Floats, factor: float, A: Floats, B: Floats, *, keep: bool = True) -> None:
    """C = factor·AB + C, or without C where it is not to be kept. All are parts of matrices in Fortran's order."""
    a, b = _form(A), _form(B)
    _call("dgemm", a[0], b[0], C.shape[0], C.shape[1], A.shape[1], factor, *a[1:], *b[1:], float(keep), C, _stride(C))


def subtract_twice(C: Floats, A: Floats, B: Floats) -> None:
    """C −= AB' + BA' in the lower triangle of C."""
    _call("dsyr2k", b"L", b"N", *A.shape, -1.0, A, _stride(A), B, _stride(B), 1.0, C, _stride(C))


def _form(A: Floats) -> tuple[bytes, Floats, int]:
    """How BLAS reads A: as it is, or transposed."""
    return (b"N", A, _stride(A)) if A.strides[0] == A.itemsize else (b"T", A, _stride(A.T))


def _stride(A: Floats) -> int:
    assert A.dtype == np.float64
    assert A.strides[0] == A.itemsize
    step: int = A.strides[1] // A.itemsize
    return max(step, len(A), 1)


@cache
def _entry(name: str) -> Callable[..., None]:
    capsule = vars(cython_blas)["__pyx_capi__"][name]
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    arguments = signature[signature.index(b"(") + 1 : signature.index(b")")].split(b", ")
    if not all(kind in (b"char *", _INT) or kind.endswith(_DOUBLE) for kind in arguments):
        raise TypeError(f"{name} has the unknown signature {signature!r}")
    prototype = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arguments))
    return prototype(address_of(capsule, signature))


def _call(name: str, *arguments: bytes | int | float | Floats) -> None:
    """Fortran takes addresses: numbers are put where they have one."""
    kept = [_placed(argument) for argument in arguments]
    _entry(name)(*[a.ctypes.data if isinstance(a, np.ndarray) else ctypes.addressof(a) for a in kept])


def _placed(argument: bytes | int | float | Floats) -> Any:
    if isinstance(argument, bytes):
        return ctypes.c_char(argument)
    if isinstance(argument, np.ndarray):
        return argument
    return ctypes.c_double(argument) if isinstance(argument, float) else ctypes.c_int(argument)
