"""`mercer.easy`: train a model on a table, and report its accuracy, the columns that matter and what to try next."""
