"""Checkpoints of long work: places at which a thread may pause, or be told that nobody wants its work any more.

Code that goes through data of any length calls `checkpoint` once for every element. The call costs some ten
nanoseconds, unless somebody asked for attention; on the event loop it never waits.
"""

from __future__ import annotations

from collections.abc import Callable

_attend: Callable[[], None] | None = None


def checkpoint() -> None:
    """Wait while smaller work runs. Raises whatever ends the work."""
    if _attend is not None:
        _attend()


def ask_for_attention(attend: Callable[[], None] | None) -> None:
    """Call `attend` at every checkpoint, in every thread; None: no longer."""
    global _attend
    _attend = attend
