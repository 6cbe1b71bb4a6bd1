"""Nodes: the machines that pods run on."""
