"""The text of an expression: positions as line and column, and errors as cel-go displays them."""

from __future__ import annotations

from bisect import bisect_right
from functools import cached_property

from pilothouse.machinery.dataclass import dataclass

NOWHERE = -1
"""Position of an error that belongs to no place in the text."""
_MOST_ERRORS = 100
_LONGEST_SNIPPET = 16384


@dataclass(frozen=True, slots=True)
class Issue:
    position: int
    """In code points from the start of the text, or NOWHERE."""
    message: str


class Source:
    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _line_starts(self) -> list[int]:
        starts, position = [0], self.text.find("\n")
        while position >= 0:
            starts.append(position + 1)
            position = self.text.find("\n", position + 1)
        return starts

    def location(self, position: int) -> tuple[int, int]:
        """Return line (from 1) and column (from 0); (-1, -1) for NOWHERE."""
        if position < 0:
            return (-1, -1)
        line = bisect_right(self._line_starts, position)
        return (line, position - self._line_starts[line - 1])

    def display(self, issues: list[Issue]) -> str:
        """Return all issues in the order of their positions, at most a hundred."""
        shown = sorted(issues[:_MOST_ERRORS], key=lambda issue: self.location(issue.position))
        lines = [self._display(issue) for issue in shown]
        if len(issues) > _MOST_ERRORS:
            lines.append(f"{len(issues) - _MOST_ERRORS} more errors were truncated")
        return "\n".join(lines)

    def _display(self, issue: Issue) -> str:
        line, column = self.location(issue.position) if self.text or issue.position < 0 else (1, -1)
        head = f"ERROR: <input>:{line}:{column + 1}: {issue.message}"
        if line < 0 or not self.text:
            return head
        start = self._line_starts[line - 1]
        end = self._line_starts[line] - 1 if line < len(self._line_starts) else len(self.text)
        snippet = self.text[start:end].replace("\t", " ")
        if len(snippet.encode()) > _LONGEST_SNIPPET:
            return head
        dots = "".join("." if char < "\x80" else "\uff0e" for char in snippet[:column])
        mark = "\uff3e" if snippet[column : column + 1] > "\x7f" else "^"
        return f"{head}\n | {snippet}\n | {dots}{mark}"
