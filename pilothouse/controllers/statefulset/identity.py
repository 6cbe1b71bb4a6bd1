"""Who a pod of a StatefulSet is: its ordinal, and all that follows from it.

web-3   → ordinal 3 of the set "web", the host web-3 in the domain of its service
"""

from __future__ import annotations

import re

from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_POD_NAME = re.compile(r"(.*)-([0-9]+)", re.ASCII | re.DOTALL)
_MAX_ORDINAL = 2**31 - 1


def parent_and_ordinal(pod: Json) -> tuple[str, int]:
    """Return the name of the set that the pod's name speaks of, and its ordinal; "" and -1 if it speaks of none."""
    match = _POD_NAME.fullmatch(name_of(pod))
    if match is None:
        return "", -1
    ordinal = int(match[2]) if len(match[2].lstrip("0")) <= 10 else _MAX_ORDINAL + 1
    return match[1], ordinal if ordinal <= _MAX_ORDINAL else -1


def ordinal_of(pod: Json) -> int:
    return parent_and_ordinal(pod)[1]


def is_member(stateful_set: Json, pod: Json) -> bool:
    """Whether the pod's name is that of a member of the set."""
    return parent_and_ordinal(pod)[0] == name_of(stateful_set)


def replicas_of(stateful_set: Json) -> int:
    replicas = stateful_set["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def ordinals(stateful_set: Json) -> range:
    """Return the ordinals that the set's pods shall have."""
    start = int((stateful_set["spec"].get("ordinals") or {}).get("start") or 0)
    return range(start, start + replicas_of(stateful_set))


def pod_name(stateful_set: Json, ordinal: int) -> str:
    return f"{name_of(stateful_set)}-{ordinal}"


def identity_matches(stateful_set: Json, pod: Json) -> bool:
    """Whether the pod has the name, namespace and label of a member of the set."""
    parent, ordinal = parent_and_ordinal(pod)
    return (
        ordinal >= 0
        and parent == name_of(stateful_set)
        and name_of(pod) == pod_name(stateful_set, ordinal)
        and namespace_of(pod) == namespace_of(stateful_set)
        and labels_of(pod).get(POD_NAME_LABEL) == name_of(pod)
    )


def set_identity(stateful_set: Json, pod: Json, ordinal: int) -> None:
    """Give the pod the name, namespace and labels of that member; its metadata is changed."""
    meta, name = metadata(pod), pod_name(stateful_set, ordinal)
    meta |= {"name": name, "namespace": namespace_of(stateful_set)}
    meta["labels"] = {**labels_of(pod), POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def network_identity(stateful_set: Json, ordinal: int) -> Json:
    """Return the fields of a new pod's spec that give it its place in the domain of the set's service."""
    place = {"hostname": pod_name(stateful_set, ordinal)}
    if service := stateful_set["spec"].get("serviceName"):
        place["subdomain"] = service
    return place
