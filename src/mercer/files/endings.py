"""Endings of files that belong to other programs; known before any library is loaded."""

from typing import Final

# Files that hold tables or models for other programs; a LIBSVM text or model may have any other name.
OTHER_PROGRAMS: Final = (".pkl", ".pickle", ".joblib", ".json", ".jsonl", ".h5", ".hdf5", ".rds", ".rdata", ".zip")
TABLES: Final = (".csv", ".tsv", ".npz", ".parquet", ".pq")
OTHER_MODELS: Final = (*OTHER_PROGRAMS, ".pmml", ".skops", ".pt", ".keras", ".mlmodel", ".tflite", *TABLES)
