"""Composer: the first YAML document as a tree of nodes, with error messages of libyaml's Go port.

Untagged scalars, the bulk of a text, need no node: a string, number, boolean or null represents itself. So do sequences
of such scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.codec.yaml_scalars import resolve


class YamlError(ValueError):
    """Invalid YAML, or YAML without a JSON equivalent. The message is Go's.

    line: the line, from 1, at which parsing stopped; 1 for well-formed text.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class YamlNodeKind(Enum):
    SCALAR = auto()
    """A tagged scalar or a merge key."""
    MAPPING = auto()
    SEQUENCE = auto()
    ALIAS = auto()


class YamlNode:
    """children: for a mapping, alternating keys and values. lines: the first line of each child."""

    __slots__ = ("children", "implicit", "kind", "lines", "tag", "target", "text")

    def __init__(self, kind: YamlNodeKind, *, text: str = "", target: Any = None) -> None:
        self.kind = kind
        self.text = text
        """Text of a scalar, or anchor of an alias."""
        self.target = target
        """Node or value that the alias refers to."""
        self.tag = ""
        self.implicit = True
        self.children: list[Any] = []
        self.lines: list[int] = []


def compose(data: bytes) -> Any:
    """Return the root node of the first document; None without a document. Later documents are ignored."""
    with _reading(data) as (yaml, next_event):
        return _Composer(yaml, next_event).document()


def events(data: bytes) -> Iterator[Any]:
    """Yield libyaml's events. Raises YamlError, including for excessive nesting."""
    with _reading(data) as (yaml, next_event):
        depth = 0
        for event in iter(next_event, None):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _too_deep(event)
            yield event


@contextmanager
def _reading(data: bytes) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Yield (yaml module, function that returns libyaml's next event). The only use of libyaml's parser.

    The caller must limit the depth, because libyaml's own composer recurses on the C stack. Raises YamlError.
    """
    import yaml  # imported late, because few servers receive YAML

    try:
        reader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(data)
        try:
            yield yaml, reader.get_event
        finally:
            reader.dispose()
    except yaml.reader.ReaderError as error:
        raise YamlError(f"yaml: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = f"yaml: {_where(error, yaml.scanner.ScannerError)}{error.problem}"
        raise YamlError(message, mark.line + 1 if mark else 1) from None
    except RecursionError:
        raise YamlError("yaml: exceeded max depth") from None


def _too_deep(event: Any) -> YamlError:
    return YamlError("yaml: exceeded max depth", event.start_mark.line + 1)


def _where(error: Any, scanner_error: type) -> str:
    """Return the line prefix of a message. The Go port counts lines from zero, except in the scanner, and omits line
    zero."""
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += isinstance(error, scanner_error)
    elif error.context_mark:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


MAX_DEPTH = 1000
"""Beyond the depth limit of values. libyaml examines all open brackets per token, so parsing must stop here."""


class _Collection:
    """A collection under construction. A sequence needs no node unless it contains a node."""

    __slots__ = ("children", "lines", "node")

    def __init__(self, node: YamlNode | None = None) -> None:
        self.node = node
        self.children = [] if node is None else node.children
        self.lines = node.lines if node is not None and node.kind is YamlNodeKind.MAPPING else None

    def add(self, child: Any) -> None:
        self.children.append(child)
        if self.node is None and type(child) is YamlNode:
            self.node = YamlNode(YamlNodeKind.SEQUENCE)
            self.node.children = self.children

    @property
    def outcome(self) -> Any:
        return self.children if self.node is None else self.node


class _Composer:
    def __init__(self, yaml: Any, next_event: Callable[[], Any]) -> None:
        self._yaml = yaml
        self._next_event = next_event
        self._starts = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
        self._anchors: dict[str, Any] = {}

    def document(self) -> Any:
        yaml = self._yaml
        for event in iter(self._next_event, None):
            if type(event) is yaml.DocumentStartEvent:
                node = self._node()
                # Consume the end event: only then is the document known to be complete.
                self._next_event()
                return node
            if type(event) is yaml.StreamEndEvent:
                break
        return None

    def _node(self) -> Any:
        """Compose a node iteratively; `around` is the stack of open collections."""
        scalar_event, next_event = self._yaml.ScalarEvent, self._next_event
        ends = (self._yaml.SequenceEndEvent, self._yaml.MappingEndEvent)
        now = _Collection()
        around: list[_Collection] = []
        while not now.children or around:
            checkpoint()
            event = next_event()
            kind = type(event)
            if kind is scalar_event and event.tag is None and event.anchor is None and event.value != "<<":
                if now.lines is not None:
                    now.lines.append(event.start_mark.line)
                now.children.append(resolve(event.value)[1] if event.implicit[0] else event.value)
            elif kind in ends:
                ended, now = now, around.pop()
                now.add(ended.outcome)
            else:
                if now.lines is not None:
                    now.lines.append(event.start_mark.line)
                if kind in self._starts:
                    if len(around) == MAX_DEPTH:
                        raise _too_deep(event)
                    around.append(now)
                    now = self._begun(event, kind)
                else:
                    now.add(self._read(event, kind))
        return now.children[0]

    def _begun(self, event: Any, kind: type) -> _Collection:
        if kind is self._yaml.SequenceStartEvent and event.anchor is None:
            return _Collection()
        node = YamlNode(YamlNodeKind.MAPPING if kind is self._yaml.MappingStartEvent else YamlNodeKind.SEQUENCE)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return _Collection(node)

    def _read(self, event: Any, kind: type) -> YamlNode:
        """Compose a scalar that is not plain, or an alias."""
        if kind is self._yaml.AliasEvent:
            anchor = event.anchor
            if anchor not in self._anchors:
                raise YamlError(f"yaml: unknown anchor '{anchor}' referenced")
            return YamlNode(YamlNodeKind.ALIAS, text=event.anchor, target=self._anchors[anchor])
        node = YamlNode(YamlNodeKind.SCALAR, text=event.value)
        node.tag, node.implicit = (event.tag or "").replace("tag:yaml.org,2002:", "!!"), bool(event.implicit[0])
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node
