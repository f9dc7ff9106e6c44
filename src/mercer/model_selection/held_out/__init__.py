"""Decision values of held-out samples: folds on one stored K, and exact leave-one-out."""
