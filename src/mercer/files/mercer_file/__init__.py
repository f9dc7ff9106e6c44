"""The ``.mercer`` file format: container with checksums, plain values, and models."""
