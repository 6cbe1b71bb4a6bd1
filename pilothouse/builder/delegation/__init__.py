"""Who asks, and whether they may: both are left to the cluster that the server is part of."""
