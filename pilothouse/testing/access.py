"""The access of a test to its server, in whatever form it runs: its place, and credentials for whomever the test wants
to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from pilothouse.client.config.kubeconfig import load_kubeconfig
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.machinery.dataclass import dataclass

if TYPE_CHECKING:
    from pilothouse.client.config.model import ClientConfig
    from pilothouse.testing.home import Home

A = TypeVar("A", bound="ServerAccess")


@dataclass(slots=True)
class ServerAccess:
    """Where a running server is, as one user of it."""

    url: str
    kubeconfig: Path
    """A kubeconfig file for this user: the administrator's, unless `as_user` said otherwise."""
    token: str = field(repr=False)
    """A bearer token that may do everything; empty for a user of `as_user`, who is known by a certificate."""
    home: Home = field(repr=False)

    @property
    def ca(self) -> Path:
        """The CA that the server's certificate is from."""
        return self.home.data_dir / "pki" / "ca.crt"

    def config(self) -> ClientConfig:
        """Return the client configuration of the kubeconfig, without a limit on the rate."""
        return replace(load_kubeconfig(self.kubeconfig), qps=0)

    def as_user(self: A, name: str, *, groups: Iterable[str] = ()) -> A:
        """Return the same server as somebody else sees it, with a kubeconfig and a certificate of their own."""
        return replace(self, kubeconfig=self._kubeconfig_for(name, tuple(groups)), token="")

    def _kubeconfig_for(self, name: str, groups: tuple[str, ...]) -> Path:
        from pilothouse.controlplane.certificates.issue import Profile
        from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate
        from pilothouse.controlplane.certificates.kubeconfig import write_kubeconfig
        from pilothouse.controlplane.certificates.paths import CertificatePaths

        paths = CertificatePaths.under(self.home.data_dir)
        file = self.home.scratch / sha256(repr((name, groups)).encode()).hexdigest()[:16]
        cert, key = file.with_suffix(".crt"), file.with_suffix(".key")
        authority = keep_authority("kubernetes", paths.ca_cert, paths.ca_key)
        keep_certificate(Profile(name, organizations=groups), authority, cert, key)
        kubeconfig = file.with_suffix(".kubeconfig")
        write_kubeconfig(kubeconfig, server_url=self.url, ca=paths.ca_cert, cert=cert, key=key)
        return kubeconfig


def http_request(
    method: str, target: str, body: Any, media: str, accept: str, headers: Mapping[str, str]
) -> HttpRequest:
    """Return the request; a body that is neither bytes nor text is sent as JSON."""
    sent = {"accept": accept, "content-type": media, **headers}
    return HttpRequest(method, target, sent, _data(body))


def _data(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    return body if isinstance(body, bytes) else orjson.dumps(body)
