"""How long events are kept, unless --event-ttl says otherwise."""

from __future__ import annotations

DEFAULT_TTL = 3600
"""Seconds."""
