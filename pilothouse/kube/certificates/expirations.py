"""How long the certificates of pods are good for, in seconds."""

from __future__ import annotations

SHORTEST = 60 * 60
LONGEST_OF_KUBERNETES = 24 * 60 * 60
"""For signers of the Kubernetes project."""
LONGEST = 91 * 24 * 60 * 60
