"""Authentication from a configuration file: what it may say, and that the server follows it when it changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from authentication_configuration import HEAD, jwt
from oidc_issuer import oidc_issuer

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.controlplane.authentication.configuration import read_authentication_configuration
from pilothouse.controlplane.authentication.reload import ConfigurationFile, ConfiguredIssuers
from pilothouse.controlplane.authentication.setup import AnonymousSettings, issuer_of_flags
from pilothouse.controlplane.options.authentication import OIDCOptions

OWN = "https://kubernetes.default.svc"


def mapped(username: str, rest: str = "") -> str:
    return f"{{username: {username}{rest}}}"


def read(content: str) -> Any:
    return read_authentication_configuration(content.encode(), disallowed_issuers=[OWN])


def test_everything_that_can_be_said_of_an_issuer_is_read() -> None:
    content = jwt(
        audiences="[a, b]",
        issuer="{audienceMatchPolicy: MatchAny}".strip("{}"),
        claimMappings=mapped("{expression: claims.sub}", ", extra: [{key: example.com/x, valueExpression: claims.x}]"),
        claimValidationRules="[{claim: hd, requiredValue: example.com}, {expression: claims.a == 1, message: wrong}]",
        userValidationRules="[{expression: user.username != 'root'}]",
    )
    (issuer,) = read(content + "anonymous: {enabled: true, conditions: [{path: /livez}]}").issuers
    assert (issuer.url, issuer.audiences, issuer.username.expression) == ("https://a", ("a", "b"), "claims.sub")
    assert (issuer.required_claims, issuer.extra) == (
        (("hd", "example.com"),),
        (("example.com/x", "claims.x"),),
    )
    assert [rule.message for rule in issuer.claim_rules] == ["wrong"]
    assert read(HEAD + "anonymous: {enabled: false}").anonymous == AnonymousSettings(enabled=False)


_EMAIL = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression "
    "when claims.email is used in claimMappings.username.expression"
)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (jwt("''"), "jwt[0].issuer.url: Required value"),
        (jwt("http://a"), 'jwt[0].issuer.url: Invalid value: "http://a": URL scheme must be https'),
        (
            jwt("https://u@a/?q#f"),
            '[jwt[0].issuer.url: Invalid value: "https://u@a/?q#f": URL must not contain a username or password, '
            'jwt[0].issuer.url: Invalid value: "https://u@a/?q#f": URL must not contain a query, '
            'jwt[0].issuer.url: Invalid value: "https://u@a/?q#f": URL must not contain a fragment]',
        ),
        (
            jwt(OWN),
            f'jwt[0].issuer.url: Invalid value: "{OWN}": URL must not overlap with disallowed issuers: [{OWN}]',
        ),
        (
            jwt(issuer="discoveryURL: https://a/"),
            'jwt[0].issuer.discoveryURL: Invalid value: "https://a/": discoveryURL must be different from URL',
        ),
        (
            jwt(audiences="[]"),
            "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required",
        ),
        (
            jwt(audiences="[a, b]"),
            'jwt[0].issuer.audienceMatchPolicy: Invalid value: "": '
            "audienceMatchPolicy must be MatchAny for multiple audiences",
        ),
        (
            jwt(issuer="certificateAuthority: nonsense"),
            'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": '
            "data does not contain any valid RSA or ECDSA certificates",
        ),
        (
            jwt(claimMappings=mapped("{claim: sub}")),
            "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set. "
            "It can be set to an empty string to disable prefixing",
        ),
        (
            jwt(claimMappings=mapped("{}")),
            "jwt[0].claimMappings.username: Required value: claim or expression is required",
        ),
        (
            jwt(claimMappings=mapped("{expression: claims.email}")),
            f'jwt[0].claimMappings.username.expression: Invalid value: "claims.email": {_EMAIL}',
        ),
        (
            jwt(
                claimMappings=mapped(
                    "{expression: claims.sub}", ", extra: [{key: Foo.k8s.io/x, valueExpression: claims.x}]"
                )
            ),
            "jwt[0].claimMappings.extra[0].key",
        ),
        (
            jwt(claimValidationRules="[{}]"),
            "jwt[0].claimValidationRules[0]: Required value: claim or expression is required",
        ),
        (
            jwt(claimValidationRules="[{expression: claims.a}]"),
            "must evaluate to bool",
        ),
        (jwt(userValidationRules="[{expression: user.nope}]"), "undefined field 'nope'"),
        (
            HEAD + "anonymous: {enabled: false, conditions: [{path: /a}]}",
            "enabled should be set to true when conditions are defined",
        ),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(content: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(content)
    assert problem in str(caught.value)
    assert str(caught.value).startswith("invalid authentication configuration: ")


def test_an_address_that_is_checked_elsewhere_may_be_a_name() -> None:
    rules = "[{expression: 'claims.?email_verified.orValue(true) == true'}]"
    assert read(jwt(claimMappings=mapped("{expression: claims.email}"), claimValidationRules=rules)).issuers


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "empty config data"),
        (HEAD + "jwts: []", 'strict decoding error: unknown field "jwts"'),
        (HEAD + "jwt: {}", "json: cannot unmarshal object into Go struct field jwt of type slice"),
        (
            "apiVersion: v9\nkind: AuthenticationConfiguration",
            'no kind "AuthenticationConfiguration" is registered for version "v9" in scheme',
        ),
    ],
)
def test_a_file_of_another_kind_is_refused(content: str, problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        read(content)
    assert str(caught.value) == problem


def test_flags_name_an_issuer_as_they_always_did() -> None:
    plain = issuer_of_flags(OIDCOptions(issuer_url="https://a", client_id="c"))
    assert (plain.username.claim, plain.username.prefix, plain.algorithms) == ("sub", "https://a#", ("RS256",))
    mail = issuer_of_flags(OIDCOptions(issuer_url="https://a", client_id="c", username_claim="email"))
    assert mail.username.prefix == ""
    bare = issuer_of_flags(OIDCOptions(issuer_url="https://a", client_id="c", username_prefix="-"))
    assert bare.username.prefix == ""


async def test_a_changed_file_replaces_the_issuers_unless_it_makes_no_sense(tmp_path: Path) -> None:
    file = tmp_path / "authentication.yaml"
    async with oidc_issuer() as one, oidc_issuer() as two:
        first, second = jwt(one.url, ca=one.ca), jwt(two.url, ca=two.ca)
        issuers = ConfiguredIssuers([], ("api",), keys_within=0.5)
        watched = ConfigurationFile(issuers, None, [OWN]).follow(file, b"")

        async def known(content: str) -> list[bool]:
            file.write_text(content)
            await watched.look()
            found = [await issuers.authenticate_token(each.token()) for each in (one, two)]
            return [identity is not None for identity in found]

        assert await known(first) == [True, False]
        assert await known("nonsense: [") == [True, False]
        two.broken = True
        assert await known(second) == [True, False], "its keys are not there yet"
        two.broken = False
        await watched.look()
        assert await known(second) == [False, True]
        assert await known(second + "anonymous: {enabled: true}") == [False, True]
        assert await known(first.replace("url: https", "url: http")) == [False, True]
        with pytest.raises(InvalidToken):
            await issuers.authenticate_token(two.token(aud="other"))
