"""Static admission manifests: webhooks and policies in files of the server, immutable for clients.

Manifests are loaded at the start and reloaded after file changes. Invalid manifests prevent the start. Invalid changes
are logged and counted, and the previous manifests stay in use.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Generic, TypeAlias, TypeVar

from prometheus_client import Gauge

from pilothouse.apiserver.file_watch import Polled
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote

T = TypeVar("T")
Load: TypeAlias = "Callable[[tuple[ManifestDocument, ...]], T]"
"""Compile the documents for the plugin. Raises ManifestError."""

_log = logging.getLogger(__name__)


class StaticManifests(Polled, Generic[T]):
    def __init__(self, directory: str, load: Load[T], *, plugin: str, server_id: str = "", every: float = 1.0) -> None:
        """Load the manifests. Raises ManifestError."""
        super().__init__(every)
        self._directory, self._load, self._plugin = directory, load, plugin
        self._metrics = ManifestMetrics(plugin, server_id)
        self._seen = self._settling = self._signature()
        files = read_manifest_files(directory)
        self._current = load(files.documents)
        self._hash = files.hash
        self._metrics.succeeded(files.hash)
        _log.info("loaded static manifests of %s from %s", plugin, directory)

    def __call__(self) -> T:
        """Return the manifests in use; the same object until a change."""
        return self._current

    async def look(self) -> None:
        try:
            loaded = await asyncio.to_thread(self._read)
        except ManifestError as error:
            _log.error("static manifests of %s are not reloaded: %s", self._plugin, error)
            self._metrics.failed()
            return
        if loaded is not None:
            self._hash, self._current = loaded
            self._metrics.succeeded(self._hash)
            _log.info("reloaded static manifests of %s from %s", self._plugin, self._directory)

    def _read(self) -> tuple[str, T] | None:
        """Return the new hash and manifests, or None without changes. Content is read once per change.

        Files must be stable over two polls: writers truncate a file first, and enforcement must not lapse meanwhile.
        """
        before, self._settling = self._settling, self._signature()
        if self._settling != before or self._settling == self._seen:
            return None
        self._seen = self._settling
        files = read_manifest_files(self._directory)
        return None if files.hash == self._hash else (files.hash, self._load(files.documents))

    def _signature(self) -> tuple[object, ...]:
        try:
            found = [(file, os.stat(file)) for file in manifest_paths(self._directory)]
        except (ManifestError, OSError) as error:
            return (str(error),)
        return tuple((file, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns) for file, at in found)


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


_PREFIX = "apiserver_manifest_admission_config_controller"
_RELOADS = CounterTally(
    f"{_PREFIX}_automatic_reloads",
    "[ALPHA] Total number of automatic reloads of admission manifest configuration split by status, plugin, and "
    "apiserver identity.",
    ("apiserver_id_hash", "plugin", "status"),
    registry=REGISTRY,
)
_LAST_RELOAD = Gauge(
    f"{_PREFIX}_automatic_reload_last_timestamp_seconds",
    "[ALPHA] Timestamp of the last automatic reload of admission manifest configuration split by status, plugin, and "
    "apiserver identity.",
    ["apiserver_id_hash", "plugin", "status"],
    registry=REGISTRY,
)
_LAST_CONFIG = Gauge(
    f"{_PREFIX}_last_config_info",
    "[ALPHA] Information about the last applied admission manifest configuration with hash as label, split by plugin "
    "and apiserver identity.",
    ["apiserver_id_hash", "hash", "plugin"],
    registry=REGISTRY,
)


class ManifestMetrics:
    """The manifest metrics of a plugin in a server."""

    def __init__(self, plugin: str, server_id: str) -> None:
        self._plugin = plugin
        self._server = f"sha256:{hashlib.sha256(server_id.encode()).hexdigest()}" if server_id else ""
        self._hash: str | None = None

    def failed(self) -> None:
        self._record("failure")

    def succeeded(self, hash: str) -> None:
        self._record("success")
        if self._hash is not None:
            _LAST_CONFIG.remove(self._server, self._hash, self._plugin)
        _LAST_CONFIG.labels(self._server, hash, self._plugin).set(1)
        self._hash = hash

    def _record(self, status: str) -> None:
        labels = (self._server, self._plugin, status)
        _RELOADS.inc(labels)
        _LAST_RELOAD.labels(*labels).set_to_current_time()
