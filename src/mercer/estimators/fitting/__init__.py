"""The shared fit and predict pipeline, the families of machines built on it, and reports on fitted machines."""
