"""Prevents pytest from rewriting assertions in Pilothouse's modules.

pytest rewrites every package that has a plugin. That would add ten seconds to a run that imports a whole server, and
Python 3.11 cannot rewrite modules that are imported in threads, such as the controllers.
"""

from __future__ import annotations

import sys


def skip_assertion_rewriting() -> None:
    """Exclude Pilothouse from rewriting. Already imported modules are unaffected. No-op for unknown pytest
    internals.
    """
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard("pilothouse")
