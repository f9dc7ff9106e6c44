"""Engines other than this machine's core; each is imported when its own type of array or its device is met."""
