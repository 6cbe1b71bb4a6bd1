"""NodeRestriction for PodCertificateRequests: a kubelet asks for what runs on its node, as it runs."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Decision
from pilothouse.apiserver.authz.interface import Attributes as Question
from pilothouse.apiserver.server.features import FeatureGates, serve_with
from pilothouse.kube.admission.node_restriction import credentials
from pilothouse.kube.admission.node_restriction.credentials import NodePodCertificates
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError
from pilothouse.machinery.version_rules import RULES

_STORED: dict[str, dict[str, Json]] = {
    "nodes": {"n1": {"metadata": {"name": "n1", "uid": "node-uid"}}},
    "pods": {
        "mine": {"metadata": {"uid": "u"}, "spec": {"nodeName": "n1", "serviceAccountName": "robot"}},
        "mounts": {
            "metadata": {"uid": "m"},
            "spec": {
                "nodeName": "n1",
                "serviceAccountName": "robot",
                "volumes": [{"projected": {"sources": [{"podCertificate": {"signerName": "example.com/mounted"}}]}}],
            },
        },
        "alien": {"metadata": {"uid": "a"}, "spec": {"nodeName": "n2", "serviceAccountName": "robot"}},
    },
    "accounts": {"robot": {"metadata": {"uid": "r"}}},
}
_MINE = {
    "nodeName": "n1",
    "nodeUID": "node-uid",
    "podName": "mine",
    "podUID": "u",
    "serviceAccountName": "robot",
    "serviceAccountUID": "r",
}


def _get(kind: str) -> Any:
    async def found(name: str, namespace: str = "") -> Json | None:
        return _STORED[kind].get(name)

    return found


class OnlyOneSigner:
    """Allows the kubelet to use `example.com/any` for the account `robot`."""

    async def authorize(self, attributes: Question) -> Answer:
        assert attributes.verb == "request-serviceaccounts-podcertificate-signer"
        allowed = (attributes.resource, attributes.name) == ("example.com:any", "robot")
        return Answer(Decision.ALLOW if allowed else Decision.NO_OPINION)


async def _refusal(gates: FeatureGates, spec: Json) -> str:
    """Empty for a request that may pass."""
    serve_with(gates)
    certificates = NodePodCertificates(OnlyOneSigner(), _get("nodes"), _get("pods"), _get("accounts"))
    attributes = Attributes(
        operation=Operation.CREATE,
        kind=GroupVersionKind("certificates.k8s.io", "v1beta1", "PodCertificateRequest"),
        resource=GroupVersionResource("certificates.k8s.io", "v1beta1", "podcertificaterequests"),
        user=User("system:node:n1", groups=("system:nodes",)),
        obj={"spec": spec},
        name="request",
        namespace="ns",
        subresource="",
    )
    try:
        await certificates.admit("n1", attributes)
    except StatusError as error:
        return f"{error.code} {error.message.partition('is forbidden: ')[2] or error.message}"
    return ""


async def _in_its_own_task(gates: dict[str, bool], spec: Json) -> str:
    return await asyncio.create_task(_refusal(FeatureGates(gates), spec))


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({}, ""),
        (
            {"nodeName": "n2"},
            '403 PodCertificateRequest.Spec.NodeName="n2", which is not the requesting node "n1"',
        ),
        (
            {"podName": "alien", "podUID": "a"},
            '403 pod "ns/alien" is not running on node "n1" named in the PodCertificateRequest',
        ),
        (
            {"serviceAccountName": "other"},
            '403 PodCertificateRequest for pod "ns/mine" contains serviceAccountName ("other") that differs from '
            'running pod ("robot")',
        ),
        (
            {"podUID": "old"},
            '500 Internal error occurred: PodCertificateRequest for pod "ns/mine" contains pod UID ("old") which '
            'differs from running pod "u"',
        ),
        ({"podName": "gone"}, '404 pods "gone" not found'),
    ],
)
async def test_a_kubelet_asks_for_pods_on_its_node_only(changed: Json, refusal: str) -> None:
    assert await _in_its_own_task({"PodCertificateRequest": True}, _MINE | changed) == refusal


async def test_nothing_is_asked_for_while_the_gate_is_off() -> None:
    assert await _in_its_own_task({}, _MINE) == "403 PodCertificateRequest feature gate is disabled"


@pytest.mark.parametrize(
    ("pod", "signer", "refusal"),
    [
        ({"podName": "mounts", "podUID": "m"}, "example.com/mounted", ""),
        ({}, "example.com/any", ""),
        (
            {},
            "example.com/mounted",
            '403 pod "ns/mine" does not mount a podCertificate projected volume for signer "example.com/mounted"',
        ),
    ],
)
async def test_a_kubelet_asks_only_signers_of_the_pods_volumes_or_its_own(
    monkeypatch: pytest.MonkeyPatch, pod: Json, signer: str, refusal: str
) -> None:
    monkeypatch.setattr(credentials, "holds", lambda name: RULES[name].holds_in(37))
    assert await _in_its_own_task({"PodCertificateRequest": True}, {**_MINE, **pod, "signerName": signer}) == refusal
