"""Service accounts: the default one of each namespace, and the tokens that are kept in secrets."""
