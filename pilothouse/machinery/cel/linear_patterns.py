"""Regular expressions in RE2's syntax without RE2: a simulation of a nondeterministic automaton (Pike's).

Time is linear in the text, whatever the pattern: every character is looked at once by each instruction at most. The
leftmost match wins, and among matches at one place the one that a backtracking engine would find first.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

_MOST_INSTRUCTIONS: Final = 100_000
_MOST_REPEATS: Final = 1000
_DEEPEST: Final = 200

Ranges: TypeAlias = tuple[tuple[int, int], ...]
Test: TypeAlias = Callable[[str], bool]
Fragment: TypeAlias = list["Instruction"]
Instruction: TypeAlias = tuple[str, object, object]
"""("char", test, None), ("split", offset, offset), ("jump", offset, None), ("assert", kind, None) or ("match", …);
offsets are relative, and of a split the first is tried first."""

_PERL: Final = {
    "d": ((48, 57),),
    "w": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "s": ((9, 10), (12, 13), (32, 32)),
}
_POSIX: Final = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": ((48, 57),),
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": ((48, 57), (65, 90), (95, 95), (97, 122)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_REPEAT: Final = re.compile(r"\{(\d+)(?:(,)(\d*))?\}", re.ASCII)
_FLAGS: Final = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAMED: Final = re.compile(r"\(\?P?<(\w+)>", re.ASCII)


class InvalidPattern(Exception):
    """The message is Go's."""


class LinearPattern:
    """A compiled pattern. Raises InvalidPattern when it is made from something else."""

    def __init__(self, pattern: str) -> None:
        self._program = [*_Parser(pattern).whole(), ("match", None, None)]
        if len(self._program) > _MOST_INSTRUCTIONS:
            raise InvalidPattern(f"expression too large: `{pattern}`")

    def matches(self, text: str) -> bool:
        return self._search(text, 0) is not None

    def first(self, text: str) -> str:
        """Return the first match, or an empty text."""
        found = self._search(text, 0)
        return text[found[0] : found[1]] if found else ""

    def every(self, text: str) -> Iterator[str]:
        """Yield all matches that do not overlap. An empty match directly after another match does not count."""
        position, last = 0, -1
        while position <= len(text) and (found := self._search(text, position)) is not None:
            start, end = found
            if end > start or start != last:
                yield text[start:end]
                last = end
            position = end if end > start else end + 1

    def _search(self, text: str, start: int) -> tuple[int, int] | None:
        threads: list[tuple[int, int]] = []
        found: tuple[int, int] | None = None
        for position in range(start, len(text) + 1):
            if found is None:
                seen = {pc for pc, _ in threads}
                self._follow(threads, seen, 0, position, text, position)
            elif not threads:
                break
            char = text[position] if position < len(text) else ""
            following: list[tuple[int, int]] = []
            seen = set()
            for pc, began in threads:
                kind, test, _ = self._program[pc]
                if kind == "match":
                    found = (began, position)
                    break  # threads after this one have lower priority
                if char and test(char):  # type: ignore[operator]
                    self._follow(following, seen, pc + 1, began, text, position + 1)
            threads = following
        return found

    def _follow(
        self, threads: list[tuple[int, int]], seen: set[int], pc: int, began: int, text: str, position: int
    ) -> None:
        """Add all threads that `pc` leads to without reading a character, by priority."""
        waiting = [pc]
        while waiting:
            at = waiting.pop()
            if at in seen:
                continue
            seen.add(at)
            kind, one, other = self._program[at]
            if kind == "jump":
                waiting.append(at + one)  # type: ignore[operator]
            elif kind == "split":
                waiting += (at + other, at + one)  # type: ignore[operator]
            elif kind != "assert":
                threads.append((at, began))
            elif _holds(str(one), text, position):
                waiting.append(at + 1)


def _holds(kind: str, text: str, position: int) -> bool:
    if kind in ("start", "end"):
        return position == (0 if kind == "start" else len(text))
    before = text[position - 1] if position > 0 else ""
    after = text[position] if position < len(text) else ""
    if kind in ("line start", "line end"):
        return (before if kind == "line start" else after) in ("", "\n")
    is_boundary = _is_word(before) is not _is_word(after)
    return is_boundary is (kind == "boundary")


def _is_word(char: str) -> bool:
    return bool(char) and char.isascii() and (char.isalnum() or char == "_")


def _within(ranges: Ranges, *, negated: bool, folded: bool) -> Test:
    def test(char: str) -> bool:
        forms = {char, char.lower(), char.upper()} if folded else (char,)
        inside = any(low <= ord(each) <= high for each in forms if len(each) == 1 for low, high in ranges)
        return inside is not negated

    return test


class _Parser:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._next = 0
        self._flags: frozenset[str] = frozenset()
        self._depth = 0

    def whole(self) -> Fragment:
        fragment = self._alternatives()
        if self._next < len(self._pattern):
            raise InvalidPattern(f"unexpected ): `{self._pattern}`")
        return fragment

    def _peek(self, width: int = 1) -> str:
        return self._pattern[self._next : self._next + width]

    def _alternatives(self) -> Fragment:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise InvalidPattern(f"expression nests too deeply: `{self._pattern}`")
        options = [self._sequence()]
        while self._peek() == "|":
            self._next += 1
            options.append(self._sequence())
        self._depth -= 1
        fragment = options.pop()
        for option in reversed(options):
            fragment = [
                ("split", 1, len(option) + 2),
                *option,
                ("jump", len(fragment) + 1, None),
                *fragment,
            ]
        return fragment

    def _sequence(self) -> Fragment:
        fragment: Fragment = []
        while self._next < len(self._pattern) and self._peek() not in ("|", ")"):
            start = self._next
            if self._peek(2) == "\\Q":
                fragment += self._quoted()
                continue
            fragment += self._repeated(self._atom(), start)
            if len(fragment) > _MOST_INSTRUCTIONS:
                raise InvalidPattern(f"expression too large: `{self._pattern}`")
        return fragment

    def _quoted(self) -> Fragment:
        end = self._pattern.find("\\E", self._next)
        text = self._pattern[self._next + 2 : end if end >= 0 else len(self._pattern)]
        self._next = end + 2 if end >= 0 else len(self._pattern)
        return [self._literal(ord(char)) for char in text]

    def _literal(self, code: int) -> Instruction:
        return ("char", _within(((code, code),), negated=False, folded="i" in self._flags), None)

    def _repeated(self, fragment: Fragment, start: int) -> Fragment:
        repeated_from = -1
        while True:
            operator_at = self._next
            counts = self._counts()
            if counts is None:
                return fragment
            if repeated_from >= 0:
                operator = self._pattern[repeated_from : self._next]
                raise InvalidPattern(f"invalid nested repetition operator: `{operator}`")
            least, most = counts
            greedy = "U" not in self._flags
            if self._peek() == "?":
                self._next += 1
                greedy = not greedy
            if (most is not None and (most > _MOST_REPEATS or least > most)) or least > _MOST_REPEATS:
                raise InvalidPattern(f"invalid repeat count: `{self._pattern[operator_at : self._next]}`")
            fragment = self._copies(fragment, least, most, greedy=greedy)
            repeated_from = operator_at

    def _counts(self) -> tuple[int, int | None] | None:
        """Read a repetition operator: (least, most)."""
        char = self._peek()
        if char and char in "*+?":
            self._next += 1
            return {"*": (0, None), "+": (1, None), "?": (0, 1)}[char]
        found = _REPEAT.match(self._pattern, self._next) if char == "{" else None
        if found is None:
            return None
        self._next = found.end()
        least = min(int(found[1][:9]), 10**6)
        if not found[2]:
            return least, least
        return least, min(int(found[3][:9]), 10**6) if found[3] else None

    def _copies(self, fragment: Fragment, least: int, most: int | None, *, greedy: bool) -> Fragment:
        if len(fragment) * max(least, most or 0) > _MOST_INSTRUCTIONS:
            raise InvalidPattern(f"expression too large: `{self._pattern}`")
        size = len(fragment)
        made = fragment * least
        if most is None:
            enter, leave = (1, size + 2) if greedy else (size + 2, 1)
            return [*made, ("split", enter, leave), *fragment, ("jump", -size - 1, None)]
        optional = most - least
        for left in range(optional, 0, -1):
            skip = left * (size + 1)
            made += [("split", 1, skip) if greedy else ("split", skip, 1), *fragment]
        return made

    def _atom(self) -> Fragment:
        char = self._peek()
        if char in "*+?" or (char == "{" and _REPEAT.match(self._pattern, self._next)):
            raise InvalidPattern(f"missing argument to repetition operator: `{char}`")
        if char == "(":
            return self._group()
        if char == "[":
            return [self._class()]
        if char == "\\":
            return [self._escape()]
        self._next += 1
        if char == ".":
            test = (lambda each: True) if "s" in self._flags else (lambda each: each != "\n")
            return [("char", test, None)]
        if char in "^$":
            name = "start" if char == "^" else "end"
            return [("assert", f"line {name}" if "m" in self._flags else name, None)]
        return [self._literal(ord(char))]

    def _group(self) -> Fragment:
        start, outer = self._next, self._flags
        if self._peek(2) == "(?":
            named = _NAMED.match(self._pattern, start)
            flags = _FLAGS.match(self._pattern, start)
            if named is None and flags is None:
                raise InvalidPattern(f"invalid or unsupported Perl syntax: `{self._pattern[start : start + 3]}`")
            found = named or flags
            assert found is not None
            self._next = found.end()
            if flags is not None and named is None:
                self._flags = (outer | set(flags[1])) - set(flags[2] or "")
                if flags[3] == ")":
                    return []
        else:
            self._next += 1
        fragment = self._alternatives()
        if self._peek() != ")":
            raise InvalidPattern(f"missing closing ): `{self._pattern}`")
        self._next += 1
        self._flags = outer
        return fragment

    def _escape(self) -> Instruction:
        char = self._pattern[self._next + 1 : self._next + 2]
        if not char:
            raise InvalidPattern("trailing backslash at end of expression: ``")
        asserted = {"A": "start", "z": "end", "b": "boundary", "B": "no boundary"}.get(char)
        if asserted is not None:
            self._next += 2
            return ("assert", asserted, None)
        test = self._class_escape()
        return ("char", test, None) if test is not None else self._literal(self._code())

    def _class_escape(self) -> Test | None:
        r"""Read \d, \W, \pL and their like; None for all else."""
        char = self._pattern[self._next + 1 : self._next + 2]
        if char and char.lower() in _PERL:
            self._next += 2
            return _within(_PERL[char.lower()], negated=char.isupper(), folded=False)
        if char not in ("p", "P"):
            return None
        start = self._next
        end = self._pattern.find("}", start) if self._peek(3)[2:] == "{" else start + 2
        name = self._pattern[start + 2 : end + 1].strip("{}")
        self._next = max(end, start + 2) + 1
        negated = (char == "P") is not name.startswith("^")
        name = name.removeprefix("^")
        if name != "Any" and (not name or name[0] not in "CLMNPSZ" or len(name) > 2):
            raise InvalidPattern(f"invalid character class range: `{self._pattern[start : self._next]}`")
        if name == "Any":
            return lambda each: not negated
        return lambda each: unicodedata.category(each).startswith(name) is not negated

    def _code(self) -> int:
        """Read an escaped character."""
        start = self._next
        char = self._pattern[start + 1 : start + 2]
        self._next = start + 2
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "x":
            found = re.compile(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]{1,8})\}").match(self._pattern, self._next)
            if found is not None and int(found[1] or found[2], 16) <= 0x10FFFF:
                self._next = found.end()
                return int(found[1] or found[2], 16)
        elif char in "01234567":
            found = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self._pattern, start + 1)
            if found is not None:
                self._next = found.end()
                return int(found[0], 8)
        elif not (char.isalnum() and char.isascii()) and ord(char) < 0x80:
            return ord(char)
        raise InvalidPattern(f"invalid escape sequence: `{self._pattern[start : start + 2]}`")

    def _class(self) -> Instruction:
        start = self._next
        self._next += 1
        negated = self._peek() == "^"
        self._next += negated
        tests: list[Test] = []
        ranges: list[tuple[int, int]] = []
        first = True
        while first or self._peek() != "]":
            if self._next >= len(self._pattern):
                raise InvalidPattern(f"missing closing ]: `{self._pattern[start:]}`")
            first = False
            if self._peek(2) == "[:" and (end := self._pattern.find(":]", self._next + 2)) >= 0:
                tests.append(self._posix(end))
                continue
            test = self._class_escape() if self._peek() == "\\" else None
            if test is not None:
                tests.append(test)
                continue
            ranges.append(self._range())
        self._next += 1
        if "i" in self._flags or ranges:
            tests.append(_within(tuple(ranges), negated=False, folded="i" in self._flags))
        return ("char", lambda char: any(test(char) for test in tests) is not negated, None)

    def _posix(self, end: int) -> Test:
        name = self._pattern[self._next + 2 : end]
        ranges = _POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise InvalidPattern(f"invalid character class range: `[:{name}:]`")
        self._next = end + 2
        return _within(ranges, negated=name.startswith("^"), folded="i" in self._flags)

    def _range(self) -> tuple[int, int]:
        start = self._next
        low = self._class_char()
        if self._peek() != "-" or self._peek(2) in ("-", "-]"):
            return low, low
        self._next += 1
        high = self._class_char()
        if high < low:
            raise InvalidPattern(f"invalid character class range: `{self._pattern[start : self._next]}`")
        return low, high

    def _class_char(self) -> int:
        if self._peek() == "\\":
            return self._code()
        self._next += 1
        return ord(self._pattern[self._next - 1])
