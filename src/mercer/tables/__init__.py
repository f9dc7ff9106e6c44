"""Tables with columns of any kind: read from files or frames, and encoded as numbers for a kernel machine."""
