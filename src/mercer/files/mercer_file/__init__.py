"""The ``.mercer`` file: bytes with checksums, plain values, models, and what a file may set."""
