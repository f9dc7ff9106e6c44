"""Base classes of the families of machines: their tasks and the attributes they derive from the solutions."""
