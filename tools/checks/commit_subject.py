"""Check the subject of a commit message: `area: imperative verb …`, as CONTRIBUTING.md describes it.

    python -m tools.checks.commit_subject .git/COMMIT_EDITMSG

Git calls it as the hook `commit-msg`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 72
_FORM = re.compile(r"^(?P<area>[a-z0-9][a-z0-9/_.-]*): (?P<verb>\S+)(?P<rest>( \S+)+)$")
_MADE_BY_GIT = ("Merge ", 'Revert "', "fixup! ", "squash! ", "amend! ")
_NOT_IMPERATIVE = re.compile(r"^(?!bring|embed|ping|ring|shed|string)\w+((?<!e)ed|(?<![su])s|ing)$")
"""added, adds, adding; not need, pass, focus."""


def faults_of(message: str) -> Iterator[str]:
    """Yield what is wrong with a commit message; git's own subjects (merges, reverts, fixups) are accepted."""
    lines = [line for line in message.partition("\n# ------------------------ >8")[0].splitlines() if line[:1] != "#"]
    subject = lines[0] if lines else ""
    if subject.startswith(_MADE_BY_GIT):
        return
    if len(subject) > LONGEST:
        yield f"the subject has {len(subject)} characters; shorten it to {LONGEST}, and use the body for the rest"
    if len(lines) > 1 and lines[1].strip():
        yield "the second line must be empty"
    found = _FORM.match(subject)
    if found is None:
        yield "the subject must be `area: imperative verb …`, for example `cli: suggest the nearest flag`"
        return
    if not found["verb"][0].islower() or _NOT_IMPERATIVE.match(found["verb"]):
        yield f"{found['verb']!r} must be an imperative verb in lower case: `add`, not `added`, `adds` or `Add`"
    if subject.endswith("."):
        yield "the subject must not end with a full stop"
    if ";" in subject:
        yield "a semicolon joins two topics; make a commit for each topic"


def main() -> int:
    faults = list(faults_of(Path(sys.argv[1]).read_text()))
    for fault in faults:
        print(f"commit message: {fault}", file=sys.stderr)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
