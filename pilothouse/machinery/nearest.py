"""Suggestions for misspelt flags, commands and choices."""

from __future__ import annotations

from collections.abc import Iterable

_SIMILARITY = 0.7
"""Lower bound of difflib's ratio: below it a suggestion misleads more often than it helps."""
_LONGEST = 64
"""Characters. Longer words are no misspelt names, and the comparison is quadratic in their length."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean NAME?` for the known name that is closest to the word, or an empty string.

    >>> did_you_mean("--secure-prot", ["--secure-port", "--data-dir"])
    '; did you mean --secure-port?'
    """
    from difflib import get_close_matches  # imported late: only a refused command line needs difflib

    if len(word) > _LONGEST:
        return ""
    closest = get_close_matches(word, sorted(set(known)), n=1, cutoff=_SIMILARITY)
    return f"; did you mean {closest[0]}?" if closest else ""
