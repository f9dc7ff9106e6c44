"""Tables as they come: every column of a frame, whatever it holds, as numbers that a kernel machine can learn from."""
