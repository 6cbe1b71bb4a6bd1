"""The documents of all YAML and JSON files in a manifest directory, sorted by file name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

_SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = b"---"


class ManifestError(ValueError):
    """The manifests are invalid or unreadable."""


@dataclass(frozen=True, slots=True)
class ManifestDocument:
    file: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ManifestFiles:
    documents: tuple[ManifestDocument, ...]
    hash: str
    """Digest of the content of all files; empty without content."""


def read_manifest_files(directory: str) -> ManifestFiles:
    """Read all manifests of the directory. Raises ManifestError."""
    digest, documents, empty = hashlib.sha256(), [], True
    for file in manifest_paths(directory):
        if data := _content(file):
            digest.update(data + b"\0")
            empty = False
            documents += [ManifestDocument(file, document) for document in _documents(file, data)]
    return ManifestFiles(tuple(documents), "" if empty else f"sha256:{digest.hexdigest()}")


def manifest_paths(directory: str) -> list[str]:
    """Return the paths of the manifests, sorted. Raises ManifestError."""
    try:
        with os.scandir(directory) as entries:
            files = sorted(entry.name for entry in entries if not entry.is_dir(follow_symlinks=False))
    except OSError as error:
        raise ManifestError(f"failed to read manifest directory {quote(directory)}: {_why(error)}") from None
    return [str(Path(directory) / name) for name in files if name.lower().endswith(_SUFFIXES)]


def _content(file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ManifestError(f"failed to read file {quote(file)}: {_why(error)}") from None


def _why(error: OSError) -> str:
    return f"open {error.filename}: {(error.strerror or '').lower()}"


def _documents(file: str, data: bytes) -> Iterator[bytes]:
    """Yield the non-blank documents between separators. A separator line may only have a trailing comment."""
    lines: list[bytes] = []
    for line in BytesIO(data):
        if not line.startswith(_SEPARATOR):
            lines.append(line)
            continue
        behind = line.removeprefix(_SEPARATOR).strip()
        if behind and not behind.startswith(b"#"):
            problem = f"invalid Yaml document separator: {behind.decode('utf-8', 'replace')}"
            raise ManifestError(f"failed to split YAML documents in file {quote(file)}: {problem}")
        if document := b"".join(lines).strip():
            yield document
        # As upstream: a separator without a preceding document becomes the first line of the next document.
        lines = [] if lines else [line]
    if document := b"".join(lines).strip():
        yield document
