"""Reading and writing of models and data files."""
