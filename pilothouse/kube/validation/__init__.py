"""Rules that several groups share, by topic."""
