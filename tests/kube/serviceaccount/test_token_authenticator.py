"""Which tokens are read, which are believed, and for whom they are meant."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import jwt
import pytest
from service_account_tokens import ISSUER, Objects, SetClock, claims, write_key

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.serviceaccount.authenticator import ServiceAccountTokenAuthenticator
from pilothouse.kube.serviceaccount.keys import SigningKey, TokenIssuer
from pilothouse.kube.serviceaccount.validator import BoundTokenValidator


@pytest.fixture
def config(tmp_path: Path) -> ServiceAccountConfig:
    return ServiceAccountConfig(signing_key_file=write_key(tmp_path / "sa.key"), issuers=(ISSUER, "older"))


def authenticator(config: ServiceAccountConfig, objects: Objects | None = None) -> ServiceAccountTokenAuthenticator:
    return ServiceAccountTokenAuthenticator(config, BoundTokenValidator(objects or Objects(), SetClock()))


def issuer(config: ServiceAccountConfig, name: str = ISSUER) -> TokenIssuer:
    assert config.signing_key_file is not None
    return TokenIssuer(name, SigningKey(config.signing_key_file))


async def test_a_token_of_our_own_is_believed(config: ServiceAccountConfig) -> None:
    found = await authenticator(config).authenticate_token(await issuer(config).sign(claims()))
    assert found is not None
    assert found.user.name == "system:serviceaccount:ns:robot"
    assert found.audiences == (ISSUER,)


async def test_a_tokens_header_names_algorithm_and_key_and_nothing_else(config: ServiceAccountConfig) -> None:
    own = issuer(config)
    assert jwt.get_unverified_header(await own.sign(claims())) == {"alg": "ES256", "kid": own.key.verifying.id}


async def test_tokens_of_older_issuers_are_believed_and_those_of_others_not_read(config: ServiceAccountConfig) -> None:
    older, other = await issuer(config, "older").sign(claims()), await issuer(config, "other").sign(claims())
    assert await authenticator(config).authenticate_token(older) is not None
    assert await authenticator(config).authenticate_token(other) is None


@pytest.mark.parametrize("token", ["", "bad", "a.b.c", "a.e30.c", "a.W10.c", "a.eyJpc3MiOjF9.c", '{"a": 1}.x.y'])
async def test_what_is_no_token_of_ours_is_not_read(token: str, config: ServiceAccountConfig) -> None:
    assert await authenticator(config).authenticate_token(token) is None


@pytest.mark.parametrize("header", ["!!", b64encode(b"[" * 99_999).decode()], ids=["garbage", "deeply nested"])
async def test_a_token_without_a_readable_header_is_not_read(header: str, config: ServiceAccountConfig) -> None:
    _, payload, signature = (await issuer(config).sign(claims())).split(".")
    assert await authenticator(config).authenticate_token(f"{header}.{payload}.{signature}") is None


async def test_a_changed_token_is_refused(config: ServiceAccountConfig) -> None:
    mine, root = await issuer(config).sign(claims()), claims() | {"sub": "root"}
    header, _, signature = mine.split(".")
    payload = (await issuer(config).sign(root)).split(".")[1]
    with pytest.raises(InvalidToken, match="error in cryptographic primitive"):
        await authenticator(config).authenticate_token(f"{header}.{payload}.{signature}")


async def test_an_unsigned_token_is_refused(config: ServiceAccountConfig) -> None:
    token = jwt.encode(claims() | {"iss": ISSUER}, "", algorithm="none")
    with pytest.raises(InvalidToken, match="error in cryptographic primitive"):
        await authenticator(config).authenticate_token(token)


async def test_a_token_signed_with_another_key_is_refused(config: ServiceAccountConfig, tmp_path: Path) -> None:
    other = replace(config, signing_key_file=write_key(tmp_path / "other.key"))
    with pytest.raises(InvalidToken, match="invalid signature, no keys found"):
        await authenticator(config).authenticate_token(await issuer(other).sign(claims()))


async def test_a_retired_key_is_believed_while_it_is_among_the_key_files(
    config: ServiceAccountConfig, tmp_path: Path
) -> None:
    retired, fresh = config.signing_key_file, write_key(tmp_path / "fresh.key")
    assert retired is not None
    token = await issuer(config).sign(claims())
    rotated = replace(config, signing_key_file=fresh, key_files=(fresh, retired))
    assert await authenticator(rotated).authenticate_token(token) is not None


async def test_a_token_counts_for_the_audiences_that_were_asked_for(config: ServiceAccountConfig) -> None:
    token = await issuer(config).sign(claims(audiences=["vault", "db"]))
    found = await authenticator(config).authenticate_token(token, ["web", "db", "vault"])
    assert found is not None
    assert found.audiences == ("db", "vault")


async def test_a_token_for_others_is_refused(config: ServiceAccountConfig) -> None:
    token = await issuer(config).sign(claims(audiences=["vault", "db"]))
    with pytest.raises(InvalidToken) as refusal:
        await authenticator(replace(config, api_audiences=("api",))).authenticate_token(token)
    why = 'token audiences ["vault" "db"] is invalid for the target audiences ["api"]'
    assert refusal.value.args == (why,)


async def test_a_token_that_was_good_is_checked_again(config: ServiceAccountConfig) -> None:
    objects = Objects()
    known, token = authenticator(config, objects), await issuer(config).sign(claims())
    assert await known.authenticate_token(token) is not None
    objects.known.clear()
    with pytest.raises(InvalidToken, match="not found"):
        await known.authenticate_token(token)
