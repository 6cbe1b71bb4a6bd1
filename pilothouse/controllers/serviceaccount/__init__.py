"""Service account controllers: default accounts and token secrets."""
