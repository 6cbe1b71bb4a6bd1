"""Adjusts pytest to a server that runs in a thread beside the tests, and that imports modules while they run."""

from __future__ import annotations

import logging
import sys
from typing import Any


def skip_assertion_rewriting() -> None:
    """Exclude Pilothouse from rewriting. Already imported modules are unaffected. No-op for unknown pytest
    internals.

    pytest rewrites every package that has a plugin. That would add ten seconds to a run that imports a whole server,
    and Python 3.11 cannot rewrite modules that are imported in threads, such as the controllers.
    """
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard("pilothouse")


def let_threads_add_loggers() -> None:
    """Let a thread create a logger while pytest iterates over all loggers, as pytest 9.2 does before each test.

    An import in the thread of a server creates loggers. Without this, pytest may end a test with "dictionary changed
    size during iteration".
    """
    manager = logging.Logger.manager
    if not isinstance(manager.loggerDict, _Loggers):
        with logging._lock:  # type: ignore[attr-defined]  # the lock of getLogger has no public name
            manager.loggerDict = _Loggers(manager.loggerDict)


class _Loggers(dict[str, Any]):
    """The loggers of the process by name. Iteration over its values goes over a copy, which is made atomically."""

    def values(self) -> Any:
        return list(super().values())
