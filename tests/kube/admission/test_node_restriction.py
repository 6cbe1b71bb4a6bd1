"""What kubelets may write: their own objects, and of them what is theirs to say."""

from __future__ import annotations

from typing import Any

import pytest
from signing_requests import new_request

from pilothouse.apiserver.admission.interface import Attributes, Operation
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Decision
from pilothouse.apiserver.authz.interface import Attributes as Question
from pilothouse.kube.admission.node_restriction.credentials import NodePodCertificates, NodeTokens
from pilothouse.kube.admission.node_restriction.plugin import NodeRestriction
from pilothouse.kube.admission.node_restriction.pods import NodePods
from pilothouse.machinery.names import GroupVersionKind, GroupVersionResource
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import StatusError

NODE = User("system:node:n1", groups=("system:nodes",))
CREATE, UPDATE, DELETE = Operation.CREATE, Operation.UPDATE, Operation.DELETE
STORED: dict[str, dict[str, Json]] = {
    "pods": {
        "mine": {
            "metadata": {"name": "mine", "namespace": "ns", "uid": "u"},
            "spec": {
                "nodeName": "n1",
                "volumes": [
                    {"name": "t", "projected": {"sources": [{"serviceAccountToken": {"audience": "vault"}}]}},
                    {"name": "c", "persistentVolumeClaim": {"claimName": "claim"}},
                ],
            },
        },
        "alien": {"metadata": {"name": "alien", "namespace": "ns", "uid": "a"}, "spec": {"nodeName": "n2"}},
        "lost": {
            "metadata": {"name": "lost", "namespace": "ns", "uid": "l"},
            "spec": {"nodeName": "n1", "volumes": [{"name": "c", "csi": {"driver": "gone"}}]},
        },
    },
    "nodes": {"n1": {"metadata": {"name": "n1", "uid": "node-uid"}}},
    "claims": {"claim": {"spec": {"volumeName": "pv"}}},
    "volumes": {"pv": {"spec": {"csi": {"driver": "csi.example.com"}}}},
    "drivers": {"csi.example.com": {"spec": {"tokenRequests": [{"audience": "storage"}]}}},
}


def get(kind: str) -> Any:
    async def found(name: str, namespace: str = "") -> Json | None:
        return STORED[kind].get(name)

    return found


class OnlyWildAudience:
    async def authorize(self, attributes: Question) -> Answer:
        assert attributes.verb == "request-serviceaccounts-token-audience"
        return Answer(Decision.ALLOW if attributes.resource == "wild" else Decision.NO_OPINION)


PLUGIN = NodeRestriction(
    NodePods(pods=get("pods"), nodes=get("nodes")),
    NodeTokens(OnlyWildAudience(), get("pods"), get("claims"), get("volumes"), get("drivers")),
    NodePodCertificates(OnlyWildAudience(), get("nodes"), get("pods"), get("accounts")),
)


def write(
    operation: Operation, resource: str, obj: Json | None, *, group: str = "", user: User = NODE, **rest: Any
) -> Attributes:
    named = {"name": ((obj or rest.get("old") or {}).get("metadata") or {}).get("name", "")} | rest
    return Attributes(
        operation=operation,
        kind=GroupVersionKind(group, "v1", "Any"),
        resource=GroupVersionResource(group, "v1", resource),
        user=user,
        obj=obj,
        **{"subresource": "", "namespace": "ns"} | named,
    )


async def refusal(attributes: Attributes) -> str:
    """Empty for a write that may pass."""
    try:
        await PLUGIN.admit(attributes)
    except StatusError as error:
        return error.message.partition("is forbidden: ")[2] or error.message
    return ""


def mirror(**changed: Any) -> Json:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid", "controller": True}
    meta = {"name": "m", "annotations": {"kubernetes.io/config.mirror": "x"}, "ownerReferences": [owner]}
    return {"metadata": meta | changed.pop("metadata", {}), "spec": {"nodeName": "n1"} | changed}


_OWNER = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "node-uid", "controller": True}
_VOLUME = {"name": "v"}


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (mirror(), ""),
        (
            mirror(metadata={"annotations": {}}),
            'pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods',
        ),
        (mirror(nodeName="n2"), 'node "n1" can only create pods with spec.nodeName set to itself'),
        (
            mirror(metadata={"ownerReferences": []}),
            'node "n1" can only create pods with an owner reference set to itself',
        ),
        (
            mirror(metadata={"ownerReferences": [_OWNER, _OWNER]}),
            'node "n1" can only create pods with a single owner reference set to itself',
        ),
        (
            mirror(metadata={"ownerReferences": [_OWNER | {"controller": False}]}),
            'node "n1" can only create pods with a controller owner reference set to itself',
        ),
        (
            mirror(metadata={"ownerReferences": [_OWNER | {"blockOwnerDeletion": True}]}),
            'node "n1" must not set blockOwnerDeletion on an owner reference',
        ),
        (
            mirror(metadata={"ownerReferences": [_OWNER | {"uid": "old"}]}),
            "node n1 UID mismatch: expected old got node-uid",
        ),
        (mirror(serviceAccountName="sa"), 'node "n1" can not create pods that reference serviceaccounts'),
        (mirror(volumes=[_VOLUME | {"hostPath": {"path": "/"}}]), ""),
        (mirror(nodeSelector={"secretName": "fast", "configMapRef": "no"}), ""),
        (
            mirror(volumes=[_VOLUME | {"csi": {"driver": "d", "volumeAttributes": {"secretName": "shape"}}}]),
            'node "n1" can not create pods that reference csidrivers (via CSI volumes)',
        ),
        (
            mirror(volumes=[_VOLUME | {"secret": {"optional": True}}]),
            'node "n1" can not create pods that reference secrets (via secret volumes)',
        ),
        (
            mirror(volumes=[_VOLUME | {"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]),
            'node "n1" can not create pods that reference serviceaccounts (via projected volumes)',
        ),
        (
            mirror(volumes=[_VOLUME | {"novel": {}}]),
            'error checking mirror pod for API references: unknown volume type for volume  "v"',
        ),
    ],
)
async def test_kubelets_create_mirror_pods_of_their_own(pod: Json, why: str) -> None:
    assert await refusal(write(CREATE, "pods", pod)) == why


async def test_kubelets_end_only_pods_on_their_node() -> None:
    assert await refusal(write(DELETE, "pods", None, name="mine")) == ""
    why = 'node "n1" can only delete pods with spec.nodeName set to itself'
    assert await refusal(write(DELETE, "pods", None, name="alien")) == why
    assert await refusal(write(DELETE, "pods", None, name="none")) == 'pod "none" not found'
    evict = write(CREATE, "pods", {"metadata": {"name": "alien"}}, subresource="eviction")
    assert await refusal(evict) == "node n1 can only evict pods with spec.nodeName set to itself"
    assert await refusal(write(UPDATE, "pods", mirror(), old=mirror())) == (
        'unexpected operation "UPDATE", node "n1" can only create and delete mirror pods'
    )
    assert "unexpected pod subresource" in await refusal(write(UPDATE, "pods", mirror(), subresource="resize"))


async def test_kubelets_report_the_status_of_their_pods_and_nothing_else() -> None:
    old = {"metadata": {"name": "p", "labels": {"a": "b"}}, "spec": {"nodeName": "n1"}, "status": {}}
    reported = old | {"status": {"phase": "Running"}}
    assert await refusal(write(UPDATE, "pods", reported, old=old, subresource="status")) == ""
    labelled = old | {"metadata": {"name": "p"}}
    assert await refusal(write(UPDATE, "pods", labelled, old=old, subresource="status")) == (
        'node "n1" cannot update labels through pod status'
    )
    claimed = old | {"status": {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "stolen"}]}}
    assert await refusal(write(UPDATE, "pods", claimed, old=old, subresource="status")) == (
        'node "n1" cannot update resource claim statues'
    )


def node(name: str = "n1", *, labels: dict[str, str] | None = None, **spec: Any) -> Json:
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (node(labels={"kubernetes.io/hostname": "h", "x.node.kubernetes.io/a": "b", "example.com/c": "d"}), ""),
        (node("n2"), 'node "n1" is not allowed to modify node "n2"'),
        (node(taints=[{"key": "k", "effect": "NoSchedule"}]), 'node "n1" is not allowed to modify taints'),
        (
            node(labels={"node-restriction.kubernetes.io/a": "b"}),
            "is not allowed to modify labels: node-restriction.kubernetes.io/a",
        ),
        (
            node(labels={"foo.k8s.io/z": "", "kubernetes.io/a": ""}),
            "is not allowed to modify labels: foo.k8s.io/z, kubernetes.io/a",
        ),
        (
            node(configSource={"configMap": {}}),
            'node "n1" is not allowed to update configSource to a new non-nil configSource',
        ),
    ],
)
async def test_kubelets_change_of_their_node_what_is_theirs(new: Json, why: str) -> None:
    assert await refusal(write(UPDATE, "nodes", new, old=node(new["metadata"]["name"]))) == why


async def test_a_new_node_sets_no_label_that_others_rely_on() -> None:
    why = 'node "n1" is not allowed to set the following labels: kubernetes.io/role'
    assert await refusal(write(CREATE, "nodes", node(labels={"kubernetes.io/role": "master"}))) == why
    assert await refusal(write(CREATE, "nodes", node(taints=[{"key": "k", "effect": "NoSchedule"}]))) == ""


async def test_objects_of_other_nodes_are_closed() -> None:
    lease = {"metadata": {"name": "n2"}}
    where: dict[str, Any] = {"group": "coordination.k8s.io", "namespace": "kube-node-lease"}
    other = "can only access node lease with the same name as the requesting node"
    assert await refusal(write(CREATE, "leases", lease, **where)) == other
    assert await refusal(write(DELETE, "leases", None, name="n1", **where)) == ""
    assert "system namespace" in await refusal(write(DELETE, "leases", None, name="n1", group="coordination.k8s.io"))
    csi = write(CREATE, "csinodes", lease, group="storage.k8s.io")
    assert await refusal(csi) == "can only access CSINode with the same name as the requesting node"
    piece = {"metadata": {"name": "s"}, "spec": {"nodeName": "n2"}}
    slices = "can only create ResourceSlice with the same NodeName as the requesting node"
    assert await refusal(write(CREATE, "resourceslices", piece, group="resource.k8s.io")) == slices
    assert await refusal(write(UPDATE, "resourceslices", piece, old=piece, group="resource.k8s.io")) == ""


async def test_a_claim_keeps_all_but_what_kubelets_report() -> None:
    old = {"metadata": {"name": "c", "resourceVersion": "1"}, "spec": {}, "status": {"phase": "Bound"}}
    grown = old | {
        "metadata": {"name": "c", "resourceVersion": "2"},
        "status": {"phase": "Bound", "capacity": {"storage": "2Gi"}},
    }
    assert await refusal(write(UPDATE, "persistentvolumeclaims", grown, old=old, subresource="status")) == ""
    lost = old | {"status": {"phase": "Lost"}}
    why = await refusal(write(UPDATE, "persistentvolumeclaims", lost, old=old, subresource="status"))
    assert why.startswith('node "n1" is not allowed to update fields other than status.quantity and status.conditions')
    assert await refusal(write(UPDATE, "persistentvolumeclaims", old, old=old)) == "may only update PVC status"


@pytest.mark.parametrize(
    ("common_name", "passes"), [("system:node:n1", True), ("system:node:n2", False), ("n1", False)]
)
async def test_a_kubelet_asks_for_certificates_in_its_own_name(common_name: str, passes: bool) -> None:
    spec = {"signerName": "kubernetes.io/kubelet-serving", "request": new_request(common_name=common_name)}
    request = write(
        CREATE, "certificatesigningrequests", {"metadata": {"name": "c"}, "spec": spec}, group="certificates.k8s.io"
    )
    assert await refusal(request) == ("" if passes else "can only create a node CSR with CN=system:node:n1")


def token(pod: str = "mine", *, uid: str = "u", audiences: tuple[str, ...] = ("vault",)) -> Attributes:
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": uid}
    obj = {"metadata": {"name": "sa"}, "spec": {"audiences": list(audiences), "boundObjectRef": bound}}
    return write(CREATE, "serviceaccounts", obj, subresource="token")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (token(), ""),
        (token(audiences=("storage",)), ""),
        (token(audiences=("wild",)), ""),
        (token(audiences=("a", "b")), "node may only request 0 or 1 audiences"),
        (
            token(audiences=("other",)),
            'audience "other" not found in pod spec volume, '
            "system:node:n1 is not authorized to request tokens for this audience",
        ),
        (
            token("lost", uid="l", audiences=("wild",)),
            'error validating audience "wild": csidriver.storage.k8s.io "gone" not found',
        ),
        (token(""), "node requested token not bound to a pod"),
        (token(uid=""), "node requested token with a pod binding without a uid"),
        (token("alien", uid="a"), "node requested token bound to a pod scheduled on a different node"),
        (token("none"), 'pod "none" not found'),
        (
            token(uid="before"),
            "the UID in the bound object reference (before) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        ),
    ],
)
async def test_kubelets_get_tokens_of_their_pods_for_their_audiences(asked: Attributes, why: str) -> None:
    assert await refusal(asked) == why


async def test_nobody_else_is_restricted() -> None:
    for user in (User("system:node:n1"), User("jane", groups=("system:nodes",))):
        assert await refusal(write(CREATE, "nodes", node("n2"), user=user)) == ""
    nameless = User("system:node:", groups=("system:nodes",))
    assert await refusal(write(CREATE, "nodes", node(), user=nameless)) == (
        'could not determine node from user "system:node:"'
    )
