"""The roles and bindings that every cluster starts with: tables of them, and what keeps them in place."""
