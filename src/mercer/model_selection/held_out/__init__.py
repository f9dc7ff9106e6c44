"""What machines say of samples that they were not trained on: folds on one stored K, and exact leave-one-out."""
