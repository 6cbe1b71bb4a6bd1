"""AuthenticationConfiguration: strict decoding and conversion to settings."""

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
    """Decode and validate the configuration. Raises ValueError.

    `egress` holds the networks that an issuer may select; None = no EgressSelectorConfiguration.
    """
    if not data:
        raise ValueError("empty config data")
    versions = dict.fromkeys(("v1", "v1beta1", "v1alpha1"), _SHAPE)
    config = decode(data, group=_GROUP, kind="AuthenticationConfiguration", versions=versions)
    if problems := list(map(str, validate_authentication_configuration(config, disallowed_issuers))):
        raise ValueError(f"invalid authentication configuration: {aggregate(problems)}")
    for jwt in config.get("jwt") or ():
        if selector := jwt["issuer"].get("egressSelectorType"):
            check_egress(selector, egress)
    anonymous: AnonymousSettings | None = None
    if (section := config.get("anonymous")) is not None:
        paths = tuple(condition.get("path") or "" for condition in section.get("conditions") or ())
        anonymous = AnonymousSettings(bool(section.get("enabled")), paths)
    return AuthenticationSettings(tuple(map(_issuer, config.get("jwt") or ())), anonymous)


def _issuer(jwt: Json) -> IssuerSettings:
    issuer, mappings = jwt["issuer"], jwt["claimMappings"]
    rules = jwt.get("claimValidationRules") or ()
    return IssuerSettings(
        issuer["url"],
        tuple(issuer["audiences"]),
        username=_mapping(mappings["username"]),
        groups=_mapping(mappings.get("groups") or {}),
        uid=_mapping(mappings.get("uid") or {}),
        extra=tuple((mapping["key"], mapping["valueExpression"]) for mapping in mappings.get("extra") or ()),
        required_claims=tuple((rule["claim"], rule.get("requiredValue") or "") for rule in rules if rule.get("claim")),
        claim_rules=tuple(_rule(rule) for rule in rules if rule.get("expression")),
        user_rules=tuple(map(_rule, jwt.get("userValidationRules") or ())),
        discovery_url=issuer.get("discoveryURL") or "",
        certificate_authority=issuer.get("certificateAuthority") or "",
    )


def _mapping(mapping: Json) -> ClaimOrExpression:
    return ClaimOrExpression(mapping.get("claim") or "", mapping.get("prefix") or "", mapping.get("expression") or "")


def _rule(rule: Json) -> TokenValidationRule:
    return TokenValidationRule(rule["expression"], rule.get("message") or "")
