"""Tokens that are kept in secrets are believed while secret and account are there."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from service_account_tokens import write_key

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.sqlite.store import SqliteStore
from pilothouse.controllers.serviceaccount.token_secrets import LEGACY_ISSUER, legacy_claims
from pilothouse.kube.core.secrets import SECRETS
from pilothouse.kube.core.serviceaccounts import SERVICE_ACCOUNTS
from pilothouse.kube.registries import Registries
from pilothouse.kube.serviceaccount.authenticator import ServiceAccountTokenAuthenticator
from pilothouse.kube.serviceaccount.config import ServiceAccountConfig
from pilothouse.kube.serviceaccount.getter import StoredTokenObjects
from pilothouse.kube.serviceaccount.issuer import TokenIssuer
from pilothouse.kube.serviceaccount.keys import SigningKey
from pilothouse.kube.serviceaccount.legacy import LegacyValidator, SecretUses
from pilothouse.machinery.objects import Json, labels_of
from pilothouse.machinery.times import system_clock

INVALID = "kubernetes.io/legacy-token-invalid-since"


@dataclass(frozen=True)
class Tokens:
    authenticator: ServiceAccountTokenAuthenticator
    secrets: OwnAccess
    accounts: OwnAccess
    issuer: TokenIssuer

    async def user(self, token: str) -> str:
        found = await self.authenticator.authenticate_token(token)
        assert found is not None
        return found.user.name

    async def refusal(self, token: str) -> str:
        with pytest.raises(InvalidToken) as refused:
            await self.authenticator.authenticate_token(token)
        return str(refused.value)

    async def issue(self) -> str:
        """For the account robot, kept in the secret token."""
        secret: Json = {"metadata": {"name": "token", "namespace": "ns"}}
        secret["metadata"]["annotations"] = {"kubernetes.io/service-account.name": "robot"}
        await self.accounts.create({"metadata": {"name": "robot", "namespace": "ns"}})
        account = await self.accounts.get("robot", namespace="ns")
        assert account is not None
        token = await self.issuer.sign(legacy_claims(account, secret))
        data = {"token": base64.b64encode(token.encode()).decode()}
        await self.secrets.create({**secret, "type": "kubernetes.io/service-account-token", "data": data})
        return token

    async def label(self, **labels: str) -> None:
        def change(secret: Json) -> None:
            secret["metadata"]["labels"] = labels

        await self.secrets.update({"metadata": {"name": "token", "namespace": "ns"}}, change)


@pytest_asyncio.fixture
async def tokens(tmp_path: Path) -> AsyncIterator[Tokens]:
    key = write_key(tmp_path / "key")
    store = await SqliteStore.open(tmp_path)
    registries = Registries(store)
    secrets, accounts = registries.open(SECRETS), registries.open(SERVICE_ACCOUNTS)
    for registry in (secrets, accounts):
        await registry.start()
    validator = LegacyValidator(StoredTokenObjects(registries), SecretUses(OwnAccess(secrets)))
    config = ServiceAccountConfig(signing_key_file=key)
    authenticator = ServiceAccountTokenAuthenticator(config, validator, issuers=(LEGACY_ISSUER,))
    issuer = TokenIssuer(LEGACY_ISSUER, SigningKey(key))
    yield Tokens(authenticator, OwnAccess(secrets), OwnAccess(accounts), issuer)
    for registry in (secrets, accounts):
        await registry.stop()
    await store.close()


async def test_a_token_is_its_accounts_and_its_use_is_written_down(tokens: Tokens) -> None:
    token = await tokens.issue()
    assert await tokens.user(token) == "system:serviceaccount:ns:robot"
    secret = await tokens.secrets.get("token", namespace="ns")
    assert secret is not None
    assert labels_of(secret) == {"kubernetes.io/legacy-token-last-used": system_clock().date().isoformat()}


async def test_a_token_that_was_made_for_its_account_is_warned_of(tokens: Tokens) -> None:
    token = await tokens.issue()
    manual = await tokens.authenticator.authenticate_token(token)

    def refer(account: Json) -> None:
        account["secrets"] = [{"name": "token"}]

    await tokens.accounts.update({"metadata": {"name": "robot", "namespace": "ns"}}, refer)
    while (generated := await tokens.authenticator.authenticate_token(token)) == manual:
        continue  # the cache learns of a change a moment after it is stored
    assert manual is not None
    assert generated is not None
    assert dict(manual.remarks.annotations) == {
        "authentication.k8s.io/legacy-token": "system:serviceaccount:ns:robot",
        "authentication.k8s.io/legacy-token-manual-secret": "token",
    }
    assert dict(generated.remarks.annotations)["authentication.k8s.io/legacy-token-autogenerated-secret"] == "token"
    assert manual.remarks.warnings == ()
    assert generated.remarks.warnings[0].startswith("Use tokens from the TokenRequest API")


async def test_a_token_dies_with_its_secret(tokens: Tokens) -> None:
    token = await tokens.issue()
    other = await tokens.issuer.sign({"sub": "system:serviceaccount:ns:robot"})
    assert await tokens.refusal(other) == "namespace claim is missing"
    await tokens.secrets.delete("token", namespace="ns")
    assert await until_refused(tokens, token) == "Token has been invalidated"


async def test_without_lookup_a_token_is_good_while_its_key_is(tokens: Tokens, tmp_path: Path) -> None:
    token = await tokens.issue()
    await tokens.secrets.delete("token", namespace="ns")
    await until_refused(tokens, token)
    strict = tokens.authenticator._validator
    assert isinstance(strict, LegacyValidator)
    validator = LegacyValidator(strict.getter, SecretUses(tokens.secrets), lookup=False)
    config = ServiceAccountConfig(signing_key_file=tmp_path / "key")
    lax = ServiceAccountTokenAuthenticator(config, validator, issuers=(LEGACY_ISSUER,))
    found = await lax.authenticate_token(token)
    assert found is not None
    assert found.user.name == "system:serviceaccount:ns:robot"


async def test_a_token_dies_with_its_account(tokens: Tokens) -> None:
    token = await tokens.issue()
    await tokens.accounts.delete("robot", namespace="ns")
    assert await until_refused(tokens, token) == 'serviceaccounts "robot" not found'


async def test_a_token_that_was_marked_invalid_is_refused(tokens: Tokens) -> None:
    token = await tokens.issue()
    await tokens.label(**{INVALID: "2026-01-01"})
    refusal = await until_refused(tokens, token)
    assert refusal.startswith("the token in secret ns/token for service account ns/robot has been marked invalid.")


async def until_refused(tokens: Tokens, token: str) -> str:
    """The cache learns of a change a moment after it is stored."""
    while True:
        try:
            await tokens.authenticator.authenticate_token(token)
        except InvalidToken as refusal:
            return str(refusal)
