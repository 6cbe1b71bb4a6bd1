"""Queries of stages: the jq subset of kwok's stages.

.status.phase    .metadata.annotations["a.b/c"]    .metadata.ownerReferences.[].kind    .spec.containers[0].image
.status.conditions.[] | select( .type == "Ready" ) | .status
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import orjson

from pilothouse.machinery.bounded_cache import bounded_cache
from pilothouse.nodes.stages.pipeline import InvalidStage

Query: TypeAlias = Callable[[Any], list[Any]]
"""Value → all matches; missing values match nothing."""
_Step: TypeAlias = Callable[[Any], Iterable[Any]]

_STEP = re.compile(
    r"""\s*(?:
    \.?\[\s*(?P<each>)\]                            # every item
    | \.?\[\s*(?P<position>-?\d+)\s*\]              # one item
    | \.?\[\s*(?P<quoted>"(?:\\.|[^"\\])*")\s*\]    # a field with a name in quotes
    | \.(?P<quoted_too>"(?:\\.|[^"\\])*")
    | \.(?P<name>[A-Za-z_][A-Za-z0-9_]*)            # a field
    )""",
    re.VERBOSE,
)
_SELECT = re.compile(r"select\(\s*(?P<path>\S+?)\s*(?P<operator>==|!=)\s*(?P<value>\"(?:\\.|[^\"\\])*\"|\S+?)\s*\)")
_PIPE = re.compile(r"""\|(?=(?:[^"]*"[^"]*")*[^"]*$)""")


@bounded_cache(entries=512, key_bytes=1024)
def compile_query(text: str) -> Query:
    """Compile a query. Raises InvalidStage."""
    steps = [step for part in _PIPE.split(text) for step in _steps(part.strip(), text)]

    def run(value: Any) -> list[Any]:
        values: list[Any] = [value]
        for step in steps:
            values = [result for value in values for result in step(value)]
        return [value for value in values if value is not None]

    return run


def _steps(part: str, whole: str) -> Iterator[_Step]:
    if (select := _SELECT.fullmatch(part)) is not None:
        query = compile_query(select["path"])
        try:
            wanted = orjson.loads(select["value"])
        except orjson.JSONDecodeError:
            raise InvalidStage(f"the expression {select[0]!r} is not supported: {select['value']!r}") from None
        equal = select["operator"] == "=="
        yield (lambda value: (value,) if (query(value) == [wanted]) is equal else ())
        return
    if part == ".":
        return
    position = 0
    while position < len(part):
        match = _STEP.match(part, position)
        if match is None:
            raise InvalidStage(f"the expression {whole!r} is not supported: {part[position:]!r}")
        yield _step(match)
        position = match.end()


def _step(match: re.Match[str]) -> _Step:
    if match["each"] is not None:
        return _every
    if match["position"] is not None:
        position = int(match["position"])
        return lambda value: value[position : position + 1 or None] if isinstance(value, list) else ()
    quoted = match["quoted"] or match["quoted_too"]
    name = orjson.loads(quoted) if quoted else match["name"]
    return lambda value: (value[name],) if isinstance(value, dict) and name in value else ()


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
