"""How the guided fuzzing changes a file: any bytes, or a .mercer file with checksums that are put right again."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from typing import Any

from reference.forgery import put_together, sealed_text, taken_apart

Mutate = Callable[[random.Random, bytes, list[bytes]], bytes]

PIECES = [
    *(b"nan", b"inf", b"-", b"+", b"1e999", b"-1e-999", b"99999999999", b"2147483648", b"0", b"-1", b"\n", b" ", b":"),
    *(b"SV\n", b"w\n", b"0:1", b"1:1 ", b"\xff", b"\0", b"#", b"qid:1", b"1_0", b"\r\n", b"label", b"rho 1\n", b""),
]


def mutate_bytes(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """A few small changes, or a piece of another parent."""
    out = bytearray(content)
    for _ in range(1 << rng.randrange(4)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(7):
            case 0 if at < len(out):
                out[at] ^= 1 << rng.randrange(8)
            case 1 if at < len(out):
                out[at] = rng.randrange(256)
            case 2:
                out[at:at] = rng.choice(PIECES)
            case 3:
                del out[at : at + rng.randint(1, 12)]
            case 4:  # a number by another
                out[at : at + rng.randint(1, 4)] = rng.choice([b"0", b"1", b"2", b"-1", b"3", b"1000000", b"0.5"])
            case 5:
                other = rng.choice(others)
                start = rng.randrange(len(other) + 1)
                out[at:at] = other[start : start + rng.randint(1, 40)]
            case 6:  # lines change places
                lines = bytes(out).split(b"\n")
                i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
                lines[i], lines[j] = lines[j], lines[i]
                out[:] = b"\n".join(lines)
            case _:
                pass
    return bytes(out)


# .mercer files: the checksums are put right after most mutations, or nothing behind them would be reached.


def mutate_container(rng: random.Random, content: bytes, others: list[bytes]) -> bytes:
    """Changes to the header's values, its text, the arrays, or the bytes of the file."""
    try:
        header, arrays = taken_apart(content)
    except Exception:  # a file whose header is none
        return mutate_bytes(rng, content, others)
    kind = rng.randrange(10)
    if kind == 0:
        return mutate_bytes(rng, content, others)
    if kind == 1 and arrays:
        i = rng.randrange(len(arrays))
        size = len(arrays[i])
        arrays[i] = mutate_bytes(rng, arrays[i], others)
        if rng.random() < 0.9:
            arrays[i] = arrays[i].ljust(size, b"\0")[:size]
    elif kind == 2:
        (length,) = struct.unpack_from("<Q", content)
        return sealed_text(mutate_bytes(rng, content[8 : 8 + length], others), content[8 + length :])
    else:
        for _ in range(1 << rng.randrange(3)):
            change_value(rng, header)
    try:
        return put_together(header, arrays)
    except Exception:  # a list of arrays that is none
        return mutate_bytes(rng, content, others)


VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 3, 2**31, 2**63, 2**70, 0.0, 0.5, -0.5, 1e300, "", "ovr", "ovo", "linear"),
    *("crammer-singer", "precomputed", "rbf", "regularized", "SVC", "SVR", "LinearSVC", "NuSVC", "OneClassSVM", "SVDD"),
    *("RLSClassifier", "PegasosSVC", "QuantileSVR", "Pipeline", "StandardScaler", "predict", "__dict__", "<f4", "<i8"),
    *(
        "PCA",
        "ColumnTransformer",
        "OneHotEncoder",
        "VotingClassifier",
        "passthrough",
        "drop",
        "char",
        "filename",
        10**9,
    ),
    *("(a+)+", "english", "ignore", "coef_", "sag", "/etc/passwd", "http://localhost/", "l1", "auto", "drop_idx_"),
    *({"$": "function", "name": "log1p"}, {"$": "type", "name": "object", "instance": True}),
    *({"$": "slice", "items": [0, 2**40, 1]}, {"$": "estimator", "class": "SVC", "params": {}}),
    *(
        [],
        {},
        [1],
        [[1, 2]],
        {"$": "float", "value": "inf"},
        {"$": "float", "value": "nan"},
        {"$": "tuple", "items": []},
    ),
    *({"$": "kernel", "name": "Linear", "params": {}}, {"$": "strings", "object": True, "items": ["a", "b"]}),
    *({"$": "kernel", "name": "Precomputed", "params": {}}, {"$": "kernel", "name": "Spectrum", "params": {}}),
    {"$": "scalar", "dtype": "<f4", "value": 0.5},
]


def change_value(rng: random.Random, header: Any) -> None:
    """One place of a JSON value: replaced, removed, named otherwise, or overwritten with another place's value."""
    found = list(spots(header))
    if not found:
        return
    holder, key = rng.choice(found)
    kind = rng.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, dict):
        new = rng.choice(found)[1]
        holder[str(new) if rng.random() < 0.8 else str(rng.choice(VALUES))] = holder[key]
    elif kind in (2, 3):
        other, there = rng.choice(found)
        holder[key] = json.loads(json.dumps(other[there]))
    else:
        value = rng.choice(VALUES)
        holder[key] = json.loads(json.dumps(value))


def spots(value: Any) -> Any:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(items):
        yield value, key
        yield from spots(item)
