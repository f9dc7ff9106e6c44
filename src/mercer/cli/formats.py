"""What data files are called, and the sets that come along; known before any library is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_FORMATS: Final = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
}
FORMATS: Final = ("libsvm", *dict.fromkeys(_FORMATS.values()))
# The sets that come with scikit-learn, for trying mercer without a file.
TITLES: Final = {
    "breast_cancer": "breast cancer Wisconsin (diagnostic)",
    "digits": "handwritten digits, 8 × 8 pixels",
    "wine": "wine recognition, three growers",
    "iris": "Fisher's iris",
}


def format_of(path: str, form: str | None) -> str:
    """The format asked for, or what the name suggests."""
    return form or _FORMATS.get(Path(path).suffix.lower(), "libsvm")
