"""File extensions of other programs; imports no library."""

from typing import Final

# Extensions of tables and models of other programs; LIBSVM text and models may have any other extension.
OTHER_PROGRAMS: Final = (".pkl", ".pickle", ".joblib", ".json", ".jsonl", ".h5", ".hdf5", ".rds", ".rdata", ".zip")
TABLES: Final = (".csv", ".tsv", ".npz", ".parquet", ".pq")
OTHER_MODELS: Final = (*OTHER_PROGRAMS, ".pmml", ".skops", ".pt", ".keras", ".mlmodel", ".tflite", *TABLES)
