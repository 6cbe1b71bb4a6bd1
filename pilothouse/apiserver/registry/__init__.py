"""The registry: what can be done with a resource, its rules (Strategy), and the store that carries them out."""
