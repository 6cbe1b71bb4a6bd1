"""The rules of certificate signing requests: who asked is set by the server, and only subresources go on from there."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authn.user_info import user_info
from pilothouse.apiserver.registry.carry_over import carry_over
from pilothouse.kube.certificates.validation import APPROVED, DENIED, validate_request, validate_request_update
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json, items, text
from pilothouse.machinery.times import now

_REQUESTER = ("username", "uid", "groups", "extra")


class CertificateSigningRequestStrategy(KubeStrategy):
    namespaced = False
    reset_fields: ClassVar[tuple[str, ...]] = ("spec", "status")

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        """Any name will do."""
        return []

    def prepare_for_create_by(self, user: User, obj: Json) -> None:
        for field in _REQUESTER:
            obj["spec"].pop(field, None)
        obj["spec"] |= user_info(user)
        obj["status"] = {}

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec", "status")

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_request(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self._validate_update(obj, old)

    def _validate_update(self, obj: Json, old: Json, *, may_decide: bool = False, may_sign: bool = False) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_request_update(obj, old, may_decide=may_decide, may_sign=may_sign)
        yield from self.validate_metadata_update(obj, old)


class CertificateSigningRequestStatusStrategy(CertificateSigningRequestStrategy):
    reset_fields = ("spec", "status.conditions")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        carry_over(obj, old, "spec")
        for kind in (APPROVED, DENIED):
            _keep_conditions(obj, old, kind)
        _fill_in_times(obj, old)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self._validate_update(obj, old, may_sign=True)


class CertificateSigningRequestApprovalStrategy(CertificateSigningRequestStrategy):
    reset_fields = ("spec", "status.certificate")

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        _fill_in_times(obj, old)
        conditions = items(obj, "status", "conditions")
        carry_over(obj, old, "spec")
        obj["status"] = {key: value for key, value in old["status"].items() if key != "conditions"}
        if conditions:
            obj["status"]["conditions"] = conditions

    def validate_update(self, obj: Json, old: Json) -> Errors:
        return self._validate_update(obj, old, may_decide=True)


def _keep_conditions(obj: Json, old: Json, kind: str) -> None:
    """Conditions that this subresource may not change stay as they are, if only their number does."""
    conditions = items(obj, "status", "conditions")
    before = [each for each in items(old, "status", "conditions") if text(each, "type") == kind]
    places = [position for position, each in enumerate(conditions) if text(each, "type") == kind]
    if len(places) == len(before):
        for position, condition in zip(places, before, strict=True):
            conditions[position] = condition


def _fill_in_times(obj: Json, old: Json) -> None:
    for condition in items(obj, "status", "conditions"):
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = now()
        if not condition.get("lastTransitionTime"):
            condition["lastTransitionTime"] = _last_transition(condition, old) or now()


def _last_transition(condition: Json, old: Json) -> str | None:
    for before in items(old, "status", "conditions"):
        same = all(text(before, field) == text(condition, field) for field in ("type", "status"))
        if same and before.get("lastTransitionTime"):
            return str(before["lastTransitionTime"])
    return None
