"""What may be on a disk after a power cut.

A file system promises little before a sync: the changes of a file since its last sync may have reached the disk or
not, each of them alone, in any order, writes torn at sectors of 512 bytes; and so may names that were made, removed or
changed in a directory since the last sync of that directory. `Disk` follows the calls of a trace, and `images` makes
directories as a power cut at this moment could have left them.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TypeAlias

from traced_calls import FOREIGN, TracedCall

SECTOR = 512


@dataclass(eq=False)
class File:
    durable: bytearray = field(default_factory=bytearray)
    pending: list[Change] = field(default_factory=list)


@dataclass(eq=False)
class Directory:
    names: dict[str, Node] = field(default_factory=dict)  # as a process sees them
    durable: dict[str, Node] = field(default_factory=dict)
    pending: list[Change] = field(default_factory=list)


Node: TypeAlias = File | Directory


@dataclass(frozen=True, eq=False)
class Change:
    """A change of a file or of the names in a directory that a power cut may undo until the next sync covers it."""

    number: int
    node: Node
    ended: int
    data: bytes | None = None  # None: cut the file off at the offset
    offset: int = 0
    linked: tuple[str, Node] | None = None
    unlinked: str | None = None

    def apply(self, to: bytearray | dict[str, Node], sectors: Callable[[int], bool] = lambda sector: True) -> None:
        if isinstance(to, dict):
            if self.unlinked is not None:
                to.pop(self.unlinked, None)
            if self.linked is not None:
                to[self.linked[0]] = self.linked[1]
        elif self.data is None:
            del to[self.offset :]
            to.extend(bytes(self.offset - len(to)))
        else:
            self._write(to, self.data, sectors)

    def _write(self, to: bytearray, data: bytes, sectors: Callable[[int], bool]) -> None:
        to.extend(bytes(max(0, self.offset + len(data) - len(to))))
        at = self.offset
        while at < self.offset + len(data):
            end = min((at // SECTOR + 1) * SECTOR, self.offset + len(data))
            if sectors(at // SECTOR):
                to[at:end] = data[at - self.offset : end - self.offset]
            at = end


@dataclass(frozen=True)
class Image:
    """A directory as a power cut could have left it, and how it came to be."""

    story: str
    root: dict[str, bytes | None]  # path → content; None for a directory

    def write(self, to: Path) -> None:
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir(parents=True)
        for path, content in self.root.items():
            if content is None:
                (to / path).mkdir(mode=0o700)
            else:
                (to / path).write_bytes(content)


class Disk:
    """All that is below `root`, which must be an empty directory when the trace begins."""

    def __init__(self, root: Path, *, ignore_syncs_of: Callable[[Path], bool] = lambda path: False) -> None:
        self._root = root
        self._top = Directory()
        self._ignored = ignore_syncs_of
        self._offsets: dict[int, int] = {}  # of descriptors
        self._numbers = count()

    def begin(self, call: TracedCall) -> None:
        """Whatever a call changes may be on disk as soon as it has begun."""
        match call.name:
            case "openat":
                self._open(call)
            case "mkdir":
                self._link(call, call.path(), Directory())
            case "pwrite64":
                self._write(call, call.number(3))
            case "write":
                offset = self._offsets.get(call.descriptor(), 0)
                self._offsets[call.descriptor()] = offset + call.result
                self._write(call, offset)
            case "ftruncate":
                if isinstance(node := self._find(call.file()), File):
                    self._add(call, node, offset=call.number(1))
            case "unlink" | "unlinkat":
                path = call.path(1 if call.name == "unlinkat" else 0)
                if isinstance(parent := self._find(path.parent), Directory):
                    self._add(call, parent, unlinked=path.name)
            case "rename":
                self._rename(call)
            case name:
                assert name not in FOREIGN or str(self._root) not in str(call), f"not modelled: {call}"

    def end(self, call: TracedCall) -> None:
        """A sync that has returned makes all changes durable that had returned before it began."""
        if not call.is_sync or self._ignored(path := call.file()):
            return
        if (node := self._find(path)) is not None:
            for change in [change for change in node.pending if change.ended < call.begun]:
                change.apply(node.durable)
                node.pending.remove(change)

    def pending(self) -> list[Change]:
        """All changes that a power cut may undo, oldest first. Nodes that have no name any more do not count."""
        found: list[Change] = []
        seen: set[int] = set()
        nodes: list[Node] = [self._top]
        while nodes:
            node = nodes.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            found += node.pending
            if isinstance(node, Directory):
                nodes += [*node.durable.values(), *(change.linked[1] for change in node.pending if change.linked)]
        return sorted(found, key=lambda change: change.number)

    def images(self, chance: random.Random, each: int) -> Iterator[Image]:
        """Power cuts at this moment: with nothing and with all of what is pending, and `each` of several kinds."""
        pending = self.pending()
        yield self._image("nothing that is pending", lambda change: False)
        if not pending:
            return
        yield self._image("everything that is pending", lambda change: True)
        for node in {id(change.node): change.node for change in pending}.values():
            yield self._image("all of one file, nothing else", lambda change, node=node: change.node is node)  # type: ignore[misc]
        for _ in range(each):
            last = chance.choice(pending).number
            yield self._image(f"up to change {last}", lambda change, last=last: change.number <= last)  # type: ignore[misc]
            missing = chance.choice(pending).number
            yield self._image(f"without change {missing}", lambda change, gone=missing: change.number != gone)  # type: ignore[misc]
            share = chance.choice((0.1, 0.5, 0.9))
            kept = {change.number for change in pending if chance.random() < share}
            yield self._image(f"changes {sorted(kept)}", lambda change, kept=kept: change.number in kept)  # type: ignore[misc]
            yield self._image("torn at sectors", lambda change: True, lambda sector: chance.random() < 0.5)

    def _image(
        self, story: str, keep: Callable[[Change], bool], sectors: Callable[[int], bool] = lambda sector: True
    ) -> Image:
        root: dict[str, bytes | None] = {}

        def collect(directory: Directory, prefix: str) -> None:
            names = dict(directory.durable)
            for change in filter(keep, directory.pending):
                change.apply(names)
            for name, node in names.items():
                if isinstance(node, Directory):
                    root[prefix + name] = None
                    collect(node, f"{prefix}{name}/")
                    continue
                content = bytearray(node.durable)
                for change in filter(keep, node.pending):
                    change.apply(content, sectors)
                root[prefix + name] = bytes(content)

        collect(self._top, "")
        return Image(story, root)

    def _open(self, call: TracedCall) -> None:
        path = call.path(1)
        self._offsets[call.result] = 0
        if "O_CREAT" in call.arguments[2] and self._find(path) is None:
            self._link(call, path, File())
        node = self._find(path)
        if "O_TRUNC" in call.arguments[2] and isinstance(node, File):
            self._add(call, node)

    def _link(self, call: TracedCall, path: Path, node: Node) -> None:
        if isinstance(parent := self._find(path.parent), Directory):
            self._add(call, parent, linked=(path.name, node))

    def _write(self, call: TracedCall, offset: int) -> None:
        if isinstance(node := self._find(call.file()), File):
            self._add(call, node, data=call.bytes(1)[: call.result], offset=offset)

    def _rename(self, call: TracedCall) -> None:
        old, new = call.path(0), call.path(1)
        parent, node = self._find(old.parent), self._find(old)
        if isinstance(parent, Directory) and node is not None:
            assert old.parent == new.parent, "not modelled"
            self._add(call, parent, unlinked=old.name, linked=(new.name, node))

    def _add(
        self,
        call: TracedCall,
        node: Node,
        *,
        data: bytes | None = None,
        offset: int = 0,
        linked: tuple[str, Node] | None = None,
        unlinked: str | None = None,
    ) -> None:
        change = Change(next(self._numbers), node, call.ended, data, offset, linked, unlinked)
        node.pending.append(change)
        if isinstance(node, Directory):
            change.apply(node.names)

    def _find(self, path: Path) -> Node | None:
        """Return what a process finds under the path, None for all that is not below the root."""
        if not path.is_relative_to(self._root):
            return None
        node: Node | None = self._top
        for name in path.relative_to(self._root).parts:
            node = node.names.get(name) if isinstance(node, Directory) else None
        return node


def moments(calls: list[TracedCall], disk: Disk) -> Iterator[tuple[int, list[bytes]]]:
    """Follow the trace. Pause at each moment that is worth a power cut: before and after every sync returns, and
    where the process goes on after it has spoken. Yield the line of the trace and all that was said."""
    said: list[bytes] = []
    speaks = False
    steps = [(call.begun, 0, call) for call in calls] + [(call.ended, 1, call) for call in calls if call.is_sync]
    for line, ended, call in sorted(steps, key=lambda step: step[:2]):
        spoke, speaks = speaks, call.name == "write" and call.descriptor() == 1
        if speaks:
            said.append(call.bytes(1))
            continue
        if spoke or ended:
            yield line, said
        if not ended:
            disk.begin(call)
            continue
        disk.end(call)
        yield line, said
