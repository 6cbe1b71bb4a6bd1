"""A cluster's objects in one file: JSON, one object a line, compressed by gzip.

The first line says what the file is; the others are objects as the API shows them, in no order that means anything:

    {"format":"pilothouse.dev/snapshot","version":1,"revision":"412","inexact":[],"objects":2}
    {"apiVersion":"v1","kind":"Namespace","metadata":{"name":"default",…},…}
    {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"default",…},…}

A reader refuses a version that is higher than its own; fields that it does not know mean nothing to it. `objects`
counts the lines that follow, so that a file which was cut off is known.
"""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import Final

import orjson

from pilothouse.cli.cluster_objects.reading import ClusterObjects
from pilothouse.machinery.objects import Json

FORMAT: Final = "pilothouse.dev/snapshot"
VERSION: Final = 1


class NotASnapshot(Exception):
    """The message names the file and says what is wrong with it."""


def write_snapshot(path: Path, found: ClusterObjects) -> None:
    """Raises OSError. The file holds secrets, and is for its owner alone."""
    head = {"format": FORMAT, "version": VERSION, "revision": found.revision, "inexact": found.inexact}
    lines = [orjson.dumps({**head, "objects": len(found.items)}), *map(orjson.dumps, found.items), b""]
    path.touch(mode=0o600)
    path.write_bytes(gzip.compress(b"\n".join(lines), mtime=0))


def read_snapshot(path: Path) -> list[Json]:
    """Raises OSError, NotASnapshot."""
    try:
        lines = [orjson.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    except (EOFError, ValueError, gzip.BadGzipFile, zlib.error) as error:
        raise NotASnapshot(f"{path}: not a snapshot: {error}") from None
    head, objects = (lines[0], lines[1:]) if lines else ({}, [])
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise NotASnapshot(f"{path}: not a snapshot")
    if head["version"] > VERSION:
        raise NotASnapshot(
            f"{path}: version {head['version']} is newer than this Pilothouse, which reads version {VERSION}"
        )
    if head["objects"] != len(objects):
        raise NotASnapshot(f"{path}: the file is incomplete: {len(objects)} of {head['objects']} objects")
    return objects
