"""API priority and fairness: which requests may run at once, and whose turn it is when not all may."""
