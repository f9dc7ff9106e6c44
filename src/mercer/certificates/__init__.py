"""Every proof; nothing else builds a Certificate."""

from mercer.certificates import lagrangian as lagrangian
