"""AuthenticationConfiguration: read strictly, and checked in upstream's words."""

from __future__ import annotations

from collections.abc import Collection

from pilothouse.apiserver.authn.jwt.settings import ClaimOrExpression, IssuerSettings, TokenValidationRule
from pilothouse.controlplane.authentication.setup import AnonymousSettings, AuthenticationSettings
from pilothouse.controlplane.authentication.validation import validate_authentication_configuration
from pilothouse.controlplane.egress import NAMES, check_egress
from pilothouse.controlplane.strict_decoding import Shape, decode
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import aggregate

ANYWHERE = frozenset(NAMES)
_GROUP = "apiserver.config.k8s.io"
_PREFIXED: Shape = {"claim": str, "prefix": str, "expression": str}
_JWT: Shape = {
    "issuer": {
        "url": str,
        "discoveryURL": str,
        "certificateAuthority": str,
        "audiences": [str],
        "audienceMatchPolicy": str,
        "egressSelectorType": str,
    },
    "claimValidationRules": [{"claim": str, "requiredValue": str, "expression": str, "message": str}],
    "claimMappings": {
        "username": _PREFIXED,
        "groups": _PREFIXED,
        "uid": {"claim": str, "expression": str},
        "extra": [{"key": str, "valueExpression": str}],
    },
    "userValidationRules": [{"expression": str, "message": str}],
}
_SHAPE: Shape = {"jwt": [_JWT], "anonymous": {"enabled": bool, "conditions": [{"path": str}]}}


def read_authentication_configuration(
    data: bytes, *, disallowed_issuers: Collection[str], egress: frozenset[str] | None = ANYWHERE
) -> AuthenticationSettings:
    """`egress`: the networks that an issuer may be said to be in; None without an EgressSelectorConfiguration.

    Raises ValueError.
    """
    if not data:
        raise ValueError("empty config data")
    versions = dict.fromkeys(("v1", "v1beta1", "v1alpha1"), _SHAPE)
    found = decode(data, group=_GROUP, kind="AuthenticationConfiguration", versions=versions)
    if problems := list(map(str, validate_authentication_configuration(found, disallowed_issuers))):
        raise ValueError(f"invalid authentication configuration: {aggregate(problems)}")
    for jwt in found.get("jwt") or ():
        if selector := jwt["issuer"].get("egressSelectorType"):
            check_egress(selector, egress)
    return AuthenticationSettings(tuple(map(_issuer, found.get("jwt") or ())), _anonymous(found.get("anonymous")))


def _anonymous(anonymous: Json | None) -> AnonymousSettings | None:
    if anonymous is None:
        return None
    conditions = anonymous.get("conditions") or ()
    return AnonymousSettings(bool(anonymous.get("enabled")), tuple(each.get("path") or "" for each in conditions))


def _issuer(jwt: Json) -> IssuerSettings:
    issuer, mappings = jwt["issuer"], jwt["claimMappings"]
    rules = jwt.get("claimValidationRules") or ()
    return IssuerSettings(
        issuer["url"],
        tuple(issuer["audiences"]),
        username=_mapping(mappings["username"]),
        groups=_mapping(mappings.get("groups") or {}),
        uid=_mapping(mappings.get("uid") or {}),
        extra=tuple((each["key"], each["valueExpression"]) for each in mappings.get("extra") or ()),
        required_claims=tuple((each["claim"], each.get("requiredValue") or "") for each in rules if each.get("claim")),
        claim_rules=tuple(_rule(each) for each in rules if each.get("expression")),
        user_rules=tuple(map(_rule, jwt.get("userValidationRules") or ())),
        discovery_url=issuer.get("discoveryURL") or "",
        certificate_authority=issuer.get("certificateAuthority") or "",
    )


def _mapping(said: Json) -> ClaimOrExpression:
    return ClaimOrExpression(said.get("claim") or "", said.get("prefix") or "", said.get("expression") or "")


def _rule(said: Json) -> TokenValidationRule:
    return TokenValidationRule(said["expression"], said.get("message") or "")
