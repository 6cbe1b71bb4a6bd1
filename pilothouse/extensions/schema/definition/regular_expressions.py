"""Errors of Go's regexp package. Python's parser is more lenient.

Go has neither look-around nor back references, and reports the first error with its context.
"""

from __future__ import annotations

import re

from pilothouse.machinery.cel.patterns import refusal

_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_GROUP_START = re.compile(r"\(\?(?:P<(?P<name>[^>]*)>|<(?P<plain>[^>=!][^>]*)>|(?P<flags>[imsU]*(?:-[imsU]+)?)[:)])")
_SIMPLE_ESCAPES = set("AbBCdDfnrsStvwWzaQE")
_LARGEST_REPEAT = 1000


class _Mistake(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(f"error parsing regexp: {code}: `{text}`")


def go_regexp_error(pattern: str) -> str:
    """Return Go's error message; empty for valid expressions."""
    try:
        _PatternScanner(pattern).run()
    except _Mistake as mistake:
        return str(mistake)
    return refusal(pattern)


class _PatternScanner:
    """A single left-to-right scan of an expression."""

    def __init__(self, pattern: str) -> None:
        self.text = pattern
        self.at = 0
        self.depth = 0
        self.repeatable = False
        """Whether the last element can be repeated."""
        self.repeated = ""
        """The last repetition operator, if any."""

    def run(self) -> None:
        while self.at < len(self.text):
            self._step(self.text[self.at])
        if self.depth:
            raise _Mistake("missing closing )", self.text)

    def _step(self, char: str) -> None:
        match char:
            case "(":
                self._open()
            case ")":
                if self.depth == 0:
                    raise _Mistake("unexpected )", self.text)
                self.depth -= 1
                self._done(1)
            case "[":
                start, at = self.at, self.at + 1
                at += self.text.startswith("^", at)
                first = True
                while first or not self.text.startswith("]", at):
                    if at >= len(self.text):
                        raise _Mistake("missing closing ]", self.text[start:])
                    at = self._read_range(at)
                    first = False
                self._done(at + 1 - start)
            case "\\":
                self._done(self._escape_length(self.at))
            case "*" | "+" | "?":
                self._repeat(char)
            case "{" if match := _REPEAT.match(self.text, self.at):
                self._repeat(match[0])
            case "|" | "^" | "$":
                self._done(1, repeatable=char != "|")
            case _:
                self._done(1)

    def _done(self, length: int, *, repeatable: bool = True) -> None:
        self.at += length
        self.repeatable, self.repeated = repeatable, ""

    def _open(self) -> None:
        length = 1
        if self.text.startswith("(?", self.at):
            match = _GROUP_START.match(self.text, self.at)
            if match is None:
                raise self._bad_group()
            name = match["name"] if match["name"] is not None else match["plain"]
            if name is not None and not re.fullmatch(r"\w+", name):
                raise _Mistake("invalid named capture", match[0])
            length = len(match[0])
            if match[0].endswith(")"):
                self._done(length, repeatable=False)
                return
        self.depth += 1
        self._done(length, repeatable=False)

    def _bad_group(self) -> _Mistake:
        rest = self.text[self.at :]
        if rest.startswith(("(?P<", "(?<")) and not rest.startswith(("(?<=", "(?<!")):
            return _Mistake("invalid named capture", rest)
        match = re.match(r"\(\?(?:<[=!]|[imsU-]*.?)", rest)
        return _Mistake("invalid or unsupported Perl syntax", match[0] if match else rest)

    def _repeat(self, operator: str) -> None:
        end = self.at + len(operator)
        lazy = self.text[end : end + 1] == "?"
        whole = operator + ("?" if lazy else "")
        if self.repeated:
            raise _Mistake("invalid nested repetition operator", self.repeated + whole)
        if not self.repeatable:
            raise _Mistake("missing argument to repetition operator", whole)
        self._check_counts(operator)
        self._done(len(whole))
        self.repeated = whole

    def _check_counts(self, operator: str) -> None:
        match = _REPEAT.fullmatch(operator)
        if match is None:
            return
        low, high = int(match[1]), int(match[2]) if match[2] else -1
        if low > _LARGEST_REPEAT or high > _LARGEST_REPEAT or (0 <= high < low):
            raise _Mistake("invalid repeat count", operator)

    def _escape_length(self, start: int) -> int:
        rest = self.text[start:]
        if len(rest) < 2:
            raise _Mistake("trailing backslash at end of expression", "")
        char = rest[1]
        if char == "Q":
            end = rest.find("\\E")
            return len(rest) if end < 0 else end + 2
        if char in "pP":
            match = re.match(r"\\[pP](?:\{\^?[A-Za-z_]+\}|[A-Z])", rest)
            if match is None:
                raise _Mistake("invalid character class range", rest[: rest.find("}") + 1 or 3])
            return len(match[0])
        if char == "x":
            match = re.match(r"\\x(?:[0-9a-fA-F]{2}|\{[0-9a-fA-F]{1,8}\})", rest)
            if match is None:
                raise _Mistake("invalid escape sequence", rest[: 3 if len(rest) > 2 else 2])
            return len(match[0])
        if match := re.match(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})", rest):
            return len(match[0])
        if char in _SIMPLE_ESCAPES or (not char.isalnum() and char.isascii()):
            return 2
        raise _Mistake("invalid escape sequence", rest[:2])

    def _read_range(self, at: int) -> int:
        if named := re.match(r"\[:(\^?)(\w*):\]", self.text[at:]):
            if named[2] not in _POSIX:
                raise _Mistake("invalid character class range", named[0])
            return at + len(named[0])
        low, end = self._read_single(at)
        if not self.text.startswith("-", end) or self.text.startswith("-]", end) or end + 1 >= len(self.text):
            return end
        high, after = self._read_single(end + 1)
        if low and high and high < low:
            raise _Mistake("invalid character class range", self.text[at:after])
        return after

    def _read_single(self, at: int) -> tuple[str, int]:
        if self.text[at] != "\\":
            return self.text[at], at + 1
        length = self._escape_length(at)
        plain = self.text[at + 1] if length == 2 and not self.text[at + 1].isalnum() else ""
        return plain, at + length


_POSIX = {"alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space", "upper"}
_POSIX |= {"word", "xdigit"}
