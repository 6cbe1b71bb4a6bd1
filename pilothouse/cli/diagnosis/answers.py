"""Interpretation of discovery answers, and of the permissions that an extension API server needs."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import orjson

from pilothouse.apiserver.outbound.request import OutboundResponse
from pilothouse.cli.diagnosis.findings import Finding, failed, note, ok
from pilothouse.client.rest.client import Client
from pilothouse.client.rest.options import ListOptions
from pilothouse.controlplane.delegation_roles import bind_auth_delegator, bind_trust_reader
from pilothouse.kube.bootstrap.cluster_authentication_trust import NAME, NAMESPACE
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, labels_of, namespace_of
from pilothouse.machinery.status_error import StatusError

SLOW = 1.0
"""Seconds. Slower discovery delays every client, because clients request discovery first."""
_SPEED_UP = "check the load and the log of the server, and the latency of its storage and of the cluster"
_AS_AGGREGATOR = "use --proxy-client-cert-file and --proxy-client-key-file to send requests as the aggregator"
REJECTED_FRONT_PROXY = (
    "let the server read ConfigMap kube-system/extension-apiserver-authentication (Role "
    "extension-apiserver-authentication-reader), trust the front proxies in it, and allow system:masters everything"
)
"""Advice for a server that rejects the user named by a trusted front proxy."""


@dataclass(frozen=True, slots=True)
class DiscoveryRequest:
    url: str
    wanted: GroupVersion
    seconds: float
    """Latency of the answer."""
    identified: bool
    """Whether the request carried the aggregator's client certificate."""


def judge(answer: OutboundResponse, request: DiscoveryRequest, served: Sequence[str] = ()) -> Finding:
    """Return the finding for a discovery answer. `others`: the served group versions, after a 404."""
    text = f"{request.url} answers {answer.status} ({request.seconds * 1000:.1f} ms)"
    if 200 <= answer.status < 300:
        return other_group("discovery", _document(answer.body), request) or timed("discovery", text, request.seconds)
    refusal = forbidden_delegation(answer.body.decode("utf-8", "replace"))
    if refusal is not None:
        return refusal
    if answer.status == 404:
        groups = ", ".join(served) or "no API group"
        return failed("discovery", f"{text}: the server serves {groups}", _right_group(request.wanted))
    if answer.status not in (401, 403):
        return failed("discovery", text, "check the log of the server: it must answer the aggregator")
    if not request.identified:
        return note("authentication", text, _AS_AGGREGATOR)
    return failed("authentication", text, REJECTED_FRONT_PROXY)


def other_group(step: str, document: Json, request: DiscoveryRequest) -> Finding | None:
    """Return a finding if the document describes another group version; None if it is the requested one."""
    served = document.get("groupVersion")
    if served == str(request.wanted):
        return None
    problem = (
        f"is a document of {served}, not of {request.wanted}"
        if served
        else "answers with something other than a discovery document"
    )
    return failed(step, f"{request.url} {problem}", _right_group(request.wanted))


def too_slow(step: str, url: str, seconds: float) -> Finding:
    return failed(step, f"{url}: no answer within {seconds:g} s, the timeout of the aggregator", _SPEED_UP)


def timed(step: str, text: str, seconds: float) -> Finding:
    return note(step, f"slow: {text}", _SPEED_UP) if seconds > SLOW else ok(step, text)


def served_groups(answer: OutboundResponse) -> list[str]:
    """Return the group versions in an answer to /apis."""
    groups = _document(answer.body).get("groups")
    versions = [version for group in _dicts(groups) for version in _dicts(group.get("versions"))]
    return [str(version.get("groupVersion")) for version in versions]


def _right_group(wanted: GroupVersion) -> str:
    return f"name in the APIService the group and version that the server serves, or the Service that serves {wanted}"


def _document(body: bytes) -> Json:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return document if isinstance(document, dict) else {}


def _dicts(value: Any) -> list[Json]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


_STEP = "delegation"
_TRUST_MAP: Json = {"verb": "get", "resource": "configmaps", "namespace": NAMESPACE, "name": NAME}
_REVIEWS: tuple[Json, ...] = (
    {"verb": "create", "group": "authentication.k8s.io", "resource": "tokenreviews"},
    {"verb": "create", "group": "authorization.k8s.io", "resource": "subjectaccessreviews"},
)
_FORBIDDEN = re.compile(
    r'User \\*"(?P<user>[^"\\]+)\\*" cannot \w+ resource \\*"(?P<what>configmaps|tokenreviews|subjectaccessreviews)\\*"'
)


def forbidden_delegation(message: str) -> Finding | None:
    """Return a finding if the message says that the cluster forbids the server a delegated request; else None."""
    match = _FORBIDDEN.search(message)
    if match is None:
        return None
    bind = bind_trust_reader if match["what"] == "configmaps" else bind_auth_delegator
    return failed(_STEP, f"the cluster refuses {match['what']} to the server, {match['user']}", bind(match["user"]))


async def examine_delegation(client: Client, service: Json) -> AsyncIterator[Finding]:
    """Check the permissions of the ServiceAccounts behind the Service. Yields nothing if there are no pods."""
    try:
        for account in sorted(await _service_accounts(client, service)):
            for finding in await _examine(client, namespace_of(service), account):
                yield finding
    except StatusError as error:
        yield note(_STEP, f"the permissions of the server are unknown: {error}")


async def _examine(client: Client, namespace: str, account: str) -> list[Finding]:
    user, named = f"system:serviceaccount:{namespace}:{account}", f"ServiceAccount {namespace}/{account}"
    groups = ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
    subject: Json = {"user": user, "groups": groups}
    refused = [review["resource"] for review in _REVIEWS if not await _may(client, subject, review)]
    findings = []
    if not await _may(client, subject, _TRUST_MAP):
        findings.append(failed(_STEP, f"{named} may not read ConfigMap {NAMESPACE}/{NAME}", bind_trust_reader(user)))
    if refused:
        findings.append(failed(_STEP, f"{named} may not create {' and '.join(refused)}", bind_auth_delegator(user)))
    return findings or [ok(_STEP, f"{named} may read the authentication configuration and create reviews")]


async def _may(client: Client, subject: Json, attributes: Json) -> bool:
    reviews = client.resource("authorization.k8s.io/v1", "subjectaccessreviews")
    review = await reviews.create({"spec": {**subject, "resourceAttributes": attributes}})
    return bool(review["status"].get("allowed"))


async def _service_accounts(client: Client, service: Json) -> set[str]:
    """Return the accounts of the selected pods, or of the Deployments that would create such pods."""
    selector: Mapping[str, str] = service["spec"].get("selector") or {}
    if not selector:
        return set()
    namespace = namespace_of(service)
    options = ListOptions(label_selector=",".join(f"{key}={value}" for key, value in selector.items()))
    pods: list[Json] = (await client.resource("v1", "pods", namespace=namespace).list(options))["items"]
    if not pods:
        deployments = await client.resource("apps/v1", "deployments", namespace=namespace).list()
        templates = [deployment["spec"]["template"] for deployment in deployments["items"]]
        pods = [template for template in templates if selector.items() <= labels_of(template).items()]
    return {pod["spec"].get("serviceAccountName") or "default" for pod in pods}
