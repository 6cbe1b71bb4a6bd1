"""Population of token secrets: token, namespace and current CA."""

from __future__ import annotations

from pilothouse.client.rest.client import Client
from pilothouse.controllers.certificates.root_ca import RootCA
from pilothouse.controllers.context import SignToken
from pilothouse.controllers.resources import SECRETS
from pilothouse.controllers.serviceaccount.token_secrets import ACCOUNT_NAME, ACCOUNT_UID, encoded, legacy_claims
from pilothouse.machinery.errors import Conflict, NotFound
from pilothouse.machinery.objects import (
    Json,
    annotations_of,
    metadata,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)


class TokenFiller:
    def __init__(self, client: Client, root_ca: RootCA, sign: SignToken) -> None:
        self._client = client
        self._ca = root_ca
        self._sign = sign

    @property
    def _root_ca(self) -> str:
        return encoded(self._ca.pem)

    async def fill(self, account: Json, cached: Json) -> None:
        """Add missing data to the secret; a stale cached secret is skipped, because its update event requeues it."""
        if not self._lacking(cached):
            return
        secrets = self._client.for_resource(SECRETS, namespace=namespace_of(cached))
        try:
            secret = await secrets.get(name_of(cached))
            if resource_version_of(secret) != resource_version_of(cached):
                return
            await secrets.update(await self._filled(account, secret))
        except (NotFound, Conflict):
            return

    def _lacking(self, secret: Json) -> set[str]:
        data = secret.get("data") or {}
        lacking = {key for key in ("token", "namespace") if not data.get(key)}
        return lacking | ({"ca.crt"} if self._root_ca and data.get("ca.crt") != self._root_ca else set())

    async def _filled(self, account: Json, secret: Json) -> Json:
        lacking, data = self._lacking(secret), dict(secret.get("data") or {})
        if "ca.crt" in lacking:
            data["ca.crt"] = self._root_ca
        if "namespace" in lacking:
            data["namespace"] = encoded(namespace_of(secret).encode())
        if "token" in lacking:
            data["token"] = encoded((await self._sign(legacy_claims(account, secret))).encode())
        whose = {ACCOUNT_NAME: name_of(account), ACCOUNT_UID: uid_of(account)}
        return {
            **secret,
            "metadata": {**metadata(secret), "annotations": annotations_of(secret) | whose},
            "data": data,
        }
