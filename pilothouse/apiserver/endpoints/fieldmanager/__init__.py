"""Field management: every write records the owner of each field, and applies are merged by ownership."""
