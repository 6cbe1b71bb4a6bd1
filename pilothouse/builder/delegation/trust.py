"""Whom the cluster believes, as its ConfigMap says: CAs of users, CAs of front proxies, and how these name users.

What it says badly, or no longer, changes nothing: the last that made sense goes on, as upstream has it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import orjson

from pilothouse.apiserver.authn.authorities import certificates_in
from pilothouse.apiserver.authn.request_header import RequestHeaderAuthenticator, RequestHeaders
from pilothouse.controlplane.certificates.issue import certificate_pem, new_authority, new_key
from pilothouse.kube.bootstrap.cluster_authentication_trust import CLIENT_CA, FRONT_PROXY_CA
from pilothouse.machinery.objects import Json
from pilothouse.machinery.whole_files import PUBLIC, write_atomically

_log = logging.getLogger(__name__)


class TrustedAuthority:
    """The CAs that one key of the ConfigMap holds: in memory for authenticators, and in a file, which is what TLS
    reads."""

    def __init__(self, key: str, file: Path) -> None:
        self._key = key
        self.file = file
        self._pem = ""
        self._certificates: frozenset[bytes] = frozenset()

    def __call__(self) -> frozenset[bytes]:
        return self._certificates

    def make_file(self) -> None:
        """TLS can ask for certificates only of somebody: as long as nobody is trusted, of a CA without a key."""
        self._write(certificate_pem(new_authority("nobody", new_key())))

    def take(self, data: Mapping[str, str]) -> None:
        pem = data.get(self._key) or ""
        if not pem or pem == self._pem:
            return
        try:
            certificates = _certificates(pem)
        except ValueError as error:
            _log.error("The new %s of the cluster cannot be used, the old one stays: %s", self._key, error)
            return
        self._write(pem.encode())
        self._pem, self._certificates = pem, certificates

    def _write(self, pem: bytes) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.file, pem, mode=PUBLIC)


class ClusterTrust:
    """Is the store of the reflector that follows the ConfigMap."""

    def __init__(self, folder: Path) -> None:
        self.users = TrustedAuthority(CLIENT_CA, folder / "client-ca.crt")
        self.proxies = TrustedAuthority(FRONT_PROXY_CA, folder / "front-proxy-ca.crt")
        self.front_proxy = RequestHeaderAuthenticator(RequestHeaders((), (), (), ()), self.proxies)
        """By the headers and names of this moment."""

    @property
    def files(self) -> tuple[Path, ...]:
        return self.users.file, self.proxies.file

    def make_files(self) -> None:
        """From here on there are files that TLS can read. Raises OSError."""
        for authority in (self.users, self.proxies):
            authority.make_file()

    def take(self, config_map: Json) -> None:
        """Raises OSError where the files cannot be written."""
        data = config_map.get("data") or {}
        self.users.take(data)
        self.proxies.take(data)
        try:
            self.front_proxy = _front_proxy(data, self.proxies)
        except ValueError as error:
            _log.error("The new headers of front proxies cannot be used, the old ones stay: %s", error)

    def add(self, obj: Json) -> None:
        self.take(obj)

    def update(self, obj: Json) -> None:
        self.take(obj)

    def delete(self, obj: Json) -> None:
        return

    def replace(self, objects: list[Json]) -> None:
        for obj in objects:
            self.take(obj)

    def resync(self) -> None:
        return


def _front_proxy(data: Mapping[str, str], authority: TrustedAuthority) -> RequestHeaderAuthenticator:
    """Raises ValueError."""
    headers = RequestHeaders(
        username=_texts(data, "requestheader-username-headers"),
        uid=_texts(data, "requestheader-uid-headers"),
        group=_texts(data, "requestheader-group-headers"),
        extra_prefix=_texts(data, "requestheader-extra-headers-prefix"),
    )
    return RequestHeaderAuthenticator(headers, authority, _texts(data, "requestheader-allowed-names"))


def _texts(data: Mapping[str, str], key: str) -> tuple[str, ...]:
    """Raises ValueError for what is no JSON list of strings; what is not there is an empty one."""
    found = orjson.loads(data.get(key) or "[]")
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise ValueError(f"{key} is no list of strings")
    return tuple(found)


def _certificates(pem: str) -> frozenset[bytes]:
    """DER. Raises ValueError for what is no certificate, or none."""
    from cryptography import x509

    x509.load_pem_x509_certificates(pem.encode())
    return frozenset(certificates_in(pem))
