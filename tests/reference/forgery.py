"""Files taken apart and put together again, with checksums and offsets that are right, whatever they hold.

A file is a document {"content": ..., "arrays": [{"name", "dtype", "shape", "order"}, ...]} and the bytes of each array.
"""

import hashlib
import json
import math
import struct

NAMES = dict(
    zip(
        ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8"),
        ("BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F32", "F64"),
        strict=True,
    )
)


def taken_apart(content):
    """The document, and the bytes of its arrays."""
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__")
    kept = json.loads(metadata["arrays"])
    dtypes = {name: dtype for dtype, name in NAMES.items()}
    entries, arrays = [], []
    for name, item in header.items():
        order = kept[name]["order"]
        shape = item["shape"] if order == "C" else item["shape"][::-1]
        entries.append({"name": name, "dtype": dtypes[item["dtype"]], "shape": shape, "order": order})
        start, stop = item["data_offsets"]
        arrays.append(content[8 + length + start : 8 + length + stop])
    return {"content": json.loads(metadata["content"]), "arrays": entries}, arrays


def put_together(document, arrays):
    """The bytes of a file; names, shapes and types are whatever the document says."""
    tensors, kept, end = {}, {}, 0
    for entry, data in zip(document["arrays"], arrays, strict=True):
        shape = entry["shape"]
        if entry["order"] == "F" and isinstance(shape, list):
            shape = shape[::-1]
        dtype = entry["dtype"]
        told = NAMES.get(dtype, dtype) if isinstance(dtype, str) else dtype
        tensors[str(entry["name"])] = {"dtype": told, "shape": shape, "data_offsets": [end, end + len(data)]}
        kept[str(entry["name"])] = {"order": entry["order"], "sha256": hashlib.sha256(data).hexdigest()}
        end += len(data)
    metadata = {"content": as_json(document["content"]), "arrays": json.dumps(kept)}
    return sealed(metadata, tensors, b"".join(arrays))


def as_json(value):
    """The JSON text of a value of any depth; json.dumps cannot go as deep as a forger."""
    parts, left = [], [(False, value)]  # what comes last is written first
    while left:
        is_text, one = left.pop()
        if is_text:
            parts.append(one)
        elif isinstance(one, dict):
            items = [[(True, ","), (True, json.dumps(str(name)) + ":"), (False, inner)] for name, inner in one.items()]
            left += [(True, "}"), *reversed([part for item in items for part in item][1:]), (True, "{")]
        elif isinstance(one, list | tuple):
            items = [part for inner in one for part in ((True, ","), (False, inner))]
            left += [(True, "]"), *reversed(items[1:]), (True, "[")]
        else:
            parts.append(json.dumps(one))
    return "".join(parts)


def sealed(metadata, tensors, payload=b"", version="1"):
    """A file with these metadata and tensors, and the header's checksum right."""
    start = {"format": "mercer", "version": version, "sha256": "0" * 64}
    text = json.dumps({"__metadata__": start | metadata, **tensors}, separators=(",", ":")).encode()
    return sealed_text(text, payload)


def sealed_text(text, payload=b""):
    """A file with this text for a header, if that begins as a header does; its checksum is put right."""
    text += b" " * (-(len(text) + 8) % 64)
    at = text.find(b'"sha256":"') + len(b'"sha256":"')
    blank = text[:at] + b"0" * 64 + text[at + 64 :]
    text = text[:at] + hashlib.sha256(blank).hexdigest().encode() + text[at + 64 :]
    return struct.pack("<Q", len(text)) + text + payload


def forge(content, change):
    """The file with ``change`` applied to its document."""
    document, arrays = taken_apart(content)
    change(document)
    return put_together(document, arrays)


def size_of(entry):
    return int(entry["dtype"][-1]) * math.prod(entry["shape"])


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
