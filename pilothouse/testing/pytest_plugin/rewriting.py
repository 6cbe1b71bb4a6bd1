"""Keeps pytest from rewriting the assertions of the server's own modules.

It does so for every package that has a plugin. A run that imports a whole server would take ten seconds longer, and
controllers are imported in threads, in which Python 3.11 cannot rewrite.
"""

from __future__ import annotations

import sys


def rewrite_no_module_of_ours() -> None:
    """From now on. What was imported before stays as it is; where pytest has no such list, nothing happens."""
    for finder in sys.meta_path:
        marked = getattr(finder, "_must_rewrite", None)
        if isinstance(marked, set):
            marked.discard("pilothouse")
