"""The groups under /apis, in the order in which they are installed."""

from __future__ import annotations

from pilothouse.kube.served import RESTStorageProvider

STORAGE_PROVIDERS: tuple[RESTStorageProvider, ...] = ()
