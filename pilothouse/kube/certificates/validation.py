"""Validation of certificate signing requests and of updates through each subresource."""

from __future__ import annotations

from pilothouse.kube.certificates.x509 import certificate_problem, request_problem
from pilothouse.kube.core.pods.internal_form import difference
from pilothouse.kube.validation.domains import validate_signer_name
from pilothouse.kube.validation.fields import required_one_of
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import (
    Errors,
    declared,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    root,
)
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json, items, part, text

APPROVED, DENIED, FAILED = "Approved", "Denied", "Failed"
LEGACY_SIGNER = "kubernetes.io/legacy-unknown"

_MIN_EXPIRATION = 600
_CONDITIONS = root("status", "conditions")
_USAGES = (
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
)

SHORTEST = 60 * 60

LONGEST_OF_KUBERNETES = 24 * 60 * 60
"""For signers of the Kubernetes project."""

LONGEST = 91 * 24 * 60 * 60


@dataclass(frozen=True, slots=True)
class Tolerated:
    """Rules that an update may break because the stored request breaks them."""

    both_decisions: bool = False
    legacy_signer: bool = False
    duplicate_conditions: bool = False
    empty_condition_type: bool = False
    any_certificate: bool = False
    duplicate_usages: bool = False
    unknown_usages: bool = False


NOTHING = Tolerated()


def tolerated_in(obj: Json, old: Json) -> Tolerated:
    types = [text(condition, "type") for condition in items(old, "status", "conditions")]
    usages = items(old, "spec", "usages")
    certificate = text(old, "status", "certificate")
    return Tolerated(
        both_decisions=APPROVED in types and DENIED in types,
        legacy_signer=text(old, "spec", "signerName") == LEGACY_SIGNER,
        duplicate_conditions=len(set(types)) < len(types),
        empty_condition_type="" in types,
        any_certificate=text(obj, "status", "certificate") == certificate or bool(certificate_problem(certificate)),
        duplicate_usages=len(set(usages)) < len(usages),
        unknown_usages=not set(usages) <= set(_USAGES),
    )


def validate_request(obj: Json, tolerated: Tolerated = NOTHING) -> Errors:
    """Yield errors, except metadata errors."""
    spec, path = part(obj, "spec"), root("spec")
    if problem := request_problem(text(spec, "request")):
        yield invalid(path.child("request"), spec.get("request"), problem)
    usages = items(spec, "usages")
    usages_path = path.child("usages")
    if not usages:
        yield required(usages_path)
    for position, usage in enumerate(usages):
        if usage not in _USAGES and not tolerated.unknown_usages:
            yield not_supported(usages_path.index(position), usage, _USAGES)
    for position, usage in enumerate(usages):
        if usage in usages[:position] and not tolerated.duplicate_usages:
            yield duplicate(usages_path.index(position), usage)
    signer = text(spec, "signerName")
    if signer == LEGACY_SIGNER and not tolerated.legacy_signer:
        reason = "the legacy signerName is not allowed via this API version"
        yield invalid(path.child("signerName"), signer, reason)
    else:
        yield from validate_signer_name(signer, path.child("signerName"))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _MIN_EXPIRATION:
        reason = "may not specify a duration less than 600 seconds (10 minutes)"
        yield invalid(path.child("expirationSeconds"), seconds, reason)
    conditions = items(obj, "status", "conditions")
    seen: list[str] = []
    for position, condition in enumerate(conditions):
        path, kind = _CONDITIONS.index(position), text(condition, "type")
        if not kind and not tolerated.empty_condition_type:
            yield required(path.child("type"))
        statuses = ("True",) if kind in (APPROVED, DENIED, FAILED) else ("False", "True", "Unknown")
        yield from required_one_of(text(condition, "status"), path.child("status"), statuses)
        other = {APPROVED: DENIED, DENIED: APPROVED}.get(kind)
        if other in seen and not tolerated.both_decisions:
            if version_rules.holds("DeclaredValidation"):
                decisions = [f'conditions[{{"type": "{each}"}}]' for each in (APPROVED, DENIED)]
                reason = f"must specify at most one of: {', '.join(f'`{each}`' for each in decisions)}"
                yield declared(invalid(_CONDITIONS, f"{{{', '.join(decisions)}}}", reason), reason)
            else:
                yield invalid(_CONDITIONS, kind, "Approved and Denied conditions are mutually exclusive")
        if kind in seen and not tolerated.duplicate_conditions:
            yield duplicate(path.child("type"), kind)
        seen.append(kind)
    if not tolerated.any_certificate and (problem := certificate_problem(text(obj, "status", "certificate"))):
        yield invalid(root("status", "certificate"), "<certificate data>", problem)


def validate_request_update(obj: Json, old: Json, *, may_decide: bool = False, may_sign: bool = False) -> Errors:
    """Yield errors, except metadata errors. Approval may decide, and status may sign."""
    yield from validate_request(obj, tolerated_in(obj, old))
    for kind in (APPROVED, DENIED, FAILED):
        if len(_of_type(obj, kind)) < len(_of_type(old, kind)):
            yield forbidden(_CONDITIONS, f"updates may not remove a condition of type {quote(kind)}")
    if not may_decide:
        for kind in (APPROVED, DENIED):
            new, stored = _of_type(obj, kind), _of_type(old, kind)
            if len(new) > len(stored):
                yield forbidden(_CONDITIONS, f"updates may not add a condition of type {quote(kind)}")
            elif len(new) == len(stored) and new != stored:
                reason = f"updates may not modify a condition of type {quote(kind)}"
                yield forbidden(_CONDITIONS, f"{reason}\n{difference(stored, new)}")
    before, path = text(old, "status", "certificate"), root("status", "certificate")
    if text(obj, "status", "certificate") != before:
        if not may_sign:
            yield forbidden(path, "updates may not set certificate content")
        elif before:
            yield forbidden(path, "updates may not modify existing certificate content")


def _of_type(obj: Json, kind: str) -> list[Json]:
    """Return conditions of the type as upstream's messages print them."""
    return [
        {
            "Type": kind,
            "Status": text(condition, "status"),
            "Reason": text(condition, "reason"),
            "Message": text(condition, "message"),
            "LastUpdateTime": condition.get("lastUpdateTime"),
            "LastTransitionTime": condition.get("lastTransitionTime"),
        }
        for condition in items(obj, "status", "conditions")
        if text(condition, "type") == kind
    ]
