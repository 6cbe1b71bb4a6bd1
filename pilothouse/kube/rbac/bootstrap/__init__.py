"""Bootstrap roles and bindings: tables and reconciliation."""
