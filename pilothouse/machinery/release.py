"""Emulated Kubernetes release."""

from __future__ import annotations

MAJOR, MINOR, PATCH = "1", "36", "4"
GIT_VERSION = f"v{MAJOR}.{MINOR}.{PATCH}"
