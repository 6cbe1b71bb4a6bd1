"""How long tests wait for an event that must come.

The limit exists to end a hang, so no machine may be slow enough to reach it: a test must never fail because other
programs keep the processor busy. pytest's own limit for a whole test (`timeout` in pyproject.toml) is longer still.
"""

from __future__ import annotations

PATIENCE = 300
"""Seconds."""

KUBECTL_TIMEOUT = f"--timeout={PATIENCE}s"
"""The flag of `kubectl wait`, `delete`, `drain` and `rollout status`."""
