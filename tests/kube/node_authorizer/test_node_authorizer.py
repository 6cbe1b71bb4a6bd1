"""What a kubelet may do, and that the graph says what looking at every pod would say."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.server.features import FeatureGates, serve_with
from pilothouse.kube.node_authorizer.authorizer import NodeAuthorizer
from pilothouse.kube.node_authorizer.graph import NodeGraph, ReferredObject, references_of_pod, secrets_of_volume
from pilothouse.machinery.objects import Json

NODE = User("system:node:n1", groups=("system:nodes", "system:authenticated"))
CLAIM = ReferredObject("persistentvolumeclaims", "ns", "claim")


def asked(verb: str, resource: str, name: str = "", *, group: str = "", user: User = NODE, **rest: Any) -> Attributes:
    return Attributes(user, verb, is_resource=True, group=group, version="v1", resource=resource, name=name, **rest)


@pytest.fixture
def graph() -> NodeGraph:
    graph = NodeGraph()
    pod: Json = {
        "metadata": {"namespace": "ns", "name": "p"},
        "spec": {
            "serviceAccountName": "sa",
            "imagePullSecrets": [{"name": "pull"}],
            "containers": [
                {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}]},
                {"envFrom": [{"configMapRef": {"name": "whole"}}]},
            ],
            "volumes": [
                {"name": "a", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
                {"name": "b", "persistentVolumeClaim": {"claimName": "claim"}},
                {"name": "c", "ephemeral": {}},
                {"name": "d", "csi": {"driver": "x", "nodePublishSecretRef": {"name": "publish"}}},
            ],
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        },
        "status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "p-gpu"}]},
    }
    graph.place(ReferredObject("pods", "ns", "p"), "n1", references_of_pod(pod))
    volume: Json = {"spec": {"csi": {"nodeStageSecretRef": {"namespace": "other", "name": "stage"}}}}
    graph.put_volume("pv", CLAIM, secrets_of_volume(volume))
    graph.place(ReferredObject("volumeattachments", "", "va"), "n1")
    return graph


async def decide(graph: NodeGraph, question: Attributes) -> Answer:
    return await NodeAuthorizer(graph).authorize(question)


@pytest.mark.parametrize(
    "question",
    [
        *(asked("get", "secrets", name, namespace="ns") for name in ("pull", "key", "projected", "publish")),
        asked("watch", "configmaps", "whole", namespace="ns"),
        asked("get", "persistentvolumeclaims", "claim", namespace="ns"),
        asked("get", "persistentvolumeclaims", "p-c", namespace="ns"),
        asked("patch", "persistentvolumeclaims", "claim", namespace="ns", subresource="status"),
        asked("get", "persistentvolumes", "pv"),
        asked("get", "secrets", "stage", namespace="other"),
        asked("get", "volumeattachments", "va", group="storage.k8s.io"),
        asked("get", "resourceclaims", "p-gpu", group="resource.k8s.io", namespace="ns"),
        asked("get", "serviceaccounts", "sa", namespace="ns"),
        asked("create", "serviceaccounts", "sa", namespace="ns", subresource="token"),
        asked("get", "pods", "p", namespace="ns"),
        asked("list", "pods", field_selector="spec.nodeName=n1"),
        asked("list", "resourceslices", group="resource.k8s.io", field_selector="spec.nodeName=n1"),
        asked("update", "leases", "n1", group="coordination.k8s.io", namespace="kube-node-lease"),
        asked("delete", "csinodes", "n1", group="storage.k8s.io"),
        asked("get", "nodes", "n1"),
        asked("create", "nodes"),
        asked("list", "services"),
        asked("create", "certificatesigningrequests", group="certificates.k8s.io"),
    ],
    ids=lambda question: f"{question.verb} {question.resource} {question.name}",
)
async def test_a_kubelet_may_do_what_its_pods_need(graph: NodeGraph, question: Attributes) -> None:
    assert (await decide(graph, question)).decision is Decision.ALLOW


NO_RELATION = "no relationship found between node 'n1' and this object"


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        (asked("get", "secrets", "alien", namespace="ns"), NO_RELATION),
        (asked("get", "secrets", "pull", namespace="elsewhere"), NO_RELATION),
        (asked("list", "secrets", namespace="ns"), "No Object name found"),
        (asked("get", "secrets", "pull"), "can only read namespaced object of this type"),
        (asked("create", "secrets", "pull", namespace="ns"), "can only read resources of this type"),
        (asked("list", "persistentvolumes"), "can only get individual resources of this type"),
        (asked("list", "pods"), "can only list/watch pods with spec.nodeName field selector"),
        (
            asked("list", "pods", field_selector="spec.nodeName!=n1"),
            "can only list/watch pods with spec.nodeName field selector",
        ),
        (asked("list", "nodes"), "node 'n1' cannot read all nodes, only its own Node object"),
        (asked("get", "nodes", "n2"), "node 'n1' cannot read 'n2', only its own Node object"),
        (
            asked("get", "leases", "n1", group="coordination.k8s.io", namespace="default"),
            'can only access leases in the "kube-node-lease" system namespace',
        ),
        (
            asked("create", "serviceaccounts", "sa", namespace="ns"),
            "can only create token subresource of serviceaccount",
        ),
        (asked("delete", "services", "s"), ""),
        (
            asked("get", "nodes", "", user=User("system:node:", groups=("system:nodes",))),
            'unknown node for user "system:node:"',
        ),
        (asked("get", "secrets", "pull", namespace="ns", user=User("system:node:n1")), ""),
    ],
    ids=lambda value: value.resource if isinstance(value, Attributes) else "",
)
async def test_a_kubelet_may_do_no_more(graph: NodeGraph, question: Attributes, reason: str) -> None:
    assert await decide(graph, question) == Answer(Decision.NO_OPINION, reason)


async def test_what_only_a_mirror_pod_names_stays_closed() -> None:
    graph = NodeGraph()
    graph.place(ReferredObject("pods", "ns", "p"), "n1")
    assert (await decide(graph, asked("get", "pods", "p", namespace="ns"))).decision is Decision.ALLOW
    assert (await decide(graph, asked("get", "secrets", "s", namespace="ns"))).reason == NO_RELATION


async def test_the_rules_of_nodes_cannot_be_listed(graph: NodeGraph) -> None:
    rules = await NodeAuthorizer(graph).rules_for(NODE, "ns")
    assert (rules.incomplete, rules.error) == (True, "node authorizer does not support user rule resolution")
    assert not (await NodeAuthorizer(graph).rules_for(User("jane"), "ns")).incomplete


_SECRETS = [ReferredObject("secrets", "ns", name) for name in "ab"]
_CLAIMS = [ReferredObject("persistentvolumeclaims", "ns", name) for name in "ab"]
_NODES = ["n1", "n2"]
_PODS = [ReferredObject("pods", "ns", name) for name in "pq"]
_placed = st.tuples(
    st.sampled_from(_PODS), st.sampled_from(["", *_NODES]), st.sets(st.sampled_from(_SECRETS + _CLAIMS))
)
_volumes = st.tuples(st.sampled_from(["v", "w"]), st.sampled_from([None, *_CLAIMS]), st.sets(st.sampled_from(_SECRETS)))


@settings(max_examples=60, deadline=None)
@given(st.lists(_placed | _volumes, max_size=12))
def test_the_index_says_what_following_every_reference_would_say(steps: list[Any]) -> None:
    graph = NodeGraph()
    pods: dict[ReferredObject, tuple[str, set[ReferredObject]]] = {}
    volumes: dict[str, tuple[ReferredObject, set[ReferredObject]]] = {}
    for subject, value, names in steps:
        if isinstance(subject, ReferredObject):
            graph.place(subject, value, names)
            pods[subject] = (value, {subject, *names}) if value else ("", set())
        elif value is None:
            graph.drop_volume(subject)
            volumes.pop(subject, None)
        else:
            graph.put_volume(subject, value, names)
            volumes[subject] = (value, names)
    for node in _NODES:
        direct = set().union(*(names for on, names in pods.values() if on == node))
        used = {name for name, (claim, _) in volumes.items() if claim in direct}
        through = {secret for name in used for secret in volumes[name][1]}
        for reference in (*_SECRETS, *_CLAIMS, *_PODS):
            assert graph.is_related(node, reference) == (reference in direct | through)
        for name in ("v", "w"):
            assert graph.is_related(node, ReferredObject("persistentvolumes", "", name)) == (name in used)


@pytest.mark.parametrize(
    ("verb", "rest", "reason"),
    [
        ("create", {}, ""),
        ("get", {"name": "mine", "namespace": "ns"}, ""),
        ("get", {"name": "alien", "namespace": "ns"}, "no relationship found between node 'n1' and this object"),
        ("list", {"field_selector": "spec.nodeName=n1"}, ""),
        ("list", {}, "can only list/watch podcertificaterequests with nodeName field selector"),
        ("delete", {"name": "mine", "namespace": "ns"}, "nodes may not delete podcertificaterequests"),
        (
            "update",
            {"name": "mine", "namespace": "ns", "subresource": "status"},
            "nodes may not access the status subresource of PodCertificateRequests",
        ),
    ],
)
async def test_certificates_of_pods_are_asked_for_where_the_gate_is_on(
    graph: NodeGraph, verb: str, rest: dict[str, Any], reason: str
) -> None:
    graph.place(ReferredObject("podcertificaterequests", "ns", "mine"), "n1")
    question = asked(verb, "podcertificaterequests", group="certificates.k8s.io", **rest)

    async def with_the_gate() -> Answer:
        serve_with(FeatureGates({"PodCertificateRequest": True}))
        return await decide(graph, question)

    answer = await asyncio.create_task(with_the_gate())
    assert (answer.decision is Decision.ALLOW, answer.reason) == (not reason, reason)
    assert (await decide(graph, question)).decision is Decision.NO_OPINION
