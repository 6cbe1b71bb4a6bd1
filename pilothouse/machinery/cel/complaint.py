"""A mistake at one place of an expression, printed as cel-go does."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Complaint:
    position: int
    """In characters from the start of the source."""
    problem: str

    def within(self, source: str) -> str:
        line_start = source.rfind("\n", 0, self.position) + 1
        line, column = source.count("\n", 0, self.position) + 1, self.position - line_start
        text = source[line_start:].partition("\n")[0]
        return f"ERROR: <input>:{line}:{column + 1}: {self.problem}\n | {text}\n | {'.' * column}^"
