"""Metrics of static manifests: number of loads, time of the last load, and hash in use."""

from __future__ import annotations

import hashlib

from prometheus_client import Gauge

from pilothouse.apiserver.metrics import REGISTRY
from pilothouse.apiserver.tallies import CounterTally

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
