"""The first document of a YAML text as a tree of nodes, with libyaml's complaints in the words of its Go port.

Most of a text is scalars without a tag, so that those are their values already: a string, a number, a boolean, null.
So are sequences that hold nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

from pilothouse.machinery.checkpoints import checkpoint
from pilothouse.machinery.codec.yaml_scalars import resolve


class YamlError(ValueError):
    """The text is no YAML, or no JSON can be made of it. The message is Go's.

    `line` is the line, from 1, at which reading ended; 1 if the text can be read.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class YamlNodeKind(Enum):
    SCALAR = auto()
    """With a tag, or a merge key."""
    MAPPING = auto()
    SEQUENCE = auto()
    ALIAS = auto()


class YamlNode:
    """`children` of a mapping are keys and values in turn, and `lines` says where each of them begins."""

    __slots__ = ("children", "implicit", "kind", "lines", "tag", "target", "text")

    def __init__(self, kind: YamlNodeKind, *, text: str = "", target: Any = None) -> None:
        self.kind = kind
        self.text = text
        """Of a scalar; an alias's anchor."""
        self.target = target
        """The node or the value that an alias stands for."""
        self.tag = ""
        self.implicit = True
        self.children: list[Any] = []
        self.lines: list[int] = []


def compose(data: bytes) -> Any:
    """None for a text without a document. What comes after the first document is not looked at."""
    with _reading(data) as (yaml, next_event):
        return _Composer(yaml, next_event).document()


def events(data: bytes) -> Iterator[Any]:
    """Yield libyaml's events. Raises YamlError, also for collections that are nested too deeply."""
    with _reading(data) as (yaml, next_event):
        depth = 0
        for event in iter(next_event, None):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > MAX_DEPTH:
                raise _too_deep(event)
            yield event


@contextmanager
def _reading(data: bytes) -> Iterator[tuple[Any, Callable[[], Any]]]:
    """Yield the yaml module and libyaml's next event. This is the only place that reads YAML by libyaml.

    The caller must count the depth: libyaml's own composer recurses on the C stack. Raises YamlError.
    """
    import yaml  # imported late, because few servers ever see YAML

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
    """The Go port counts lines from zero, except in the scanner, and leaves line zero out."""
    line = error.problem_mark.line if error.problem_mark else 0
    if line:
        line += isinstance(error, scanner_error)
    elif error.context_mark:
        line = error.context_mark.line
    return f"line {line}: " if line else ""


MAX_DEPTH = 1000
"""More than can be turned into values. libyaml looks at all open brackets for each token, so that it must not go on."""


class _Collection:
    """A collection that is being read. A sequence needs no node as long as no other node is in it."""

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
                # Only its end says that the document has nothing more in it.
                self._next_event()
                return node
            if type(event) is yaml.StreamEndEvent:
                break
        return None

    def _node(self) -> Any:
        """Without recursion: `around` is what was being read when the collections that are still open began."""
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
        """Scalars that are not plain, and aliases."""
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
