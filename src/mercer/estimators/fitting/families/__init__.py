"""What estimators of one family share: their tasks, and what they conclude from the solutions."""
