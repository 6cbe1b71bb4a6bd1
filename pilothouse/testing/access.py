"""Access of a test to its server: its address, and credentials of any user."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from pilothouse.client.config.kubeconfig import load_kubeconfig, read_kubeconfig
from pilothouse.client.rest.errors import error_from
from pilothouse.client.rest.transport import HttpRequest
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.client.config.model import ClientConfig
    from pilothouse.testing.api import API
    from pilothouse.testing.home import Home


A = TypeVar("A", bound="ServerAccess")

_CREATED, _CONFLICT = 201, 409


@dataclass(slots=True)
class ServerAccess:
    """Address of a running server, and one of its users."""

    url: str
    kubeconfig: Path
    """Kubeconfig file of this user; the administrator unless `as_user` selected another user."""
    token: str = field(repr=False)
    """Bearer token of the administrator; empty for a user of `as_user`, who has a client certificate."""
    home: Home = field(repr=False)

    @property
    def ca(self) -> Path:
        """CA file of the server's certificate."""
        return self.home.data_dir / "pki" / "ca.crt"

    def config(self) -> ClientConfig:
        """Return the client configuration of the kubeconfig, without a rate limit."""
        return replace(load_kubeconfig(self.kubeconfig), qps=0)

    def as_user(self: A, name: str, *, groups: Iterable[str] = ()) -> A:
        """Return the same server for another user, with a kubeconfig and a client certificate."""
        return replace(self, kubeconfig=self._kubeconfig_for(name, tuple(groups)), token="")

    def _kubeconfig_for(self, name: str, groups: tuple[str, ...]) -> Path:
        from pilothouse.controlplane.certificates.ensure import write_kubeconfig
        from pilothouse.controlplane.certificates.issue import Profile
        from pilothouse.controlplane.certificates.keep import keep_authority, keep_certificate
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
    """Return the request. A body that is neither bytes nor str is sent as JSON."""
    all_headers = {"accept": accept, "content-type": media, **headers}
    return HttpRequest(method, target, all_headers, _data(body))


def _data(body: Any) -> bytes:
    if body is None:
        return b""
    if isinstance(body, str):
        return body.encode()
    return body if isinstance(body, bytes) else orjson.dumps(body)


async def kubeconfig_of_account(api: API, account: str) -> Path:
    """Write a kubeconfig with a token of the service account `namespace/name`, and create a missing account.

    Raises ValueError for an invalid name, and the server's StatusError.
    """
    namespace, slash, name = account.partition("/")
    if not slash:
        raise ValueError(f"invalid service account {account!r}: expected namespace/name")
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    created = await api.request("POST", accounts, {"metadata": {"name": name}})
    if created.status not in (_CREATED, _CONFLICT):
        raise error_from(created.status, created.headers, created.body)
    answer = await api.request("POST", f"{accounts}/{name}/token", {"spec": {}})
    if answer.status != _CREATED:
        raise error_from(answer.status, answer.headers, answer.body)
    token: str = answer.json["status"]["token"]
    file = api.home.scratch / f"{sha256(token.encode()).hexdigest()[:16]}.kubeconfig"
    return kubeconfig_with(api.kubeconfig, {"token": token}, file)


def kubeconfig_with(source: Path, user: Json, file: Path, *, keep: bool = False) -> Path:
    """Write a kubeconfig for the current context of `source` with another user, and return its path.

    With `keep`, the fields of `user` are added to the user of `source`.
    """
    config = read_kubeconfig(source)
    context = next(item["context"] for item in config["contexts"] if item["name"] == config["current-context"])
    cluster = next(item for item in config["clusters"] if item["name"] == context["cluster"])
    before = next((item.get("user") or {} for item in config["users"] if item["name"] == context.get("user")), {})
    merged = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": "test", "user": {**(before if keep else {}), **user}}],
        "contexts": [{"name": "test", "context": {**context, "user": "test"}}],
        "current-context": "test",
    }
    file.touch(mode=0o600)
    file.write_bytes(emit_yaml(merged))
    return file


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: status, headers with lower-case names, and the whole body.

    >>> from pilothouse.testing import Server
    >>> with Server() as api:
    ...     answer = api.request("GET", "/api/v1/namespaces/nowhere")
    >>> answer.status, answer.json["reason"]
    (404, 'NotFound')
    """

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The parsed body. Raises ValueError if the body is not JSON."""
        return orjson.loads(self.body)

    @property
    def events(self) -> list[Any]:
        """The events of a completed watch."""
        return [orjson.loads(line) for line in self.body.splitlines()]
