"""Field management: every write records who owns which field, and applies are merged by it."""
