"""CertificateSigningRequests: the server sets the requester; authorized signers approve and sign by subresources."""

from __future__ import annotations

from datetime import timedelta

from pilothouse.apiserver.authn.user import User, user_info
from pilothouse.apiserver.authz.interface import Attributes, Authorizer, Decision
from pilothouse.apiserver.registry.metadata import carry_over
from pilothouse.apiserver.registry.resource import Names, Resource, cluster_metadata_fields
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.certificates.validation import APPROVED, DENIED, FAILED, validate_request, validate_request_update
from pilothouse.kube.strategy import SeparateStatusStrategy
from pilothouse.machinery.durations import human_duration
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.times import now

_REQUESTER = ("username", "uid", "groups", "extra")
GROUP = "certificates.k8s.io"
_SPEC = "io.k8s.api.certificates.v1.CertificateSigningRequestSpec"
# Column descriptions come from v1beta1, which is no longer served.
_SIGNER = (
    "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. "
    "If empty, it will be defaulted:\n"
    " 1. If it's a kubelet client certificate, it is assigned\n"
    '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
    " 2. If it's a kubelet serving certificate, it is assigned\n"
    '    "kubernetes.io/kubelet-serving".\n'
    ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
    "Distribution of trust for signers happens out of band. You can select on this field using `spec.signerName`."
)


class CertificateSigningRequestStrategy(SeparateStatusStrategy):
    namespaced = False
    reset_fields = ("spec", "status")
    kept_on_update = ("spec", "status")

    def name_rule(self, name: str, prefix: bool) -> list[str]:
        """Any name will do."""
        return []

    def prepare_for_create_by(self, user: User, obj: Json) -> None:
        for field in _REQUESTER:
            obj["spec"].pop(field, None)
        obj["spec"] |= user_info(user)
        obj["status"] = {}

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
        # Stored decisions stay, unless their number changes.
        for kind in (APPROVED, DENIED):
            conditions = items(obj, "status", "conditions")
            before = [item for item in items(old, "status", "conditions") if text(item, "type") == kind]
            places = [position for position, condition in enumerate(conditions) if text(condition, "type") == kind]
            if len(places) == len(before):
                for position, condition in zip(places, before, strict=True):
                    conditions[position] = condition
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


def _condition(obj: Json) -> str:
    types = {text(condition, "type") for condition in items(obj, "status", "conditions")}
    decision = next((kind for kind in (DENIED, APPROVED) if kind in types), "Pending")
    failed = ",Failed" if FAILED in types else ""
    return decision + failed + (",Issued" if text(obj, "status", "certificate") else "")


def _duration(obj: Json) -> str:
    seconds = part(obj, "spec").get("expirationSeconds")
    return "<none>" if seconds is None else human_duration(timedelta(seconds=seconds))


CERTIFICATE_SIGNING_REQUESTS = Resource(
    names=Names("certificatesigningrequests", kind="CertificateSigningRequest", short=["csr"]),
    strategy=CertificateSigningRequestStrategy(),
    group=GROUP,
    fields=lambda obj: cluster_metadata_fields(obj) | {"spec.signerName": text(obj, "spec", "signerName")},
    indexed_fields=("spec.signerName",),
    columns=[
        NAME,
        AGE,
        Column("SignerName", lambda obj: text(obj, "spec", "signerName") or "<none>", description=_SIGNER),
        Column("Requestor", lambda obj: text(obj, "spec", "username"), description="Base64-encoded PKCS#10 CSR data"),
        Column("RequestedDuration", _duration, documented=(_SPEC, "expirationSeconds")),
        Column("Condition", _condition, description="Conditions applied to the request, such as approval or denial."),
    ],
)


async def may_act_for_signer(authorizer: Authorizer, user: User, verb: str, signer: str) -> bool:
    """Report whether the user may perform the verb for the signer or for its whole domain."""
    for name in (signer, signer.partition("/")[0] + "/*"):
        question = Attributes(
            user=user,
            verb=verb,
            is_resource=True,
            group="certificates.k8s.io",
            version="*",
            resource="signers",
            name=name,
        )
        if (await authorizer.authorize(question)).decision is Decision.ALLOW:
            return True
    return False
