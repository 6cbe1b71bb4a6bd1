"""Checkpoints of long work: points at which a thread may pause or be aborted.

Code that traverses data of arbitrary length calls `checkpoint` once per element. A call costs about ten nanoseconds
unless a callback is installed. On the event loop a checkpoint never blocks.
"""

from __future__ import annotations

from collections.abc import Callable

_attend: Callable[[], None] | None = None


def checkpoint() -> None:
    """Pause while smaller work runs. Raises an exception to abort the work."""
    if _attend is not None:
        _attend()


def ask_for_attention(attend: Callable[[], None] | None) -> None:
    """Call `attend` at every checkpoint in every thread; None removes the callback."""
    global _attend
    _attend = attend
