"""Service accounts of a test's server, with tokens as pods have them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pilothouse.client.rest.errors import error_from
from pilothouse.testing.kubeconfigs import kubeconfig_with

if TYPE_CHECKING:
    from pilothouse.testing.api import API

_CREATED, _CONFLICT = 201, 409


async def kubeconfig_of_account(api: API, account: str) -> Path:
    """Write a kubeconfig with a token of the service account `namespace/name`, which is made if it is not there.

    Raises ValueError for another form of name, and the server's StatusError.
    """
    namespace, slash, name = account.partition("/")
    if not slash:
        raise ValueError(f"a service account is named as namespace/name, not {account!r}")
    accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
    made = await api.request("POST", accounts, {"metadata": {"name": name}})
    if made.status not in (_CREATED, _CONFLICT):
        raise error_from(made.status, made.headers, made.body)
    answer = await api.request("POST", f"{accounts}/{name}/token", {"spec": {}})
    if answer.status != _CREATED:
        raise error_from(answer.status, answer.headers, answer.body)
    token: str = answer.json["status"]["token"]
    file = api.home.scratch / f"{sha256(token.encode()).hexdigest()[:16]}.kubeconfig"
    return kubeconfig_with(api.kubeconfig, {"token": token}, file)
