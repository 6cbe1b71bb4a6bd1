"""Trust configuration of the cluster (ConfigMap extension-apiserver-authentication): user CAs, front proxy CAs,
headers.

An invalid or removed value keeps the last valid value, as upstream does.
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
from pilothouse.machinery.files import PUBLIC, write_atomically
from pilothouse.machinery.objects import Json

_log = logging.getLogger(__name__)


class TrustedAuthority:
    """CAs of one ConfigMap key: in memory for authenticators, in a file for TLS."""

    def __init__(self, key: str, file: Path) -> None:
        self._key = key
        self.file = file
        self._pem = ""
        self._certificates: frozenset[bytes] = frozenset()

    def __call__(self) -> frozenset[bytes]:
        return self._certificates

    def make_file(self) -> None:
        """Write a placeholder CA without a key: TLS requests client certificates only if a CA is configured."""
        self._write(certificate_pem(new_authority("nobody", new_key())))

    def take(self, data: Mapping[str, str]) -> None:
        """Load the CAs from the data of the ConfigMap. Invalid data is logged and ignored."""
        pem = data.get(self._key) or ""
        if not pem or pem == self._pem:
            return
        try:
            certificates = _certificates(pem)
        except ValueError as error:
            _log.error("invalid %s in the cluster, the previous value stays in use: %s", self._key, error)
            return
        self._write(pem.encode())
        self._pem, self._certificates = pem, certificates

    def _write(self, pem: bytes) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.file, pem, mode=PUBLIC)


class ClusterTrust:
    """The trust configuration; also the store of the reflector that follows the ConfigMap."""

    def __init__(self, folder: Path) -> None:
        self.users = TrustedAuthority(CLIENT_CA, folder / "client-ca.crt")
        self.proxies = TrustedAuthority(FRONT_PROXY_CA, folder / "front-proxy-ca.crt")
        self.front_proxy = RequestHeaderAuthenticator(RequestHeaders((), (), (), ()), self.proxies)
        """Authenticator with the current headers and names."""

    @property
    def files(self) -> tuple[Path, ...]:
        return self.users.file, self.proxies.file

    def make_files(self) -> None:
        """Create placeholder files for TLS. Raises OSError."""
        for authority in (self.users, self.proxies):
            authority.make_file()

    def take(self, config_map: Json) -> None:
        """Load the ConfigMap. Raises OSError if a file cannot be written."""
        data = config_map.get("data") or {}
        self.users.take(data)
        self.proxies.take(data)
        try:
            self.front_proxy = _front_proxy(data, self.proxies)
        except ValueError as error:
            _log.error("invalid front proxy headers in the cluster, the previous headers stay in use: %s", error)

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
    """Parse a JSON list of strings; empty if absent. Raises ValueError."""
    texts = orjson.loads(data.get(key) or "[]")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise ValueError(f"{key} is not a list of strings")
    return tuple(texts)


def _certificates(pem: str) -> frozenset[bytes]:
    """Return the certificates in DER. Raises ValueError if there are none, or one is invalid."""
    from cryptography import x509

    x509.load_pem_x509_certificates(pem.encode())
    return frozenset(certificates_in(pem))
