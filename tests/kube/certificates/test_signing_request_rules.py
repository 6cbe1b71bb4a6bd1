"""Certificate signing requests: what they may ask, and what each subresource may answer."""

from __future__ import annotations

import base64
from copy import deepcopy
from typing import Any

import pytest
from rules import decoded
from signing_requests import new_certificate, new_request, pem, request_der

from pilothouse.apiserver.authn.user import User
from pilothouse.kube.certificates.certificate_signing_requests import CERTIFICATE_SIGNING_REQUESTS as REQUESTS
from pilothouse.kube.certificates.certificate_signing_requests import (
    CertificateSigningRequestApprovalStrategy,
    CertificateSigningRequestStatusStrategy,
    CertificateSigningRequestStrategy,
)
from pilothouse.kube.certificates.x509 import request_problem
from pilothouse.machinery.objects import Json

MAIN = CertificateSigningRequestStrategy()
STATUS = CertificateSigningRequestStatusStrategy()
APPROVAL = CertificateSigningRequestApprovalStrategy()
OK: Json = {"type": "Approved", "status": "True"}


def signing_request(status: Json | None = None, **spec: Any) -> Json:
    sent = {"request": new_request("dev"), "signerName": "example.com/s", "usages": ["client auth"], **spec}
    obj = decoded(REQUESTS, {"spec": sent, "status": status or {}})
    obj["metadata"] |= {"uid": "u", "resourceVersion": "1"}
    return obj


def updated(strategy: CertificateSigningRequestStrategy, old: Json, **status: Any) -> Json:
    new = deepcopy(old)
    new["status"] |= deepcopy(status)
    strategy.prepare_for_update(new, old)
    return new


def refusals(strategy: CertificateSigningRequestStrategy, old: Json, **status: Any) -> list[str]:
    return [str(error) for error in strategy.validate_update(updated(strategy, old, **status), old)]


def test_who_asks_is_what_the_server_knows() -> None:
    obj = signing_request(username="forged", groups=["forged"], uid="forged", extra={"forged": ["x"]})
    MAIN.prepare_for_create_by(User("alice", groups=("a", "b"), extra={"scopes": ("view",)}), obj)
    spec = obj["spec"]
    assert (spec["username"], spec["groups"], spec["extra"]) == ("alice", ["a", "b"], {"scopes": ["view"]})
    assert "uid" not in spec
    assert obj["status"] == {}


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        ({}, []),
        ({"request": ""}, ['spec.request: Invalid value: "": PEM block type must be CERTIFICATE REQUEST']),
        ({"usages": []}, ["spec.usages: Required value"]),
        ({"usages": ["any", "any"]}, ['spec.usages[1]: Duplicate value: "any"']),
        (
            {"expirationSeconds": 599},
            [
                "spec.expirationSeconds: Invalid value: 599: "
                "may not specify a duration less than 600 seconds (10 minutes)"
            ],
        ),
        ({"signerName": ""}, ["spec.signerName: Required value"]),
        (
            {"signerName": "nodomain/x"},
            [
                'spec.signerName: Invalid value: "nodomain": '
                "should be a domain with at least two segments separated by dots"
            ],
        ),
        (
            {"signerName": "kubernetes.io/legacy-unknown"},
            [
                'spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": '
                "the legacy signerName is not allowed via this API version"
            ],
        ),
    ],
)
def test_what_is_wrong_with_a_request_is_named(spec: Json, refused: list[str]) -> None:
    assert [str(error) for error in MAIN.validate(signing_request(**spec))] == refused


def test_a_request_whose_signature_does_not_fit_is_refused() -> None:
    der = bytearray(request_der("dev"))
    der[-1] ^= 1
    (found,) = MAIN.validate(signing_request(request=pem("CERTIFICATE REQUEST", bytes(der))))
    assert "verification failure" in found.detail


def test_a_request_that_is_no_der_is_refused() -> None:
    (found,) = MAIN.validate(signing_request(request=pem("CERTIFICATE REQUEST", b"nonsense")))
    assert found.field == "spec.request"


def test_an_update_of_the_request_itself_changes_nothing() -> None:
    old = signing_request()
    new = deepcopy(old)
    new["spec"]["signerName"] = "example.com/other"
    new["status"] = {"conditions": [OK]}
    MAIN.prepare_for_update(new, old)
    assert (new["spec"], new["status"]) == (old["spec"], old["status"])


def test_only_the_approval_subresource_decides() -> None:
    old = signing_request()
    assert refusals(APPROVAL, old, conditions=[OK]) == []
    assert refusals(STATUS, old, conditions=[OK]) == [
        'status.conditions: Forbidden: updates may not add a condition of type "Approved"'
    ]


def test_only_the_status_subresource_signs_and_only_once() -> None:
    old = signing_request()
    signed = new_certificate()
    assert refusals(STATUS, old, certificate=signed) == []
    assert updated(APPROVAL, old, certificate=signed, conditions=[OK])["status"].keys() == {"conditions"}
    issued = signing_request({"certificate": signed})
    assert refusals(STATUS, issued, certificate=signed + signed) != []
    assert refusals(STATUS, issued, certificate="") == [
        "status.certificate: Forbidden: updates may not modify existing certificate content"
    ]


def test_a_decision_is_never_taken_back() -> None:
    decided = updated(APPROVAL, signing_request(), conditions=[OK])
    assert refusals(APPROVAL, decided, conditions=[]) == [
        'status.conditions: Forbidden: updates may not remove a condition of type "Approved"'
    ]
    denied: Json = {"type": "Denied", "status": "True"}
    assert refusals(APPROVAL, decided, conditions=[*decided["status"]["conditions"], denied]) == [
        'status.conditions: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive'
    ]


def test_the_status_subresource_keeps_the_decision_as_it_is() -> None:
    decided = updated(APPROVAL, signing_request(), conditions=[OK | {"reason": "Fine"}])
    again = updated(STATUS, decided, conditions=[OK | {"reason": "Forged"}])
    assert again["status"]["conditions"] == decided["status"]["conditions"]


def test_conditions_have_types_and_statuses() -> None:
    assert refusals(APPROVAL, signing_request(), conditions=[{}, {"type": "Odd", "status": "Maybe"}]) == [
        "status.conditions[0].type: Required value",
        "status.conditions[0].status: Required value",
        'status.conditions[1].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
    ]


def test_the_time_of_a_condition_is_kept_while_its_status_is() -> None:
    decided = updated(APPROVAL, signing_request(), conditions=[OK | {"lastTransitionTime": "2024-01-01T00:00:00Z"}])
    again = updated(APPROVAL, decided, conditions=[OK])
    assert again["status"]["conditions"][0]["lastTransitionTime"] == "2024-01-01T00:00:00Z"
    assert again["status"]["conditions"][0]["lastUpdateTime"] > "2024-01-01"


@pytest.mark.parametrize(
    ("certificate", "why"),
    [
        (base64.b64encode(b"x").decode(), "must contain at least one CERTIFICATE PEM block"),
        (pem("PRIVATE KEY", b"x"), 'only CERTIFICATE PEM blocks are allowed, found "PRIVATE KEY"'),
        (
            base64.b64encode(b"-----BEGIN CERTIFICATE-----\na: b\n\neA==\n-----END CERTIFICATE-----\n").decode(),
            "no PEM block headers are permitted",
        ),
    ],
)
def test_what_is_signed_must_be_certificates(certificate: str, why: str) -> None:
    assert refusals(STATUS, signing_request(), certificate=certificate) == [
        f'status.certificate: Invalid value: "<certificate data>": {why}'
    ]


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        ({}, "Pending"),
        ({"conditions": [OK], "certificate": "eA=="}, "Approved,Issued"),
        ({"conditions": [OK, {"type": "Denied"}, {"type": "Failed"}]}, "Denied,Failed"),
    ],
)
def test_the_table_shows_what_became_of_a_request(status: Json, shown: str) -> None:
    assert REQUESTS.columns[-1].cell({"status": status}) == shown


def test_the_table_shows_the_duration_that_was_asked_for() -> None:
    duration = next(column for column in REQUESTS.columns if column.name == "RequestedDuration").cell
    assert (duration({"spec": {"expirationSeconds": 3600}}), duration({"spec": {}})) == ("60m", "<none>")


SIGNED_BY_SHA1 = {
    # No library makes these any more: openssl req -new -sha1 -subj /CN=a -outform DER
    "rsa": (
        "MIIBSzCBtQIBADAMMQowCAYDVQQDDAFhMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDeJUkUlEVSG8+DaT+61Y7lJ92BEwMu"
        "ixaWieSDTA8uO9Ny1fVGuZLaDFNH69EjVZf4632MF9D/1v9r8lbSiO2zHa2p4UNHZtcEOw8pa0kElt1k0l3xBGIAGLfeoCDlOPsl"
        "31esJ4IMO6U5aj7mFUzFKJMJJwaZteFX5iSFxcOQAQIDAQABoAAwDQYJKoZIhvcNAQEFBQADgYEAFVuK//jckeime6lPKPyU8t/f"
        "H6jn2+71Tlfsbrp+RdflrANn/97oNED0tLfugWLmS2ONQ5yOg53rx0xVSMlnHDDXgha8mcKRbAYQVrJEu2BketDalToaAOElxwpI"
        "TZuLfXxOVE8jaMCOy/YhnBTa/A1Dg9PsTwFIHR8LQfY/5ZM="
    ),
    "ec": (
        "MIHFMG4CAQAwDDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEbkgf2oxubO/EVc6y+lrZhj5rSuLpteLKVH"
        "t2vuCijDqVu5bMkfUfRTOdFX6frWOkFMVxLFavWdFbmfhJxOwjKgADAJBgcqhkjOPQQBA0gAMEUCIQDEeVnfxZcR8S1BP7lsRJkZ"
        "pKNVUBXfhopJ92C5f2SM9gIgWiWtNRWOoSDkFHYbks40TPIvicUyw1OgcPY57B+ppyY="
    ),
}


@pytest.mark.parametrize(
    ("key", "why"), [("rsa", "crypto/rsa: verification error"), ("ec", "x509: ECDSA verification failure")]
)
def test_a_request_may_be_signed_by_sha1(key: str, why: str) -> None:
    der = base64.b64decode(SIGNED_BY_SHA1[key])
    assert request_problem(pem("CERTIFICATE REQUEST", der)) == ""
    spoilt = der[:-1] + bytes([der[-1] ^ 1])
    assert request_problem(pem("CERTIFICATE REQUEST", spoilt)) == why
