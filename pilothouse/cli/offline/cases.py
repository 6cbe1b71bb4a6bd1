"""Cases: what is asked of a server, and what its policies and rules are expected to say."""

from __future__ import annotations

import re
from typing import Any

from pilothouse.apiserver.authn.user import User
from pilothouse.cli.offline.manifests import Manifest
from pilothouse.machinery.dataclass import dataclass


class CaseError(Exception):
    """The file says something that no case can be made of. `line` is where."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(frozen=True, slots=True)
class Expectation:
    """`message` and `warnings` are parts of what is said, or between slashes regular expressions."""

    allowed: bool
    message: str = ""
    warnings: tuple[str, ...] = ()
    object: Any = None
    """Fields that the object has after mutation."""


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    name: str
    line: int
    operation: str
    user: User
    expect: Expectation
    object: Manifest | None = None
    old: Manifest | None = None
    params: tuple[Manifest, ...] = ()
    subresource: str = ""

    @property
    def subject(self) -> Manifest:
        """The object that the request is about."""
        found = self.object or self.old
        assert found is not None
        return found


@dataclass(frozen=True, slots=True)
class CaseFile:
    file: str
    stage: tuple[Manifest, ...]
    """What is there before the cases: definitions, policies with their bindings, and what is given."""
    cases: tuple[Case, ...]


def says(expected: str, said: str) -> bool:
    """Whether the text has the expected part, or matches what stands between slashes."""
    if len(expected) > 1 and expected.startswith("/") and expected.endswith("/"):
        return re.search(expected[1:-1], said) is not None
    return expected in said
