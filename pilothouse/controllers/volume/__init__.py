"""Volume controllers: binding, expansion, ephemeral claims, and protection against deletion in use."""
