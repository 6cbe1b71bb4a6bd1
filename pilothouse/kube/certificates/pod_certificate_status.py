"""Status of a PodCertificateRequest: written once, as issued, denied or failed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pilothouse.kube.certificates.pod_certificate_keys import public_key
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.field import OMIT_VALUE, Errors, FieldError, invalid, not_supported, required, root, too_long
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.pem import PemBlock, pem_blocks
from pilothouse.machinery.times import Clock, parse_time
from pilothouse.machinery.validation.conditions import validate_conditions
from pilothouse.machinery.validation.immutable import semantically_equal

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

ISSUED, DENIED, FAILED = STATES = ("Issued", "Denied", "Failed")
MAX_CHAIN_SIZE = 100 * 1024

_STATUS = root("status")
_CHAIN = _STATUS.child("certificateChain")
_NOT_BEFORE, _NOT_AFTER = _STATUS.child("notBefore"), _STATUS.child("notAfter")
_REFRESH = _STATUS.child("beginRefreshAt")
_SKEW, _MARGIN, _SHORTEST = timedelta(minutes=5), timedelta(minutes=10), timedelta(hours=1)
_CONSISTENT = "must be present and consistent with the issued certificate"


def state_of(obj: Json) -> str:
    """Return the state in the conditions, or an empty string."""
    for condition in items(obj, "status", "conditions"):
        if text(condition, "type") in STATES and text(condition, "status") == "True":
            return text(condition, "type")
    return ""


def validate_status(obj: Json, old: Json, clock: Clock) -> Errors:
    """Yield errors of a status update, except metadata errors."""
    status, before = part(obj, "status"), part(old, "status")
    errors = [*_validate_conditions(items(status, "conditions"))]
    errors += validate_conditions(status.get("conditions"), _STATUS.child("conditions"))
    if errors:
        yield from errors
    elif state_of(old):
        yield from _same(status, before, "immutable after PodCertificateRequest is issued, denied, or failed")
    elif state_of(obj) in (DENIED, FAILED):
        reason = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
        yield from _same(status, {"conditions": status["conditions"]}, reason)
    elif state_of(obj) == ISSUED:
        error = next(_Issued(status, part(old, "spec"), clock()).errors(), None)
        yield from () if error is None else error
    else:
        reason = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
        yield from _same(status, before, reason)


def _validate_conditions(conditions: list[Json]) -> Errors:
    count = 0
    for position, condition in enumerate(conditions):
        path, kind = _STATUS.child("conditions", f"[{position}]"), text(condition, "type")
        if kind not in STATES:
            yield not_supported(path.child("type"), kind, STATES, plain=True)
            continue
        count += 1
        if count > 1:
            reason = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            yield invalid(path.child("type"), kind, reason)
        if text(condition, "status") != "True":
            yield not_supported(path.child("status"), text(condition, "status"), ["True"])


def _same(status: Json, other: Json, reason: str) -> Errors:
    if not semantically_equal(status, other):
        yield invalid(_STATUS, OMIT_VALUE, reason)


@dataclass(frozen=True)
class _Issued:
    """A status with a certificate."""

    status: Json
    spec: Json
    now: datetime

    def errors(self) -> Iterator[list[FieldError]]:
        """Yield the errors of the first failing step."""
        chain = text(self.status, "certificateChain")
        if len(chain.encode()) > MAX_CHAIN_SIZE:
            yield [too_long(_CHAIN, MAX_CHAIN_SIZE)]
            return
        blocks = list(pem_blocks(chain.encode()))
        if problem := _leaf_problem(blocks):
            yield [invalid(_CHAIN, chain, problem)]
            return
        leaf = _parse(blocks[0])
        names = [*_validate_names(leaf)]
        if not _same_key(leaf, self.spec):
            reason = "leaf certificate was not issued to the requested public key"
            yield [*names, invalid(_CHAIN, chain, reason)]
        if missing := [*names, *self._missing_times()]:
            yield missing
        for step in (self._validate_times(leaf), self._validate_lifetime(leaf), self._validate_refresh()):
            yield from ([error] for error in step)
        if problem := _rest_problem(blocks[1:]):
            yield [invalid(_CHAIN, chain, problem)]

    def _missing_times(self) -> Errors:
        if self.status.get("notBefore") is None:
            yield required(_NOT_BEFORE, _CONSISTENT)
        if self.status.get("notAfter") is None:
            yield required(_NOT_AFTER, _CONSISTENT)
        if self.status.get("beginRefreshAt") is None:
            yield required(_REFRESH, "must be present and in the range [notbefore+10min, notafter-10min]")

    def _validate_times(self, leaf: Certificate) -> Errors:
        begin, end = self._time("notBefore"), self._time("notAfter")
        if begin != leaf.not_valid_before_utc:
            yield self._bad("notBefore", "must be set to the NotBefore time encoded in the leaf certificate")
        if not abs(begin - self.now) < _SKEW:
            yield self._bad("notBefore", "must be set to within 5 minutes of kube-apiserver's current time")
        if end != leaf.not_valid_after_utc:
            yield self._bad("notAfter", "must be set to the NotAfter time encoded in the leaf certificate")

    def _validate_lifetime(self, leaf: Certificate) -> Errors:
        lifetime, most = leaf.not_valid_after_utc - leaf.not_valid_before_utc, self.spec["maxExpirationSeconds"]
        nanoseconds = lifetime // timedelta(microseconds=1) * 1000
        if lifetime < _SHORTEST:
            yield invalid(_CHAIN, nanoseconds, "leaf certificate lifetime must be >= 1 hour")
        if lifetime > timedelta(seconds=most):
            yield invalid(
                _CHAIN, nanoseconds, f"leaf certificate lifetime must be <= spec.maxExpirationSeconds ({most})"
            )

    def _validate_refresh(self) -> Errors:
        refresh = self._time("beginRefreshAt")
        if refresh < self._time("notBefore") + _MARGIN:
            yield self._bad("beginRefreshAt", "must be at least 10 minutes after status.notBefore")
        if refresh > self._time("notAfter") - _MARGIN:
            yield self._bad("beginRefreshAt", "must be at least 10 minutes before status.notAfter")

    def _time(self, field: str) -> datetime:
        return parse_time(self.status[field]) or datetime.min.replace(tzinfo=UTC)

    def _bad(self, field: str, reason: str) -> FieldError:
        return invalid(_STATUS.child(field), self.status[field], reason)


def _leaf_problem(blocks: list[PemBlock]) -> str:
    if not blocks:
        return "issued certificate chain must contain at least one certificate"
    if blocks[0].type != "CERTIFICATE":
        return "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
    return "" if _parses(blocks[0]) else "leaf certificate does not parse as valid X.509"


def _rest_problem(blocks: list[PemBlock]) -> str:
    for block in blocks:
        if block.type != "CERTIFICATE":
            # The spelling is upstream's.
            return "issued certificate chain must consist entirely of CERTFICATE PEM blocks"
        if not _parses(block):
            return "intermediate certificate does not parse as valid X.509"
    return ""


def _parse(block: PemBlock) -> Certificate:
    from cryptography.x509 import load_der_x509_certificate

    return load_der_x509_certificate(block.body)


def _parses(block: PemBlock) -> bool:
    try:
        _parse(block)
    except ValueError:
        return False
    return True


def _validate_names(leaf: Certificate) -> Errors:
    from cryptography.x509 import DNSName, ExtensionNotFound, SubjectAlternativeName

    try:
        names = leaf.extensions.get_extension_for_class(SubjectAlternativeName).value
    except (ExtensionNotFound, ValueError):
        return
    for name in names.get_values_for_type(DNSName):
        if not name:
            yield invalid(_CHAIN, name, "leaf certificate should not contain empty DNSName")
        if ".." in name:
            yield invalid(_CHAIN, name, "leaf certificate's DNSName should not contain '..'")
        if name.startswith(".") or name.endswith("."):
            yield invalid(_CHAIN, name, "leaf certificate's DNSName should not start or end with '.'")


def _same_key(leaf: Certificate, spec: Json) -> bool:
    try:
        return bool(leaf.public_key() == public_key(spec))
    except ValueError:
        return False
