"""Tokens of an issuer over real TLS: whose they are, and that nothing but its signature makes them good."""

from __future__ import annotations

import asyncio
import base64
import hmac
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any

import jwt
import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oidc_issuer import Issuer, ec_key, jwk, oidc_issuer, rsa_key
from patience import PATIENCE

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.authn.jwt.authenticator import JWTAuthenticator, JWTAuthenticators
from pilothouse.apiserver.authn.jwt.key_set import KeySetPace, KeysUnavailable
from pilothouse.apiserver.authn.jwt.settings import ClaimOrExpression, IssuerSettings, TokenValidationRule
from pilothouse.apiserver.authn.user import User

QUICK = KeySetPace(again_after_failure=0.01, at_most_every=0.0, wait_for_keys=5.0)
SUB = ClaimOrExpression(claim="sub", prefix="oidc:")


@pytest.fixture
async def issuer() -> AsyncIterator[Issuer]:
    async with oidc_issuer() as running:
        yield running


async def authenticator(issuer: Issuer, pace: KeySetPace = QUICK, **changed: Any) -> JWTAuthenticator:
    configured = IssuerSettings(issuer.url, ("me",), username=SUB, certificate_authority=issuer.ca)
    found = JWTAuthenticator(replace(configured, **changed), pace=pace)
    await found.keys.initialize()
    return found


async def refusal(of: JWTAuthenticator, token: str) -> str:
    with pytest.raises(InvalidToken) as caught:
        await of.authenticate(token)
    return str(caught.value)


async def test_a_signed_token_is_its_user(issuer: Issuer) -> None:
    groups = ClaimOrExpression(claim="groups", prefix="g:")
    jane = await authenticator(issuer, groups=groups, uid=ClaimOrExpression(claim="oid"))
    user = await jane.authenticate(issuer.token(groups=["a", "b"], oid="7", jti="one"))
    assert user == User(
        "oidc:jane",
        "7",
        ("g:a", "g:b", "system:authenticated"),
        {"authentication.kubernetes.io/credential-id": ("JTI=one",)},
    )
    assert (await jane.authenticate(issuer.token(groups="a", oid="7"))).groups[0] == "g:a"


async def test_keys_of_both_kinds_are_believed_with_their_algorithms(issuer: Issuer) -> None:
    either = await authenticator(issuer)
    assert (await either.authenticate(issuer.token(key=ec_key(), kid="ec", algorithm="ES256"))).name == "oidc:jane"
    assert (await either.authenticate(issuer.token(algorithm="PS512"))).name == "oidc:jane"
    only = await authenticator(issuer, algorithms=("RS256",))
    assert await refusal(only, issuer.token(algorithm="RS512")) == (
        'oidc: verify token: oidc: id token signed with unsupported algorithm, expected ["RS256"] got "RS512"'
    )


def _none(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims(), "", algorithm="none", headers={"kid": "rsa"})


def _with_public_key_as_secret(issuer: Issuer) -> str:
    """The old confusion: the public key, known to all, taken for a shared secret."""
    pem = rsa_key().public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    parts = ({"alg": "HS256", "kid": "rsa"}, issuer.claims())
    signed = b".".join(base64.urlsafe_b64encode(orjson.dumps(part)).rstrip(b"=") for part in parts)
    signature = base64.urlsafe_b64encode(hmac.digest(pem, signed, "sha256")).rstrip(b"=")
    return (signed + b"." + signature).decode()


def _critical(issuer: Issuer) -> str:
    return jwt.encode(issuer.claims(), rsa_key(), algorithm="RS256", headers={"kid": "rsa", "crit": ["x"], "x": 1})


@pytest.mark.parametrize(
    "make",
    [
        _none,
        _with_public_key_as_secret,
        _critical,
        lambda issuer: issuer.token(key=rsa_key("stranger")),
        lambda issuer: issuer.token(key=ec_key(), kid="rsa", algorithm="ES256"),
        lambda issuer: issuer.token(kid="ec"),
        lambda issuer: issuer.token(kid="nobody"),
        lambda issuer: issuer.token(aud="somebody else"),
        lambda issuer: issuer.token(aud=["a", "b"]),
        lambda issuer: issuer.token(aud=None),
        lambda issuer: issuer.token(exp=int(time.time()) - 1),
        lambda issuer: issuer.token(exp=None),
        lambda issuer: issuer.token(nbf=int(time.time()) + 3600),
        lambda issuer: issuer.token(sub=None),
        lambda issuer: issuer.token(sub=7),
        lambda issuer: issuer.token(padding="x" * 200_000),
    ],
)
async def test_a_token_with_anything_wrong_is_nobodys(issuer: Issuer, make: Any) -> None:
    assert (await refusal(await authenticator(issuer), make(issuer))).startswith("oidc: ")


async def test_a_token_of_another_issuer_is_not_known_and_costs_nothing(issuer: Issuer) -> None:
    known = JWTAuthenticators([await authenticator(issuer)], ("api",))
    fetches = issuer.fetches
    for token in (issuer.token(iss="https://other"), "", "a.b.c", "a" * 1_000_000, "{}.e30.", "e30.e30"):
        assert await known.authenticate_token(token) is None
    assert issuer.fetches == fetches


async def test_the_token_is_for_the_audiences_of_the_server(issuer: Issuer) -> None:
    known = JWTAuthenticators([await authenticator(issuer)], ("api", "other"))
    found = await known.authenticate_token(issuer.token(), ["other", "alien"])
    assert found is not None
    assert found.audiences == ("other",)
    assert await known.authenticate_token(issuer.token(), ["alien"]) is None


_SHARED: dict[str, Any] = {}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
async def test_no_changed_byte_of_a_token_goes_unnoticed(data: st.DataObject) -> None:
    if "of" not in _SHARED:
        async with oidc_issuer() as issuer:
            of = await authenticator(issuer, pace=replace(QUICK, at_most_every=3600.0))
            _SHARED.update(of=of, token=issuer.token(key=ec_key(), kid="ec", algorithm="ES256"))
    token: str = _SHARED["token"]
    place = data.draw(st.integers(0, len(token) - 1))
    letter = data.draw(st.sampled_from("ABCabc019-_.=\n é"))
    changed = token[:place] + letter + token[place + 1 :]
    if _same_parts(changed, token):
        return
    with pytest.raises(InvalidToken):
        await _SHARED["of"].authenticate(changed)


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "groups"]), inner, max_size=2),
    max_leaves=5,
)
_claims = ("sub", "groups", "oid", "aud", "exp", "nbf", "jti", "email_verified", "_claim_names", "_claim_sources")


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(_claims), _json, max_size=4))
async def test_claims_of_any_shape_make_a_user_or_are_refused(changed: dict[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        if "shapes" not in _SHARED:
            issuer = await stack.enter_async_context(oidc_issuer())
            known = await authenticator(
                issuer, groups=ClaimOrExpression(claim="groups"), uid=ClaimOrExpression(claim="oid")
            )
            _SHARED["shapes"] = issuer, known
        issuer, known = _SHARED["shapes"]
        payload = orjson.dumps(issuer.claims(oid="7") | changed, default=str, option=orjson.OPT_NON_STR_KEYS)
        token = jwt.PyJWS().encode(payload, ec_key(), algorithm="ES256", headers={"kid": "ec"})
        try:
            user = await known.authenticate(token)
        except InvalidToken:
            return
        assert user.name.startswith("oidc:")
        assert all(isinstance(group, str) for group in user.groups)


def _same_parts(one: str, other: str) -> bool:
    """Base64 has bits at its end that stand for nothing."""
    try:
        return [base64.urlsafe_b64decode(f"{part}==") for part in one.split(".")] == [
            base64.urlsafe_b64decode(f"{part}==") for part in other.split(".")
        ]
    except ValueError:
        return False


async def test_a_new_key_is_fetched_when_a_token_names_it(issuer: Issuer) -> None:
    known = await authenticator(issuer)
    rotated = issuer.token(key=ec_key("second"), kid="new", algorithm="ES256")
    assert "failed to verify" in await refusal(known, rotated)
    issuer.keys = [jwk(ec_key("second"), "new")]
    users = await asyncio.gather(*(known.authenticate(rotated) for _ in range(10)))
    assert {user.name for user in users} == {"oidc:jane"}
    assert issuer.fetches == 3, "all who wait share one fetch"
    assert "failed to verify" in await refusal(known, issuer.token()), "the old key is gone"


async def test_keys_that_the_issuer_takes_back_are_not_believed_for_long(issuer: Issuer) -> None:
    known = await authenticator(issuer, pace=replace(QUICK, refresh_every=0.0))
    running = asyncio.create_task(known.keys.run())
    issuer.keys = []
    async with asyncio.timeout(PATIENCE):
        while known.keys.keys:  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0)
    running.cancel()
    assert "failed to verify" in await refusal(known, issuer.token())


async def test_strangers_do_not_make_keys_be_fetched_all_the_time(issuer: Issuer) -> None:
    known = await authenticator(issuer, pace=replace(QUICK, at_most_every=3600.0))
    for number in range(20):
        await refusal(known, issuer.token(kid=str(number)))
    assert issuer.fetches == 1


async def test_keys_that_cannot_be_fetched_again_leave_the_known_ones(issuer: Issuer) -> None:
    known = await authenticator(issuer)
    issuer.broken = True
    await refusal(known, issuer.token(kid="nobody"))
    assert (await known.authenticate(issuer.token())).name == "oidc:jane"


async def test_an_issuer_that_comes_late_is_waited_for_in_the_background(issuer: Issuer) -> None:
    issuer.broken = True
    configured = IssuerSettings(issuer.url, ("me",), username=SUB, certificate_authority=issuer.ca)
    known = JWTAuthenticator(configured, pace=QUICK)
    fetching = asyncio.create_task(known.keys.initialize())
    assert await refusal(known, issuer.token()) == "oidc: authenticator not initialized"
    issuer.broken = False
    await asyncio.wait_for(fetching, PATIENCE)
    assert (await known.authenticate(issuer.token())).name == "oidc:jane"


async def test_an_issuer_with_a_certificate_of_another_ca_is_not_believed(issuer: Issuer) -> None:
    async with oidc_issuer() as other:
        configured = IssuerSettings(issuer.url, ("me",), username=SUB, certificate_authority=other.ca)
        known = JWTAuthenticator(configured, pace=QUICK)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(known.keys.initialize(), 0.3)
    assert not known.keys.ready
    assert issuer.fetches == 0


async def problem_of(issuer: Issuer) -> str:
    """Why the keys of the issuer could not be had."""
    configured = IssuerSettings(issuer.url, ("me",), username=SUB, certificate_authority=issuer.ca)
    known = JWTAuthenticator(configured, pace=QUICK)
    with pytest.raises(KeysUnavailable) as caught:
        await known.keys._initialize()
    assert not known.keys.ready
    assert not known.keys.keys
    return str(caught.value)


async def test_keys_are_not_fetched_without_tls(issuer: Issuer) -> None:
    asked = []

    async def in_the_clear(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.json_response({"keys": issuer.keys})

    async with TestServer(_app(in_the_clear)) as plain:
        issuer.says = {"jwks_uri": f"http://127.0.0.1:{plain.port}/keys"}
        assert await problem_of(issuer) == "provider did not return JWKS URL"
    assert asked == []


@pytest.mark.parametrize("jwks_uri", [None, 7, ["https://x"], "", "/keys", "file:///etc/keys"])
async def test_an_issuer_that_does_not_say_where_its_keys_are_has_none(issuer: Issuer, jwks_uri: Any) -> None:
    issuer.says = {"jwks_uri": jwks_uri}
    assert await problem_of(issuer) == "provider did not return JWKS URL"


async def test_a_configuration_of_another_issuer_is_not_believed(issuer: Issuer) -> None:
    issuer.says = {"issuer": "https://evil"}
    assert await problem_of(issuer) == (
        f"oidc: issuer URL provided to client ({issuer.url}) did not match 'https://evil'"
    )


@pytest.mark.parametrize("keys", [None, {}, "x"])
async def test_an_answer_without_a_list_of_keys_is_no_key_set(issuer: Issuer, keys: Any) -> None:
    issuer.keys = keys
    assert await problem_of(issuer) == "oidc: the answer has no keys"


@pytest.mark.parametrize(
    "changed",
    [{"use": "enc"}, {"kty": "oct", "k": "AAAA"}, {"crv": "P-384"}, {"alg": "HS256"}, {"x": "AAAA"}],
    ids=["for encryption", "a shared secret", "of another curve", "for another algorithm", "not on the curve"],
)
async def test_a_key_that_signs_no_tokens_verifies_none(issuer: Issuer, changed: dict[str, str]) -> None:
    issuer.keys = [jwk(ec_key(), "ec") | changed, jwk(rsa_key(), "rsa")]
    known = await authenticator(issuer)
    assert "failed to verify" in await refusal(known, issuer.token(key=ec_key(), kid="ec", algorithm="ES256"))
    assert (await known.authenticate(issuer.token())).name == "oidc:jane"


def _app(handler: Any) -> web.Application:
    app = web.Application()
    app.router.add_get("/{path:.*}", handler)
    return app


async def test_the_configuration_may_be_elsewhere(issuer: Issuer) -> None:
    known = await authenticator(issuer, discovery_url=f"{issuer.url}/elsewhere")
    assert (await known.authenticate(issuer.token())).name == "oidc:jane"


async def test_an_address_must_not_be_known_to_be_unverified(issuer: Issuer) -> None:
    by_mail = await authenticator(issuer, username=ClaimOrExpression(claim="email"))
    assert (await by_mail.authenticate(issuer.token(email="j@x"))).name == "j@x"
    assert (await by_mail.authenticate(issuer.token(email="j@x", email_verified=True))).name == "j@x"
    assert await refusal(by_mail, issuer.token(email="j@x", email_verified=False)) == "oidc: email not verified"


async def test_a_required_claim_must_have_its_value(issuer: Issuer) -> None:
    strict = await authenticator(issuer, required_claims=(("hd", "example.com"),))
    assert await refusal(strict, issuer.token()) == "oidc: required claim hd not present in ID token"
    assert await refusal(strict, issuer.token(hd="evil")) == (
        "oidc: required claim hd value does not match. Got = evil, want = example.com"
    )
    assert (await strict.authenticate(issuer.token(hd="example.com"))).name == "oidc:jane"


async def test_expressions_make_the_user(issuer: Issuer) -> None:
    mapped = await authenticator(
        issuer,
        username=ClaimOrExpression(expression="claims.sub + ':x'"),
        groups=ClaimOrExpression(expression="claims.roles.split(',')"),
        uid=ClaimOrExpression(expression="string(claims.number)"),
        extra=(("example.com/tenant", "claims.tenant"), ("example.com/none", "claims.?none.orValue('')")),
        claim_rules=(TokenValidationRule("claims.exp - claims.iat <= 3600", "lives too long"),),
        user_rules=(TokenValidationRule("!user.username.startsWith('system:')", "reserved"),),
    )
    token = issuer.token(roles="a,,b", number=7, tenant=["t", "u"])
    user = await mapped.authenticate(token)
    assert (user.name, user.uid, user.groups) == ("jane:x", "7", ("a", "b", "system:authenticated"))
    assert user.extra == {"example.com/tenant": ("t", "u")}
    long = issuer.token(roles="", number=7, tenant="t", exp=int(time.time()) + 7200)
    assert await refusal(mapped, long) == (
        "oidc: error evaluating claim validation expression: "
        "validation expression 'claims.exp - claims.iat <= 3600' failed: lives too long"
    )
    reserved = issuer.token(roles="", number=7, tenant="t", sub="system:admin")
    assert (await refusal(mapped, reserved)).endswith("failed: reserved")
    assert (await refusal(mapped, issuer.token(roles="", number=7))).endswith("no such key: tenant")
    assert "must return a string or a list of strings" in await refusal(
        mapped, issuer.token(roles="", number=7, tenant=[1])
    )


def distributed(issuer: Issuer, *, path: str = "/groups", access: str = "let-me-in") -> str:
    source = {"endpoint": issuer.url + path, "access_token": access}
    return issuer.token(_claim_names={"groups": "src"}, _claim_sources={"src": source})


async def test_groups_that_are_kept_elsewhere_are_fetched_and_verified(issuer: Issuer) -> None:
    known = await authenticator(issuer, groups=ClaimOrExpression(claim="groups", prefix="g:"))
    token = distributed(issuer)
    assert "404" in await refusal(known, token)
    issuer.pages["/groups"] = issuer.token(groups=["a"])
    why = await refusal(known, token)
    assert why == f'oidc: could not expand distributed claims: verifier not initialized for issuer: "{issuer.url}"'
    async with asyncio.timeout(PATIENCE):
        while not any(source.keys.ready for source in known._distributed._sources.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert (await known.authenticate(token)).groups == ("g:a", "system:authenticated")
    assert "404" in await refusal(known, distributed(issuer, access="wrong"))
    for wrong in (
        issuer.token(),
        issuer.token(groups=["a"], aud="other"),
        issuer.token(key=rsa_key("stranger"), groups=["a"]),
        "",
    ):
        issuer.pages["/groups"] = wrong
        assert (await refusal(known, token)).startswith("oidc: could not expand distributed claims: ")
    known._distributed.close()


async def test_a_claim_that_is_there_is_not_looked_for_elsewhere(issuer: Issuer) -> None:
    known = await authenticator(issuer, groups=ClaimOrExpression(claim="groups"))
    token = issuer.token(groups=["here"], _claim_names={"groups": "src"}, _claim_sources={})
    assert (await known.authenticate(token)).groups[0] == "here"
    lost = issuer.token(_claim_names={"groups": "src"}, _claim_sources={})
    assert "missing in _claims_sources" in await refusal(known, lost)
