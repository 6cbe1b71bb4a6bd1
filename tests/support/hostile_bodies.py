"""Bodies that cost much to read, to check or to answer: each is what a client may send in one request.

    BODIES["duplicate keys"].text        the bytes, about 3 MB, or as many as can be stored
    BODIES["duplicate keys"].resource    where to send them
    BODIES["duplicate keys"].media_type  and as what

Those to reviews need no rights at all, because everybody may ask what they themselves may do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import orjson

JSON, YAML, APPLY = "application/json", "application/yaml", "application/apply-patch+yaml"

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
PODS = "/api/v1/namespaces/default/pods"
NETWORK_POLICIES = "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies"
CLUSTER_ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"

_REVIEW = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
_MEGABYTE = 1_000_000


@dataclass(frozen=True)
class HostileBody:
    """`make` builds the bytes; `resource` is the collection that they are posted to or applied in."""

    make: Callable[[], bytes]
    resource: str
    media_type: str = JSON

    @cached_property
    def text(self) -> bytes:
        return self.make()


def nested_duplicate_keys(size: int = 3 * _MEGABYTE) -> bytes:
    """Objects in objects, 200 levels deep, each with a key that it has twice."""
    nest = b"".join(b'{"a":1,"a":' for _ in range(200)) + b"1" + b"}" * 200
    return _review(b'"x":[' + b",".join([nest] * (size // len(nest))) + b"]")


def flat_duplicate_keys(size: int = 3 * _MEGABYTE) -> bytes:
    """One object that has every key twice."""
    count = size // 26
    return _review(b'"x":{' + b",".join(b'"k%07d":1,"k%07d":2' % (at, at) for at in range(count)) + b"}")


def unknown_field_with_a_long_list(size: int = 3 * _MEGABYTE) -> bytes:
    return _review(b'"x":[' + b",".join([b"1"] * (size // 2)) + b"]")


def unknown_fields(size: int = 3 * _MEGABYTE) -> bytes:
    """Many of them, of which each has a name of its own."""
    return _review(b",".join(b'"k%07d":1' % at for at in range(size // 13)))


def yaml_block_list(size: int = 3 * _MEGABYTE) -> bytes:
    return _yaml_review() + b"x:\n" + b"- a\n" * (size // 4)


def yaml_flow_list(size: int = 3 * _MEGABYTE) -> bytes:
    return _yaml_review() + b"x: [" + b"a, " * (size // 3) + b"a]\n"


def yaml_nested_lists(size: int = 3 * _MEGABYTE) -> bytes:
    nest = b"[" * 100 + b"]" * 100
    return _yaml_review() + b"x: [" + b",".join([nest] * (size // 201)) + b"]\n"


def yaml_keys(size: int = 3 * _MEGABYTE) -> bytes:
    return _yaml_review() + b"x:\n" + b"".join(b"  k%07d: v\n" % at for at in range(size // 14))


def raw_selector(size: int = 3 * _MEGABYTE) -> bytes:
    """A label selector of many requirements."""
    return _with_selector(",".join(["a in (b)"] * (size // 9)))


def raw_selector_of_values(size: int = 3 * _MEGABYTE) -> bytes:
    """A label selector of one requirement with many values."""
    return _with_selector("a in (" + ",".join(f"v{at:06}" for at in range(size // 8)) + ")")


def broken_json_at_the_end(size: int = 3 * _MEGABYTE) -> bytes:
    return _review(b'"spec":{"x":[' + b",".join([b'{"a":1}'] * (size // 8)) + b"]}")[:-1] + b"!"


def broken_numbers_at_the_end(size: int = 3 * _MEGABYTE) -> bytes:
    return _review(b'"x":[' + b",".join([b"1"] * (size // 2)) + b"]")[:-1] + b"!"


def network_policy(rules: int = 21_000) -> bytes:
    """Each rule lets in one port from one block of addresses."""
    ingress = [
        {"ports": [{"port": 80}], "from": [{"ipBlock": {"cidr": f"10.{at >> 8 & 255}.{at & 255}.0/24"}}]}
        for at in range(rules)
    ]
    spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": ingress}
    return _dump("networking.k8s.io/v1", "NetworkPolicy", {"name": "hostile"}, spec=spec)


def apply_of_many_keys(keys: int = 120_000) -> bytes:
    """To be applied as the ConfigMap `hostile`."""
    return config_map(keys)


def config_map(keys: int = 90_000) -> bytes:
    return _dump("v1", "ConfigMap", {"name": "hostile"}, data={f"k{at}": "" for at in range(keys)})


def finalizers(count: int = 110_000) -> bytes:
    metadata = {"name": "hostile", "finalizers": [f"a.b/c{at}" for at in range(count)]}
    return _dump("v1", "ConfigMap", metadata)


def owner_references(count: int = 24_000) -> bytes:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": f"p{at}", "uid": f"u{at}"} for at in range(count)]
    return _dump("v1", "ConfigMap", {"name": "hostile", "ownerReferences": owners})


def volumes(count: int = 36_000) -> bytes:
    spec = {
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": f"v{at}", "emptyDir": {}} for at in range(count)],
    }
    return _dump("v1", "Pod", {"name": "hostile"}, spec=spec)


def host_ports(containers: int = 9_000) -> bytes:
    """One container port on many host ports."""
    named = [
        {"name": f"c{at}", "image": "i", "ports": [{"containerPort": 80, "hostPort": at + 1}]}
        for at in range(containers)
    ]
    return _dump("v1", "Pod", {"name": "hostile"}, spec={"containers": named})


def resource_claims(count: int = 12_000) -> bytes:
    container = {"name": "c", "image": "i", "resources": {"claims": [{"name": f"r{at}"} for at in range(count)]}}
    claims = [{"name": f"r{at}", "resourceClaimName": "x"} for at in range(count)]
    return _dump("v1", "Pod", {"name": "hostile"}, spec={"containers": [container], "resourceClaims": claims})


def tolerations(count: int = 8_000, resources: int = 2_000) -> bytes:
    """Some of them for the taints of extended resources."""
    asked = {f"example.com/r{at}": "1" for at in range(resources)}
    container = {"name": "c", "image": "i", "resources": {"requests": asked, "limits": asked}}
    tolerated = [{"key": f"example.com/r{at}", "operator": "Exists", "effect": "NoSchedule"} for at in range(count)]
    return _dump("v1", "Pod", {"name": "hostile"}, spec={"containers": [container], "tolerations": tolerated})


def invalid_finalizers(count: int = 150_000) -> bytes:
    """Each one is an error of its own in the answer."""
    return _dump("v1", "ConfigMap", {"name": "hostile", "finalizers": [f"Not/valid/{at}" for at in range(count)]})


def cubic_role(side: int = 80) -> bytes:
    """One small rule that stands for side × side × side rights."""
    rule = {
        "verbs": [f"v{at}" for at in range(side)],
        "apiGroups": [f"g{at}" for at in range(side)],
        "resources": [f"r{at}" for at in range(side)],
    }
    return _dump("rbac.authorization.k8s.io/v1", "ClusterRole", {"name": "hostile"}, rules=[rule])


def _review(members: bytes) -> bytes:
    """The review's own fields first, then these members."""
    return orjson.dumps(_REVIEW)[:-1] + b"," + members + b"}"


def _yaml_review() -> bytes:
    return b"apiVersion: authorization.k8s.io/v1\nkind: SelfSubjectAccessReview\n"


def _with_selector(text: str) -> bytes:
    attributes = {"verb": "list", "resource": "pods", "labelSelector": {"rawSelector": text}}
    return orjson.dumps(_REVIEW | {"spec": {"resourceAttributes": attributes}})


def _dump(api_version: str, kind: str, metadata: dict[str, Any], **rest: Any) -> bytes:
    return orjson.dumps({"apiVersion": api_version, "kind": kind, "metadata": metadata} | rest)


BODIES = {
    "nested duplicate keys": HostileBody(nested_duplicate_keys, REVIEWS),
    "flat duplicate keys": HostileBody(flat_duplicate_keys, REVIEWS),
    "unknown field with a long list": HostileBody(unknown_field_with_a_long_list, REVIEWS),
    "unknown fields": HostileBody(unknown_fields, REVIEWS),
    "YAML block list": HostileBody(yaml_block_list, REVIEWS, YAML),
    "YAML flow list": HostileBody(yaml_flow_list, REVIEWS, YAML),
    "YAML nested lists": HostileBody(yaml_nested_lists, REVIEWS, YAML),
    "YAML keys": HostileBody(yaml_keys, REVIEWS, YAML),
    "raw selector": HostileBody(raw_selector, REVIEWS),
    "raw selector of values": HostileBody(raw_selector_of_values, REVIEWS),
    "broken JSON at the end": HostileBody(broken_json_at_the_end, REVIEWS),
    "broken numbers at the end": HostileBody(broken_numbers_at_the_end, REVIEWS),
    "NetworkPolicy": HostileBody(network_policy, NETWORK_POLICIES),
    "apply of many keys": HostileBody(apply_of_many_keys, CONFIG_MAPS, APPLY),
    "ConfigMap": HostileBody(config_map, CONFIG_MAPS),
    "finalizers": HostileBody(finalizers, CONFIG_MAPS),
    "owner references": HostileBody(owner_references, CONFIG_MAPS),
    "volumes": HostileBody(volumes, PODS),
    "host ports": HostileBody(host_ports, PODS),
    "resource claims": HostileBody(resource_claims, PODS),
    "tolerations": HostileBody(tolerations, PODS),
    "invalid finalizers": HostileBody(invalid_finalizers, CONFIG_MAPS),
    "cubic role": HostileBody(cubic_role, CLUSTER_ROLES),
}
