"""Discovery of one Service. APIServices of the same Service share one request and its outcome, success or failure."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

from pilothouse.aggregator.discovery.decoding import (
    MalformedDiscovery,
    Versions,
    decode_group_list,
    decode_resource_list,
)
from pilothouse.aggregator.download import TIMEOUT, Download, DownloadFailed
from pilothouse.apiserver.authn.user import SYSTEM_PRIVILEGED_GROUP, User
from pilothouse.apiserver.endpoints.negotiation import parse_accept
from pilothouse.apiserver.http import Handler
from pilothouse.machinery.names import GroupVersion

_USER = User("system:kube-aggregator", groups=(SYSTEM_PRIVILEGED_GROUP,))
_LEGACY_USER = User("system:kube-aggregator")
_KINDS = [{"g": "apidiscovery.k8s.io", "v": version, "as": "APIGroupDiscoveryList"} for version in ("v2", "v2beta1")]
_ACCEPT = ",".join(f"application/json;g={kind['g']};v={kind['v']};as={kind['as']}" for kind in _KINDS)

TICKS: Iterator[int] = itertools.count(1)
"""Logical clock that orders requests and changes."""


class ServiceDiscovery:
    _asked_at: int  # tick of the newest request; callers that need a newer answer send another request
    _outcome: Versions | DownloadFailed | None  # None if the server lacks aggregated discovery
    _known: Versions  # last answer, for 304 responses
    _etag: str

    def __init__(self, *, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._lock = asyncio.Lock()
        self._asked_at = 0
        self._outcome = None
        self._known = {}
        self._etag = ""

    async def versions(self, handler: Handler, group_version: GroupVersion, *, since: int) -> Versions:
        """Return discovery requested after the tick `since`. Raises DownloadFailed."""
        async with self._lock:
            if self._asked_at <= since:
                self._asked_at = next(TICKS)
                self._outcome = await self._ask(handler)
        if isinstance(self._outcome, DownloadFailed):
            raise DownloadFailed(str(self._outcome))
        if self._outcome is None:
            path = f"/apis/{group_version}"
            answer = await Download(path, _LEGACY_USER, timeout=self._timeout).get(handler)
            if answer.status != 200:
                raise DownloadFailed(f"{path}: status {answer.status}")
            try:
                return await asyncio.to_thread(decode_resource_list, answer.body, group_version)
            except MalformedDiscovery as error:
                raise DownloadFailed(f"{path}: {error}") from None
        return self._outcome

    async def _ask(self, handler: Handler) -> Versions | DownloadFailed | None:
        wanted = Download("/apis", _USER, accept=_ACCEPT, etag=self._etag, timeout=self._timeout)
        try:
            answer = await wanted.get(handler)
            if answer.status == 304 and self._etag:
                return self._known
            if answer.status == 503:
                raise DownloadFailed("/apis: the service is unavailable")
            if answer.status != 200 or not _is_aggregated(answer.content_type):
                return None
            self._known = await asyncio.to_thread(decode_group_list, answer.body)
            self._etag = answer.etag
            return self._known
        except DownloadFailed as failure:
            return failure
        except MalformedDiscovery as error:
            return DownloadFailed(f"/apis: {error}")


def _is_aggregated(content_type: str) -> bool:
    clauses = parse_accept(content_type)
    return any(kind.items() <= dict(clause.params).items() for clause in clauses for kind in _KINDS)
