"""The validation of an AuthenticationConfiguration, in upstream's words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from urllib.parse import urlsplit

from pilothouse.controlplane.authentication.expression_rules import (
    validate_claim_rules,
    validate_mappings,
    validate_user_rules,
)
from pilothouse.machinery.field import FieldError, Path, duplicate, invalid, required, root, too_many
from pilothouse.machinery.objects import Json, items, part, text

_MOST_ISSUERS = 64


def validate_authentication_configuration(config: Json, disallowed: Collection[str]) -> Iterator[FieldError]:
    issuers = items(config, "jwt")
    if len(issuers) > _MOST_ISSUERS:
        yield too_many(root("jwt"), len(issuers), _MOST_ISSUERS)
        return
    seen: dict[str, set[str]] = {"url": set(), "discoveryURL": set()}
    for index, jwt in enumerate(issuers):
        path = root("jwt").index(index)
        yield from _issuer_errors(part(jwt, "issuer"), disallowed, path.child("issuer"))
        yield from validate_claim_rules(items(jwt, "claimValidationRules"), path.child("claimValidationRules"))
        yield from validate_mappings(jwt, path.child("claimMappings"))
        yield from validate_user_rules(items(jwt, "userValidationRules"), path.child("userValidationRules"))
        for field, values in seen.items():
            value = text(jwt, "issuer", field)
            if value in values and (value or field == "url"):
                yield duplicate(path.child("issuer", field), value)
            values.add(value)
    anonymous = part(config, "anonymous")
    if not anonymous.get("enabled") and items(anonymous, "conditions"):
        conditions = items(anonymous, "conditions")
        why = "enabled should be set to true when conditions are defined"
        yield invalid(root("anonymous", "conditions"), conditions, why)


def _issuer_errors(issuer: Json, disallowed: Collection[str], path: Path) -> Iterator[FieldError]:
    url, discovery = text(issuer, "url"), text(issuer, "discoveryURL")
    if url:
        yield from _url_errors(url, disallowed, path.child("url"))
    else:
        yield required(path.child("url"))
    if discovery:
        if url and url.rstrip("/") == discovery.rstrip("/"):
            yield invalid(path.child("discoveryURL"), discovery, "discoveryURL must be different from URL")
        yield from _url_errors(discovery, (), path.child("discoveryURL"))
    yield from _audience_errors(issuer, path)
    if authority := text(issuer, "certificateAuthority"):
        yield from _authority_errors(authority, path.child("certificateAuthority"))
    selector = text(issuer, "egressSelectorType")
    if selector not in ("", "controlplane", "cluster"):
        why = "egress selector must be either controlplane or cluster"
        yield invalid(path.child("egressSelectorType"), selector, why)


def _url_errors(url: str, disallowed: Collection[str], path: Path) -> Iterator[FieldError]:
    if url in disallowed:
        listed = " ".join(sorted(disallowed))
        yield invalid(path, url, f"URL must not overlap with disallowed issuers: [{listed}]")
    try:
        parsed = urlsplit(url)
    except ValueError as error:
        yield invalid(path, url, f"parse {url!r}: {error}")
        return
    if parsed.scheme != "https":
        yield invalid(path, url, "URL scheme must be https")
    if "@" in parsed.netloc:
        yield invalid(path, url, "URL must not contain a username or password")
    if parsed.query:
        yield invalid(path, url, "URL must not contain a query")
    if parsed.fragment:
        yield invalid(path, url, "URL must not contain a fragment")


def _audience_errors(issuer: Json, path: Path) -> Iterator[FieldError]:
    audiences, where = items(issuer, "audiences"), path.child("audiences")
    if not audiences:
        yield required(where, f"at least one {where} is required")
        return
    for index, audience in enumerate(audiences):
        if not audience:
            yield required(where.index(index))
        if audience in audiences[:index]:
            yield duplicate(where.index(index), audience)
    policy, allowed = text(issuer, "audienceMatchPolicy"), path.child("audienceMatchPolicy")
    if len(audiences) > 1 and policy != "MatchAny":
        yield invalid(allowed, policy, "audienceMatchPolicy must be MatchAny for multiple audiences")
    if len(audiences) == 1 and policy not in ("", "MatchAny"):
        yield invalid(allowed, policy, "audienceMatchPolicy must be empty or MatchAny for single audience")


def _authority_errors(pem: str, path: Path) -> Iterator[FieldError]:
    from pilothouse.apiserver.authn.jwt.fetching import tls_context

    try:
        if not re.search("-----BEGIN CERTIFICATE-----", pem):
            raise ValueError("data does not contain any valid RSA or ECDSA certificates")
        tls_context(pem)
    except ValueError as error:
        yield invalid(path, "<omitted>", str(error))
