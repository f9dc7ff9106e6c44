"""The one way of every fit: samples in, problems solved and certified, fitted attributes out."""
