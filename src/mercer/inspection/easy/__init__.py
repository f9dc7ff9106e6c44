"""From a table to an answer: how good a model is on rows it has not seen, what matters to it, and what to try next."""
