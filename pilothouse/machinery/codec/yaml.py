r"""YAML bodies, converted to JSON like sigs.k8s.io/yaml: first document only, plain scalars with Go's meaning.

    parse_yaml(b"b: 010\na: yes")   → {"a": True, "b": 8}

Keys are sorted, as in Go's conversion. libyaml does the scanning.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from collections.abc import Iterator
from math import isfinite
from operator import itemgetter
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.codec.body_errors import UNMARSHAL_ERRORS
from pilothouse.machinery.codec.yaml_nodes import YamlError, YamlNode, YamlNodeKind, compose
from pilothouse.machinery.codec.yaml_scalars import Tag, go_float, go_syntax, resolve
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.schema.scalars import base64_fault

_RESOLVABLE = frozenset({"", "!!str", "!!bool", "!!int", "!!float", "!!null", "!!timestamp"})
_SEPARATOR = re.compile(rb"^---(?=\s|$)", re.MULTILINE)
_FEW, _MANY = 400_000, 4_000_000
_MOST_ALIASED_TEXT = 12 << 20
"""Characters from aliases: four times the largest body. Go limits only the number of values, so aliases of one long
string could turn a hundred kilobytes into a hundred megabytes."""
_EXCESSIVE = "yaml: document contains excessive aliasing"


@dataclass(frozen=True, slots=True)
class ParsedYaml:
    """strict_error: Go's strict error for duplicate keys; empty without duplicates."""

    value: Any
    strict_error: str = ""


def parse_yaml(data: bytes) -> ParsedYaml:
    """Parse the first document. Raises YamlError."""
    root = compose(data)
    if root is None:
        return ParsedYaml(None)
    construction = _Construction(may_have_aliases=b"*" in data)
    try:
        value = _jsonable(construction.value(root))
    except RecursionError:
        raise YamlError("yaml: exceeded max depth") from None
    lines = "".join(f"\n  {line}" for line in construction.duplicates)
    return ParsedYaml(value, f"{UNMARSHAL_ERRORS}{lines}" if lines else "")


def split_documents(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (first line, document) for each document of a file, counting lines from 1. Comment-only documents are
    skipped."""
    start, line = 0, 1
    for separator in (*_SEPARATOR.finditer(data), None):
        end = separator.start() if separator else len(data)
        part = data[start:end]
        if any(is_content(text) for text in part.splitlines()):
            yield line, part
        line += part.count(b"\n")
        start = separator.end() if separator else end


def is_content(line: bytes) -> bool:
    """Return whether the line contains more than whitespace and a comment."""
    line = line.strip()
    return bool(line) and not line.startswith(b"#")


_NOT_SCALAR = frozenset({YamlNode, list})


class _Construction:
    """Converts nodes to values. Counts aliased content, so that a small text cannot expand to a huge value."""

    def __init__(self, *, may_have_aliases: bool) -> None:
        self.duplicates: list[str] = []
        self._may_have_aliases = may_have_aliases
        self._count = 0
        self._through_aliases = 0
        self._aliased_text = 0
        self._alias_depth = 0
        self._open_aliases: set[YamlNode] = set()

    def value(self, node: Any) -> Any:
        """Return the value of a node; a copy if aliases may refer to it. Scalars are their own value."""
        if self._may_have_aliases:
            self._tally(1)
            if type(node) is list:
                return self._values(node)
        if type(node) is not YamlNode:
            if self._alias_depth:
                self._count_text(node)
            return node
        if node.kind is YamlNodeKind.SCALAR:
            if self._alias_depth:
                self._count_text(node.text)
            return _scalar(node)
        if node.kind is YamlNodeKind.ALIAS:
            if node in self._open_aliases:
                raise YamlError(f"yaml: anchor '{node.text}' value contains itself")
            self._open_aliases.add(node)
            self._alias_depth += 1
            value = self.value(node.target)
            self._alias_depth -= 1
            self._open_aliases.discard(node)
            return value
        if node.kind is YamlNodeKind.SEQUENCE:
            return self._values(node.children)
        return self._mapping(node, {})

    def _values(self, children: list[Any]) -> list[Any]:
        """Convert the children of a sequence. Scalars are counted together: most sequences contain nothing else."""
        values = [self.value(child) if type(child) in _NOT_SCALAR else child for child in children]
        if self._may_have_aliases:
            self._tally(sum(type(child) not in _NOT_SCALAR for child in children))
        if self._alias_depth:
            self._count_text(*children)
        return values

    def _count_text(self, *scalars: Any) -> None:
        self._aliased_text += sum(len(scalar) for scalar in scalars if type(scalar) is str)
        if self._aliased_text > _MOST_ALIASED_TEXT:
            raise YamlError(_EXCESSIVE)

    def _tally(self, count: int) -> None:
        self._count += count
        if self._alias_depth:
            self._through_aliases += count
        if self._through_aliases > 100 and self._count > 1000 and self._is_excessive():
            raise YamlError(_EXCESSIVE)

    def _is_excessive(self) -> bool:
        """Return whether too much of the document comes from aliases: above 99 % in small documents, above 10 % in huge
        ones."""
        share = min(max((self._count - _FEW) / (_MANY - _FEW), 0), 1)
        return self._through_aliases / self._count > 0.99 - 0.89 * share

    def _mapping(self, node: YamlNode, out: dict[Any, Any]) -> dict[Any, Any]:
        parts = iter(node.children)
        for at, (key_node, value_node) in enumerate(zip(parts, parts, strict=True)):
            is_scalar = _kind(key_node) is YamlNodeKind.SCALAR
            if is_scalar and key_node.text == "<<" and (key_node.implicit or key_node.tag == "!!merge"):
                children = value_node.children if _kind(value_node) is YamlNodeKind.SEQUENCE else value_node
                for source in reversed(children) if type(children) is list else (value_node,):
                    target = source.target if _kind(source) is YamlNodeKind.ALIAS else source
                    if _kind(target) is not YamlNodeKind.MAPPING:
                        raise YamlError("yaml: map merge requires map or sequence of maps as the value")
                    self._alias_depth += source is not target
                    self._mapping(target, out)
                    self._alias_depth -= source is not target
                continue
            key = self.value(key_node)
            if isinstance(key, dict | list):
                raise YamlError(f"yaml: invalid map key: {go_syntax(key)}")
            value = self.value(value_node)
            # True and 1 are equal keys in Python, but not in Go.
            typed = (type(key), key)
            if typed in out:
                line = node.lines[2 * at + 1] + 1
                self.duplicates.append(f"line {line}: key {go_syntax(key)} already set in map")
            out[typed] = value
        return out


def _kind(node: Any) -> YamlNodeKind | None:
    return node.kind if type(node) is YamlNode else None


def _scalar(node: YamlNode) -> Any:
    if not node.tag and not node.implicit:
        return node.text
    if node.tag == "!!binary":
        text = node.text
        if base64_fault(text) is not None:
            raise YamlError("yaml: !!binary value contains invalid base64 data")
        return a2b_base64(text).decode("utf-8", "replace")
    if node.tag not in _RESOLVABLE or node.tag == "!!str":
        return node.text
    tag, value = resolve(node.text)
    if node.tag == "!!float" and tag is Tag.INT:
        return float(value)
    if node.tag not in ("", tag.value):
        raise YamlError(f"yaml: cannot decode {tag.value} `{node.text}` as a {node.tag}")
    return value


def _jsonable(value: Any) -> Any:
    checkpoint()
    if type(value) is dict:
        members = [
            (_key(key, member), member if type(member) in _JSONABLE else _jsonable(member))
            for (_, key), member in value.items()
        ]
        members.sort(key=itemgetter(0))
        return dict(members)
    if type(value) is list:
        return [item if type(item) in _JSONABLE else _jsonable(item) for item in value]
    if type(value) is float:
        if not isfinite(value):
            raise YamlError(f"json: unsupported value: {go_float(value)}")
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return value


_JSONABLE = frozenset({str, int, bool, type(None)})


def _key(key: Any, value: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        raise YamlError(f"unsupported map key of type: %!s(<nil>), key: <nil>, value: {go_syntax(value)}")
    return str(key) if isinstance(key, int) else go_float(key, single=True)
