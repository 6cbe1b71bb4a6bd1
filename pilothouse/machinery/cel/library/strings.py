"""CEL's functions of strings, with regular expressions."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery import gofmt
from pilothouse.machinery.cel.interpreter.errors import EvaluationFailed
from pilothouse.machinery.cel.interpreter.values import shown
from pilothouse.machinery.cel.library import costs
from pilothouse.machinery.cel.library.formatting import format_string
from pilothouse.machinery.cel.library.rows import row
from pilothouse.machinery.cel.patterns import find, find_all, matcher

_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}
_SPACE = (
    "\t\n\v\f\r \x85\xa0\u1680"
    + "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
_ESCAPES = str.maketrans(gofmt.ESCAPES)


def _out_of_range(index: int) -> EvaluationFailed:
    return EvaluationFailed(f"index out of range: {index}")


def _char_at(text: str, index: int) -> str:
    if not 0 <= index <= len(text):
        raise _out_of_range(index)
    return text[index : index + 1]


def _index_of(text: str, part: str, offset: int) -> int:
    if part == "":
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return -1 if offset >= len(text) else text.find(part, offset)


def _last_index_of(text: str, part: str, offset: int) -> int:
    if part == "":
        return offset
    if offset < 0:
        raise _out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator:
        return text.split(separator, limit - 1 if limit > 0 else -1)
    if 0 < limit < len(text):
        return [*text[: limit - 1], text[limit - 1 :]]
    return list(text)


def _rest(text: str, start: int) -> str:
    if not 0 <= start <= len(text):
        raise _out_of_range(start)
    return text[start:]


def _substring(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvaluationFailed(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, end):
        if not 0 <= index <= len(text):
            raise _out_of_range(index)
    return text[start:end]


def _join(items: list[Any], separator: str = "") -> str:
    for item in items:
        if type(item) is not str:
            raise EvaluationFailed(f"join: invalid input: {shown(item)}")
    return separator.join(items)


def _matches(text: str, pattern: str) -> bool:
    return bool(matcher(pattern)(text))


STRINGS = (
    row(
        "contains_string",
        "string -> contains(string) bool",
        lambda text, part: part in text,
        cost=costs.contained,
        estimate=costs.contained_estimate,
    ),
    row(
        "ends_with_string",
        "string -> endsWith(string) bool",
        str.endswith,
        cost=costs.traversal,
        estimate=costs.affix_estimate,
    ),
    row(
        "starts_with_string",
        "string -> startsWith(string) bool",
        str.startswith,
        cost=costs.traversal,
        estimate=costs.affix_estimate,
    ),
    row("matches", "matches(string, string) bool", _matches),
    row(
        "matches_string",
        "string -> matches(string) bool",
        _matches,
        cost=costs.searched,
        estimate=costs.matches_estimate,
    ),
    row("string_char_at_int", "string -> charAt(int) string", _char_at),
    row(
        "string_index_of_string",
        "string -> indexOf(string) int",
        lambda text, part: _index_of(text, part, 0),
        cost=costs.items,
        named_cost=True,
        estimate=costs.items_estimate,
    ),
    row(
        "string_index_of_string_int",
        "string -> indexOf(string, int) int",
        _index_of,
        cost=costs.items,
        named_cost=True,
        estimate=costs.items_estimate,
    ),
    row(
        "string_last_index_of_string",
        "string -> lastIndexOf(string) int",
        str.rfind,
        cost=costs.items,
        named_cost=True,
        estimate=costs.items_estimate,
    ),
    row(
        "string_last_index_of_string_int",
        "string -> lastIndexOf(string, int) int",
        _last_index_of,
        cost=costs.items,
        named_cost=True,
        estimate=costs.items_estimate,
    ),
    row(
        "string_lower_ascii",
        "string -> lowerAscii() string",
        lambda text: text.translate(_LOWER),
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.same_size_estimate,
    ),
    row(
        "string_upper_ascii",
        "string -> upperAscii() string",
        lambda text: text.translate(_UPPER),
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.same_size_estimate,
    ),
    row(
        "string_replace_string_string",
        "string -> replace(string, string) string",
        str.replace,
        cost=costs.double_traversal,
        named_cost=True,
        estimate=costs.replace_estimate,
    ),
    row(
        "string_replace_string_string_int",
        "string -> replace(string, string, int) string",
        lambda text, old, new, count: text.replace(old, new, max(count, -1)),
        cost=costs.double_traversal,
        named_cost=True,
        estimate=costs.replace_estimate,
    ),
    row(
        "string_split_string",
        "string -> split(string) list(string)",
        _split,
        cost=costs.double_traversal,
        named_cost=True,
        estimate=costs.split_estimate,
    ),
    row(
        "string_split_string_int",
        "string -> split(string, int) list(string)",
        _split,
        cost=costs.double_traversal,
        named_cost=True,
        estimate=costs.split_estimate,
    ),
    row(
        "string_substring_int",
        "string -> substring(int) string",
        _rest,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.same_size_estimate,
    ),
    row(
        "string_substring_int_int",
        "string -> substring(int, int) string",
        _substring,
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.same_size_estimate,
    ),
    row(
        "string_trim",
        "string -> trim() string",
        lambda text: text.strip(_SPACE),
        cost=costs.traversal,
        named_cost=True,
        estimate=costs.same_size_estimate,
    ),
    row(
        "string_format",
        "string -> format(list(dyn)) string",
        format_string,
        cost=costs.traversal,
        estimate=costs.traversal_estimate,
    ),
    row(
        "strings_quote",
        "strings.quote(string) string",
        lambda text: f'"{text.translate(_ESCAPES)}"',
        cost=costs.traversal,
        estimate=costs.quoted_estimate,
    ),
    row(
        "list_join",
        "list(string) -> join() string",
        _join,
        cost=costs.joined,
        named_cost=True,
        estimate=costs.join_estimate,
    ),
    row(
        "list_join_string",
        "list(string) -> join(string) string",
        _join,
        cost=costs.joined,
        named_cost=True,
        estimate=costs.join_estimate,
    ),
    row(
        "string_find_string",
        "string -> find(string) string",
        find,
        cost=costs.searched,
        named_cost=True,
        estimate=costs.find_estimate,
    ),
    row(
        "string_find_all_string",
        "string -> findAll(string) list(string)",
        find_all,
        cost=costs.searched,
        named_cost=True,
        estimate=costs.find_estimate,
    ),
    row(
        "string_find_all_string_int",
        "string -> findAll(string, int) list(string)",
        find_all,
        cost=costs.searched,
        named_cost=True,
        estimate=costs.find_estimate,
    ),
)
