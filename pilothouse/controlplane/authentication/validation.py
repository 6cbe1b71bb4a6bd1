"""Validation of an AuthenticationConfiguration, with upstream's messages."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from urllib.parse import urlsplit

from pilothouse.kube.validation.domains import domain_prefixed_path
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
        reason = "enabled should be set to true when conditions are defined"
        yield invalid(root("anonymous", "conditions"), conditions, reason)


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
        reason = "egress selector must be either controlplane or cluster"
        yield invalid(path.child("egressSelectorType"), selector, reason)


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
    from pilothouse.apiserver.authn.jwt.key_set import tls_context

    try:
        if not re.search("-----BEGIN CERTIFICATE-----", pem):
            raise ValueError("data does not contain any valid RSA or ECDSA certificates")
        tls_context(pem)
    except ValueError as error:
        yield invalid(path, "<omitted>", str(error))


_RESERVED = ("kubernetes.io", "k8s.io")
_VERIFIED = (
    "claims.email_verified must be used in claimMappings.username.expression or "
    "claimMappings.extra[*].valueExpression or claimValidationRules[*].expression "
    "when claims.email is used in claimMappings.username.expression"
)


def validate_claim_rules(rules: list[Json], path: Path) -> Iterator[FieldError]:
    claims: set[str] = set()
    expressions: set[str] = set()
    for index, rule in enumerate(rules):
        where, claim, expression = path.index(index), text(rule, "claim"), text(rule, "expression")
        if claim and expression:
            yield invalid(where, claim, "claim and expression can't both be set")
        elif claim:
            if message := text(rule, "message"):
                yield invalid(where.child("message"), message, "may not be specified when claim is set")
            if claim in claims:
                yield duplicate(where.child("claim"), claim)
            claims.add(claim)
        elif expression:
            if value := text(rule, "requiredValue"):
                yield invalid(where.child("requiredValue"), value, "may not be specified when expression is set")
            yield from _expression_errors(expression, expressions, where.child("expression"), types=("bool",))
        else:
            yield required(where, "claim or expression is required")


def validate_user_rules(rules: list[Json], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, rule in enumerate(rules):
        where, expression = path.index(index).child("expression"), text(rule, "expression")
        if not expression:
            yield required(where)
        elif expression in seen:
            yield duplicate(where, expression)
        elif problem := _user_problem(expression):
            yield invalid(where, expression, problem)
        seen.add(expression)


def validate_mappings(jwt: Json, path: Path) -> Iterator[FieldError]:
    mappings = part(jwt, "claimMappings")
    yield from _prefixed_errors(part(mappings, "username"), path.child("username"), needed=True)
    yield from _prefixed_errors(part(mappings, "groups"), path.child("groups"), needed=False)
    uid = part(mappings, "uid")
    if text(uid, "claim") and text(uid, "expression"):
        yield invalid(path.child("uid"), "", "claim and expression can't both be set")
    elif expression := text(uid, "expression"):
        yield from _compilation(expression, path.child("uid", "expression"))
    yield from _extra_errors(items(mappings, "extra"), path.child("extra"))
    yield from _email_errors(jwt, path.child("username", "expression"))


def _prefixed_errors(mapping: Json, path: Path, *, needed: bool) -> Iterator[FieldError]:
    claim, expression = text(mapping, "claim"), text(mapping, "expression")
    if claim and expression:
        yield invalid(path, "", "claim and expression can't both be set")
    elif expression:
        if mapping.get("prefix") is not None:
            yield invalid(path.child("prefix"), mapping["prefix"], "may not be specified when expression is set")
        yield from _compilation(expression, path.child("expression"))
    elif claim:
        if mapping.get("prefix") is None:
            reason = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
            yield required(path.child("prefix"), reason)
    elif needed:
        yield required(path, "claim or expression is required")


def _extra_errors(mappings: list[Json], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, mapping in enumerate(mappings):
        where, key = path.index(index), text(mapping, "key")
        yield from _key_errors(key, where.child("key"))
        if key in seen:
            yield duplicate(where.child("key"), key)
            continue
        seen.add(key)
        if expression := text(mapping, "valueExpression"):
            yield from _compilation(expression, where.child("valueExpression"))
        else:
            yield required(where.child("valueExpression"))


def _key_errors(key: str, path: Path) -> Iterator[FieldError]:
    yield from domain_prefixed_path(key, path)
    if key != key.lower():
        yield invalid(path, key, "must be lowercase")
    domain, slash, _ = key.partition("/")
    if slash and any(domain == own or domain.endswith(f".{own}") for own in _RESERVED):
        reason = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
        yield invalid(path, key, reason)


def _email_errors(jwt: Json, path: Path) -> Iterator[FieldError]:
    """Require a check of email_verified if the username is the email claim."""
    username = text(jwt, "claimMappings", "username", "expression")
    if not username or "email" not in username:
        return
    from pilothouse.apiserver.authn.jwt.claims import selects_claim

    rules = [text(rule, "expression") for rule in items(jwt, "claimValidationRules")]
    extra = [text(mapping, "valueExpression") for mapping in items(jwt, "claimMappings", "extra")]
    verified = any(
        selects_claim(expression, "email_verified") for expression in (username, *rules, *extra) if expression
    )
    if selects_claim(username, "email") and not verified:
        yield invalid(path, username, _VERIFIED)


def _expression_errors(
    expression: str, seen: set[str], path: Path, *, types: tuple[str, ...] = ()
) -> Iterator[FieldError]:
    if expression in seen:
        yield duplicate(path, expression)
        return
    seen.add(expression)
    yield from _compilation(expression, path, types=types)


def _compilation(expression: str, path: Path, *, types: tuple[str, ...] = ()) -> Iterator[FieldError]:
    # Lazy import: the CEL compiler is slow to import.
    from pilothouse.apiserver.authn.jwt.claims import compiled_on_claims

    if problem := compiled_on_claims(expression, types=types).problem:
        yield invalid(path, expression, problem)


def _user_problem(expression: str) -> str:
    from pilothouse.apiserver.authn.jwt.claims import compiled_on_user

    return compiled_on_user(expression).problem
