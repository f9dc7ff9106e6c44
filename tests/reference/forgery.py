"""Changes to the header of a .mercer file, with its checksums put right again."""

import hashlib
import json
import struct

import numpy as np


def forge(content, change):
    """The file with ``change`` applied to its header's content, arrays and checksums put right again."""
    length = struct.unpack_from("<Q", content, 12)[0]
    header = json.loads(content[52 : 52 + length])
    arrays = [content[entry["offset"] :] for entry in header["arrays"]]
    sizes = [np.dtype(e["dtype"]).itemsize * int(np.prod(e["shape"], dtype=int)) for e in header["arrays"]]
    change(header)
    for _ in range(4):  # until the offsets' own digits settle
        text = json.dumps(header).encode()
        end = 52 + len(text)
        for entry, size in zip(header["arrays"], sizes, strict=True):
            entry["offset"] = -(-end // 64) * 64
            end = entry["offset"] + size
    data = bytearray(struct.pack("<8sIQ32s", content[:8], 1, len(text), hashlib.sha256(text).digest()) + text)
    for entry, bytes_, size in zip(header["arrays"], arrays, sizes, strict=True):
        data = data.ljust(entry["offset"], b"\0") + bytes_[:size]
    return bytes(data)


def places(value, at=()):
    """Every place in a JSON value, as the keys that lead there."""
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*at, key))


def put(value, at, new):
    for key in at[:-1]:
        value = value[key]
    value[at[-1]] = new
