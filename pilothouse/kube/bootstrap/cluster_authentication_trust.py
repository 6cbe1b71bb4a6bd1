"""The ConfigMap extension-apiserver-authentication: trusted client CAs and front proxies.

Names and certificates of other servers are kept; certificates until they expire or are retired.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Iterable, Sequence
from dataclasses import field
from datetime import timedelta
from functools import partial
from pathlib import Path

import orjson

from pilothouse.apiserver.authn.authorities import certificates_in
from pilothouse.apiserver.authn.request_header import STANDARD, RequestHeaders
from pilothouse.apiserver.file_watch import FileWatch
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.server.hooks import HookContext
from pilothouse.kube.bootstrap.periodic import repeat, try_once
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.machinery.times import system_clock

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"
CLIENT_CA = "client-ca-file"
FRONT_PROXY_CA = "requestheader-client-ca-file"

_PERIOD = 60.0
_LOOK_EVERY = 5.0
"""Changed files are written sooner."""
_SLACK = timedelta(minutes=5)
"""Seconds to keep expired certificates of other servers."""


@dataclass(frozen=True, slots=True)
class ClusterAuthenticationInfo:
    """CA files, and headers and names of front proxies."""

    client_cas: Sequence[Path] = ()
    front_proxy_cas: Sequence[Path] = ()
    allowed_names: Sequence[str] = ()
    headers: RequestHeaders = field(default=STANDARD)
    retired: Path | None = None
    """File of CAs without trust, removed whoever wrote them; the file is optional."""

    @property
    def lists(self) -> dict[str, Sequence[str]]:
        return {
            "requestheader-allowed-names": self.allowed_names,
            "requestheader-extra-headers-prefix": self.headers.extra_prefix,
            "requestheader-group-headers": self.headers.group,
            "requestheader-username-headers": self.headers.username,
            **({"requestheader-uid-headers": self.headers.uid} if self.headers.uid else {}),
        }


class ClusterAuthenticationTrust:
    def __init__(self, config_maps: OwnAccess, own: ClusterAuthenticationInfo) -> None:
        self._config_maps = config_maps
        self._own = own
        files = [*own.client_cas, *own.front_proxy_cas, *([own.retired] if own.retired else ())]
        self._watch = FileWatch(files)
        self._next_sync = 0.0

    async def start(self, context: HookContext) -> None:
        sync = partial(try_once, self._sync_if_due, f"error while syncing ConfigMap {NAMESPACE}/{NAME}")
        await sync()
        context.spawn(repeat(sync, every=_LOOK_EVERY), name="cluster-authentication-info-controller")

    async def _sync_if_due(self) -> None:
        now = time.monotonic()
        if await asyncio.to_thread(self._watch.changed) or now >= self._next_sync:
            self._next_sync = now  # until the first success
            await self.sync()
            self._next_sync = now + _PERIOD

    async def sync(self) -> None:
        """Update the ConfigMap from the current files. Raise StatusError, OSError, ValueError."""
        users = await asyncio.to_thread(_read, self._own.client_cas)
        proxies = await asyncio.to_thread(_read, self._own.front_proxy_cas)
        retired = await asyncio.to_thread(self._retired)
        existing = await self._config_maps.get(NAME, namespace=NAMESPACE)
        before: dict[str, str] = (existing or {}).get("data") or {}
        data = {CLIENT_CA: _join_bundles(before.get(CLIENT_CA, ""), users, retired)}
        if proxies:  # the headers mean something only together with a CA
            data[FRONT_PROXY_CA] = _join_bundles(before.get(FRONT_PROXY_CA, ""), proxies, retired)
            data |= {name: _joined(before.get(name, ""), own) for name, own in self._own.lists.items()}
        data = before | {name: value for name, value in data.items() if value}
        if data == before:
            return
        if existing is None:
            metadata: Json = {"name": NAME, "namespace": NAMESPACE}
            await self._config_maps.ensure(
                {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": data}
            )
        else:
            await self._config_maps.update(existing, lambda obj: obj.update(data=data))

    def _retired(self) -> list[bytes]:
        file = self._own.retired
        return certificates_in(file.read_text(encoding="utf-8")) if file is not None and file.exists() else []


def _read(files: Iterable[Path]) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in files]


def _joined(before: str, own: Sequence[str]) -> str:
    """Append our words to a JSON list. Raise ValueError for an invalid list."""
    return orjson.dumps(list(dict.fromkeys([*(orjson.loads(before) if before else ()), *own]))).decode()


def _join_bundles(found: str, own: Iterable[str], retired: Sequence[bytes] = ()) -> str:
    """Merge stored certificates, except retired certificates, with our own, without duplicates.

    Raise ValueError for an invalid certificate.
    """
    ours = [cert for bundle in own for cert in certificates_in(bundle)]
    joined = dict.fromkeys([*certificates_in(found), *ours])
    kept = [cert for cert in joined if cert in ours or not (cert in retired or _has_expired(cert))]
    return "".join(map(ssl.DER_cert_to_PEM_cert, kept))


def _has_expired(certificate: bytes) -> bool:
    """Report whether a certificate has expired. Imports cryptography, which a start on a new store avoids."""
    from cryptography import x509

    return x509.load_der_x509_certificate(certificate).not_valid_after_utc < system_clock() - _SLACK
