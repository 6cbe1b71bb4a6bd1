"""What a version of etcd can be trusted with."""

from __future__ import annotations

import re

# Before these, a requested progress notification could overtake events (fixed in 3.4.25 and 3.5.8) or never come
# (fixed in 3.4.31 and 3.5.13).
_FIXED = {(3, 4): 31, (3, 5): 13}


def answers_progress_requests(version: str) -> bool:
    """Whether a watch can be asked how far it has come, and answers rightly."""
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if match is None:
        return False
    major, minor, patch = map(int, match.groups())
    return (major, minor) > max(_FIXED) or patch >= _FIXED.get((major, minor), patch + 1)
