"""The manifests of a plugin: loaded at the start and reloaded after file changes.

Invalid manifests prevent the start. Invalid changes are logged and counted, and the previous manifests stay in use.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable
from typing import Generic, TypeAlias, TypeVar

from pilothouse.apiserver.admission.manifest.files import (
    ManifestDocument,
    ManifestError,
    manifest_paths,
    read_manifest_files,
)
from pilothouse.apiserver.admission.manifest.metrics import ManifestMetrics
from pilothouse.apiserver.file_watch import poll

T = TypeVar("T")
Load: TypeAlias = Callable[[tuple[ManifestDocument, ...]], T]
"""Compile the documents for the plugin. Raises ManifestError."""

_log = logging.getLogger(__name__)


class StaticManifests(Generic[T]):
    def __init__(self, directory: str, load: Load[T], *, plugin: str, server_id: str = "", every: float = 1.0) -> None:
        """Load the manifests. Raises ManifestError."""
        self._directory, self._load, self._plugin, self._every = directory, load, plugin, every
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

    async def run(self) -> None:
        """Watch the directory until cancelled."""
        await poll(self.look, every=self._every)

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
