"""The one way from samples to a fitted machine."""
