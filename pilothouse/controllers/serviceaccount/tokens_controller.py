"""serviceaccount-token-controller: populates token secrets, and deletes them with their account.

Two queues: deleted accounts take their token secrets with them; secrets are populated or deleted, and references to
deleted secrets are removed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import TypeVar

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import DeleteOptions
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.certificates.root_ca_publisher import RootCA
from pilothouse.controllers.context import ControllerContext, ObjectSelection, SignToken, with_last_state
from pilothouse.controllers.resources import SECRETS, SERVICE_ACCOUNTS
from pilothouse.controllers.serviceaccount import token_secrets
from pilothouse.machinery.dataclass import dataclass
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

K = TypeVar("K", bound=Hashable)

_MAX_RETRIES = 10
_REFERENCE_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class _AccountKey:
    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, account: Json) -> _AccountKey:
        return cls(namespace_of(account), name_of(account), uid_of(account))

    @property
    def as_account(self) -> Json:
        return {"metadata": {"namespace": self.namespace, "name": self.name, "uid": self.uid}}


@dataclass(frozen=True, slots=True)
class _SecretKey:
    namespace: str
    name: str
    uid: str
    account: str
    account_uid: str
    """Empty if the secret does not have the uid yet."""

    @classmethod
    def of(cls, secret: Json) -> _SecretKey:
        annotations = annotations_of(secret)
        return cls(
            namespace_of(secret),
            name_of(secret),
            uid_of(secret),
            annotations.get(token_secrets.ACCOUNT_NAME, ""),
            annotations.get(token_secrets.ACCOUNT_UID, ""),
        )


async def run(context: ControllerContext) -> None:
    sign = context.config.sign_token
    if sign is not None:
        root_ca = RootCA(context.config)
        await _TokensController(context, TokenFiller(context.client, root_ca, sign), root_ca).run()


class _TokensController:
    def __init__(self, context: ControllerContext, filler: TokenFiller, root_ca: RootCA) -> None:
        self._accounts = context.informer(SERVICE_ACCOUNTS)
        self._secrets = context.informer(SECRETS, ObjectSelection(field_selector=token_secrets.ARE_TOKENS))
        self._account_queue = context.queue("serviceaccount_tokens_service", _AccountKey)
        self._secret_queue = context.queue("serviceaccount_tokens_service", _SecretKey)
        self._context = context
        self._filler = filler
        self._root_ca = root_ca

    async def run(self) -> None:
        self._accounts.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._enqueue_account,
                update=lambda old, new: self._enqueue_account(new),
                delete=with_last_state(self._enqueue_account),
            )
        )
        self._secrets.add_event_handler(
            ResourceEventHandlerFuncs(
                add=self._enqueue_secret,
                update=lambda old, new: self._enqueue_secret(new),
                delete=with_last_state(self._enqueue_secret),
            )
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._root_ca.follow(self._enqueue_all_secrets))
            tasks.create_task(self._controller(self._sync_account, self._account_queue).run())
            tasks.create_task(self._controller(self._sync_secret, self._secret_queue).run())

    def _controller(self, sync: Callable[[K], Awaitable[None]], queue: RateLimitingQueue[K]) -> Controller[K]:
        return Controller(
            "serviceaccount_tokens",
            sync,
            caches=(self._accounts, self._secrets),
            workers=self._context.config.concurrent_serviceaccount_token_syncs,
            queue=queue,
            max_retries=_MAX_RETRIES,
            clock=self._context.clock,
        )

    def _enqueue_account(self, account: Json) -> None:
        self._account_queue.add(_AccountKey.of(account))

    def _enqueue_secret(self, secret: Json) -> None:
        if annotations_of(secret).get(token_secrets.ACCOUNT_NAME):
            self._secret_queue.add(_SecretKey.of(secret))

    def _enqueue_all_secrets(self) -> None:
        for secret in self._secrets.indexer.list():
            self._enqueue_secret(secret)

    async def _sync_account(self, key: _AccountKey) -> None:
        if self._cached_account(key.namespace, key.name, key.uid) is not None:
            return
        for secret in self._secrets.indexer.by_index("namespace", key.namespace):
            if token_secrets.is_token_of(secret, key.as_account):
                await self._delete(secret)

    async def _sync_secret(self, key: _SecretKey) -> None:
        secret = self._secrets.indexer.get_by_key(f"{key.namespace}/{key.name}")
        if secret is None or uid_of(secret) != key.uid:
            if self._cached_account(key.namespace, key.account, key.account_uid) is not None:
                await self._remove_reference(key)
            return
        account = await self._account(key)
        if account is None:
            await self._delete(secret)
        else:
            await self._filler.fill(account, secret)

    def _cached_account(self, namespace: str, name: str, uid: str) -> Json | None:
        account = self._accounts.indexer.get_by_key(f"{namespace}/{name}")
        return account if account is not None and uid in ("", uid_of(account)) else None

    async def _account(self, key: _SecretKey) -> Json | None:
        """Return the account, read from the server if not cached: the cache may lack a new account."""
        if (cached := self._cached_account(key.namespace, key.account, key.account_uid)) is not None:
            return cached
        accounts = self._context.client.for_resource(SERVICE_ACCOUNTS, namespace=key.namespace)
        try:
            account = await accounts.get(key.account)
        except NotFound:
            return None
        return account if key.account_uid in ("", uid_of(account)) else None

    async def _delete(self, secret: Json) -> None:
        """Delete the secret; ignored if missing or replaced."""
        secrets = self._context.client.for_resource(SECRETS, namespace=namespace_of(secret))
        try:
            await secrets.delete(name_of(secret), DeleteOptions(uid=uid_of(secret)))
        except (NotFound, Conflict):
            return

    async def _remove_reference(self, key: _SecretKey) -> None:
        """Remove the reference to the secret. Raises Conflict on repeated concurrent writes."""
        accounts = self._context.client.for_resource(SERVICE_ACCOUNTS, namespace=key.namespace)
        for attempt in range(1, _REFERENCE_ATTEMPTS + 1):
            try:
                account = await accounts.get(key.account)
                if key.account_uid not in ("", uid_of(account)) or not token_secrets.refers_to(account, key.name):
                    return
                kept = [secret for secret in account["secrets"] if secret.get("name") != key.name]
                await accounts.update({**account, "metadata": metadata(account), "secrets": kept})
                return
            except NotFound:
                return
            except Conflict:
                if attempt == _REFERENCE_ATTEMPTS:
                    raise


class TokenFiller:
    """Populates token secrets: token, namespace and current CA."""

    def __init__(self, client: Client, root_ca: RootCA, sign: SignToken) -> None:
        self._client = client
        self._ca = root_ca
        self._sign = sign

    @property
    def _root_ca(self) -> str:
        return token_secrets.encoded(self._ca.pem)

    async def fill(self, account: Json, cached: Json) -> None:
        """Add missing data to the secret; a stale cached secret is skipped, because its update event requeues it."""
        if not self._lacking(cached):
            return
        secrets = self._client.for_resource(SECRETS, namespace=namespace_of(cached))
        try:
            secret = await secrets.get(name_of(cached))
            if resource_version_of(secret) != resource_version_of(cached):
                return
            lacking, data = self._lacking(secret), dict(secret.get("data") or {})
            if "ca.crt" in lacking:
                data["ca.crt"] = self._root_ca
            if "namespace" in lacking:
                data["namespace"] = token_secrets.encoded(namespace_of(secret).encode())
            if "token" in lacking:
                data["token"] = token_secrets.encoded(
                    (await self._sign(token_secrets.legacy_claims(account, secret))).encode()
                )
            identity = {token_secrets.ACCOUNT_NAME: name_of(account), token_secrets.ACCOUNT_UID: uid_of(account)}
            await secrets.update(
                {
                    **secret,
                    "metadata": {**metadata(secret), "annotations": annotations_of(secret) | identity},
                    "data": data,
                }
            )
        except (NotFound, Conflict):
            return

    def _lacking(self, secret: Json) -> set[str]:
        data = secret.get("data") or {}
        lacking = {key for key in ("token", "namespace") if not data.get(key)}
        return lacking | ({"ca.crt"} if self._root_ca and data.get("ca.crt") != self._root_ca else set())
