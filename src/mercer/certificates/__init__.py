"""Every proof; nothing else builds a Certificate."""
