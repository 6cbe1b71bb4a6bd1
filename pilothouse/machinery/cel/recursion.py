"""Room for recursion over deeply nested expressions.

An expression may be nested 250 times in each rule of the grammar, and macros multiply that. All code that walks trees
is pure Python, whose frames live on the heap, so that a higher limit for deep trees costs no C stack.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock

SHALLOW = 120
"""Tokens of an expression that certainly needs no more than Python's usual limit."""
_ROOM = 50_000
_lock = Lock()
_users = 0
_usual = 0


@contextmanager
def room_for_recursion() -> Iterator[None]:
    """Raise the recursion limit until the last user is done."""
    global _users, _usual
    with _lock:
        if _users == 0:
            _usual = min(sys.getrecursionlimit(), _usual or sys.getrecursionlimit())
            sys.setrecursionlimit(_usual + _ROOM)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                # It fails if this thread's own stack is deeper than that; the next user then lowers the limit.
                with suppress(RecursionError):
                    sys.setrecursionlimit(_usual)
