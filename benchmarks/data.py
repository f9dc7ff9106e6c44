"""Fetch the public data sets of the benchmarks into a folder, one .npz file each, and check what came.

    python benchmarks/data.py FOLDER                        all sets
    python benchmarks/data.py FOLDER --only letter,a9a      some of them
    python benchmarks/data.py FOLDER --check                fetch nothing: compare the files there with the checksums
    python benchmarks/data.py FOLDER --from OTHER           take the rows from .npz files in another folder

A file holds X, y, Xtest and ytest, or for sparse sets data, indices, indptr, shape, y and the same with "test" before
the name. Features are as published, in float32 (except for pixels, which are between 0 and 1). So that every copy of a
set gives the same file, the rows of each part are in the order of the SHA-256 of their bytes (X as little-endian
float32, for sparse rows the int32 columns first, then y as little-endian float64). Sets without a published split are
cut in that order. The checksum is the SHA-256 of all arrays: X or data, indices and indptr of the training rows, their
y, then those of the test rows, as float32, int32, int64 and float64, all little-endian.

A set whose checksum differs is refused. "verified" below means that an independent copy of the same published table
gave this checksum; that the host named here sends the same has not been tried. Where a copy may be coded differently,
only a note is printed. Sets that need no network: digits, breast_cancer and mixture (tasks.py).
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import hashlib
import io
import sys
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
UCI = "https://raw.githubusercontent.com/treforevans/uci_datasets/HEAD/uci_datasets"
_TIMEOUT = 120.0


@dataclass(frozen=True)
class Source:
    """A published set: where it is, how many rows it has, and how it is divided.

    `urls` are one table or a training and a test table; `openml` is an identifier there, whose first `first` rows are
    for training (None: a share of all). `scale` divides what is published and `shift` is added before. `draw` rows are
    kept, those that come first in the order of hashes. `verified`: another copy gave this checksum.
    """

    rows: int
    d: int
    share: float | None = None
    openml: int | None = None
    name: str = ""
    urls: tuple[str, ...] = ()
    first: int | None = None
    regression: bool = False
    sparse: bool = False
    shift: float = 0.0
    scale: float = 1.0
    draw: int | None = None
    checksum: str = ""
    verified: bool = False


SETS: dict[str, Source] = {
    "letter": Source(
        *(20_000, 16, 0.8),
        openml=6,
        name="letter",
        checksum="7aaea5fee3439a972a1735209f735f30dc6f70080163e2f847b87b79da2761c2",
        verified=True,
    ),
    "spam": Source(
        *(4601, 57, 0.7),
        openml=44,
        name="spambase",
        checksum="130a90dfe5093368882e7b699db1f7747b99841612b97f6c4217ca93b6909166",
        verified=True,
    ),
    "mnist": Source(
        *(70_000, 784),
        openml=554,
        name="mnist_784",
        first=60_000,
        scale=255.0,
        checksum="5b456f2e28c29d325b24af4c6886bdc620e3333c413fdb697a7478c24b2c5e8e",
        verified=True,
    ),
    "covtype10k": Source(581_012, 54, 0.7, openml=1596, name="covertype", draw=10_000),
    "usps": Source(
        *(9298, 256),
        urls=(f"{LIBSVM}/multiclass/usps.bz2", f"{LIBSVM}/multiclass/usps.t.bz2"),
        first=7291,
        shift=1.0,
        scale=2.0,
        checksum="ce3bb01ce9032e4405af5a486667b4917f67ff884a01b160257ce9c7bc50bd5e",
    ),
    "a9a": Source(
        *(48_842, 123),
        urls=(f"{LIBSVM}/binary/a9a", f"{LIBSVM}/binary/a9a.t"),
        first=32_561,
        sparse=True,
        checksum="c29c112143b4d096f53271a407cc5ba70f622dc4f1f451b5d06de1c9d56edb7d",
        verified=True,
    ),
    "w8a": Source(
        *(49_749, 300, 0.7),
        urls=(f"{LIBSVM}/binary/w8a",),
        sparse=True,
        checksum="5d404ef3d97b451b437a00c43c0bd865b71c9e44af4d83b762efa5101ec810c1",
        verified=True,
    ),
    "kin40k_reg": Source(
        *(40_000, 8, 0.9),
        urls=(f"{UCI}/kin40k/data.csv.gz",),
        regression=True,
        checksum="1002a7654732e84484b22a49dc43c0f9d6a2383fdb59df595802020ebea7a384",
        verified=True,
    ),
    "protein_reg": Source(
        *(45_730, 9, 0.9),
        urls=(f"{UCI}/protein/data.csv.gz",),
        regression=True,
        checksum="9ea4e0914341c6eb16cf30621970f3877c2d8ddb1261be912b332e4143b8a573",
        verified=True,
    ),
}


class Refused(Exception):
    """A set that could not be fetched or is not what it should be, in words."""


# --- canonical form --------------------------------------------------------------------------------------------------


def row_order(X: Any, y: np.ndarray) -> np.ndarray:
    """Return the rows in the order of the SHA-256 of their bytes."""
    target = np.ascontiguousarray(y, dtype="<f8")
    if sp.issparse(X):
        bounds = X.indptr
        parts = [(X.indices[a:b].astype("<i4"), X.data[a:b].astype("<f4")) for a, b in pairwise(bounds)]
        keys = [hashlib.sha256(columns.tobytes() + values.tobytes()) for columns, values in parts]
    else:
        keys = [hashlib.sha256(row.tobytes()) for row in np.ascontiguousarray(X, dtype="<f4")]
    for key, value in zip(keys, target, strict=True):
        key.update(value.tobytes())
    return np.array(sorted(range(len(keys)), key=lambda i: keys[i].digest()))


def canonical(X: Any, y: np.ndarray, source: Source) -> dict[str, np.ndarray]:
    """Return the arrays of the file for all rows of a set, the training rows of a published split first."""
    if X.shape != (source.rows, source.d):
        raise Refused(f"it has {X.shape[0]} rows of {X.shape[1]} features, not {source.rows} of {source.d}")
    if sp.issparse(X):
        X = sp.csr_matrix(X, dtype=np.float32)
        X.sum_duplicates()
        X.eliminate_zeros()
    else:
        X = np.asarray(X, dtype=np.float32) + np.float32(0)  # no negative zeros
    y = np.asarray(y, dtype=np.float64 if source.regression else np.int32)
    if source.first is not None:
        parts = [np.arange(source.first), np.arange(source.first, source.rows)]
        parts = [part[row_order(X[part], y[part])] for part in parts]
    else:
        order = row_order(X, y)[: source.draw]
        cut = round((source.share or 0.0) * len(order))
        parts = [order[:cut], order[cut:]]
    arrays: dict[str, np.ndarray] = {}
    for prefix, suffix, rows in (("", "", parts[0]), ("test", "test", parts[1])):
        some = X[rows]
        if sp.issparse(some):
            arrays |= {prefix + name: getattr(some, name) for name in ("data", "indices", "indptr")}
            arrays[prefix + "shape"] = np.array(some.shape)
        else:
            arrays["X" + suffix] = some
        arrays["y" + suffix] = y[rows]
    return arrays


def checksum(arrays: dict[str, np.ndarray]) -> str:
    """Return the SHA-256 of the arrays in their stated types and order."""
    found = hashlib.sha256()
    for part in ("", "test"):
        names = [("X" + part, "<f4")] if "X" in arrays else []
        names = names or [(part + "data", "<f4"), (part + "indices", "<i4"), (part + "indptr", "<i8")]
        for name, kind in [*names, ("y" + part, "<f8")]:
            found.update(np.ascontiguousarray(arrays[name], dtype=kind).tobytes())
    return found.hexdigest()


def check(arrays: dict[str, np.ndarray], source: Source) -> str:
    """Refuse arrays with a wrong checksum; return what can be said of the others."""
    found = checksum(arrays)
    if not source.checksum:
        return f"checksum {found[:16]}…; there is none to compare with"
    if found == source.checksum:
        return f"checksum {found[:16]}…, as it should be"
    if source.verified:
        raise Refused(f"its checksum is {found}, not {source.checksum}: this is not the set that was measured")
    return f"checksum {found[:16]}…; the copy that the pages were measured with has {source.checksum[:16]}…"


# --- where rows come from --------------------------------------------------------------------------------------------


def download(url: str) -> bytes:
    """Return what a host sends, decompressed by the ending of its name."""
    host = url.split("/")[2]
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
            content = answer.read()
    except OSError as error:
        raise Refused(f"{host} cannot be reached or does not send {url}: {error}") from error
    try:
        return {".bz2": bz2.decompress, ".gz": gzip.decompress}.get(Path(url).suffix, bytes)(content)
    except (OSError, ValueError, EOFError) as error:
        raise Refused(f"what {host} sends as {url} cannot be decompressed: {error}") from error


def from_openml(source: Source) -> tuple[Any, np.ndarray]:
    """Return the rows of a set of OpenML, its labels as numbers in their order."""
    from sklearn.datasets import fetch_openml

    try:
        found = fetch_openml(data_id=source.openml, as_frame=False, parser="liac-arff", cache=False)
    except (OSError, ValueError) as error:
        raise Refused(f"openml.org cannot be reached or does not send set {source.openml}: {error}") from error
    if found.details["name"].lower() != source.name:
        raise Refused(f"set {source.openml} of OpenML is called {found.details['name']!r}, not {source.name!r}")
    return found.data, np.unique(found.target, return_inverse=True)[1] + (1 if source.name == "covertype" else 0)


def from_text(contents: Sequence[bytes], source: Source) -> tuple[Any, np.ndarray]:
    """Return the rows of CSV with the target last, or of LIBSVM text; labels of several classes begin with 1 there."""
    if source.regression:
        table = np.loadtxt(io.BytesIO(contents[0]), delimiter=",", ndmin=2)
        return table[:, :-1], table[:, -1]
    from sklearn.datasets import load_svmlight_file

    parts = [load_svmlight_file(io.BytesIO(text), n_features=source.d, dtype=np.float64) for text in contents]
    X, y = sp.vstack([part[0] for part in parts]).tocsr(), np.concatenate([part[1] for part in parts])
    return (X, y) if source.sparse else (X.toarray(), y - 1)


def from_file(path: Path, source: Source) -> tuple[Any, np.ndarray]:
    """Return all rows of an .npz file in the form of the benchmarks, those of its training part first."""
    try:
        with np.load(path) as file:
            y = np.concatenate([file["y"], file["ytest"]])
            if "X" in file:
                return np.concatenate([file["X"], file["Xtest"]]), y
            pieces = [[file[part + name] for name in ("data", "indices", "indptr", "shape")] for part in ("", "test")]
    except (OSError, KeyError) as error:
        raise Refused(f"{path.name} cannot be read: {error}") from error
    return sp.vstack([sp.csr_matrix(tuple(piece[:3]), shape=tuple(piece[3])) for piece in pieces]).tocsr(), y


def fetch(name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a set from its public host."""
    source = SETS[name]
    X, y = from_openml(source) if source.openml else from_text([download(url) for url in source.urls], source)
    if not source.sparse:
        X = (np.asarray(X, dtype=np.float64) + source.shift) / source.scale
    return canonical(X, y, source)


def make(folder: Path, name: str, other: Path | None) -> str:
    """Write one file, and return what is known of it."""
    source = SETS[name]
    arrays = fetch(name) if other is None else canonical(*from_file(other / f"{name}.npz", source), source)
    told = check(arrays, source)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.part.npz"
    np.savez_compressed(partial, **arrays)
    partial.replace(folder / f"{name}.npz")
    return told


def stored(folder: Path, name: str) -> dict[str, np.ndarray]:
    """Return the arrays of a file."""
    with np.load(folder / f"{name}.npz") as file:
        return {key: file[key] for key in file.files}


def main(arguments: Sequence[str] | None = None) -> int:
    """Fetch or check each set; the number of those that were refused."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--only", default=",".join(SETS), help="names with commas between them")
    parser.add_argument("--check", action="store_true", help="compare the files of FOLDER with the checksums")
    parser.add_argument("--from", dest="other", type=Path, metavar="OTHER", help="a folder with .npz files")
    options = parser.parse_args(arguments)
    names = [name for name in options.only.split(",") if name]
    if unknown := [name for name in names if name not in SETS]:
        parser.error(f"there is no set {unknown[0]!r}; choose from {', '.join(SETS)}")
    refused = 0
    for name in names:
        try:
            if options.check:
                told = check(stored(options.folder, name), SETS[name])
            else:
                told = make(options.folder, name, options.other)
            print(f"{name}: {told}", flush=True)
        except (Refused, FileNotFoundError) as error:
            refused += 1
            print(f"{name} is refused: {error}", file=sys.stderr, flush=True)
    return min(refused, 1)


if __name__ == "__main__":
    sys.exit(main())
