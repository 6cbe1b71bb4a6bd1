"""Policies: expressions that decide about writes or change them, and the bindings that say where they hold."""
