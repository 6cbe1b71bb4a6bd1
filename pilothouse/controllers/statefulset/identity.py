"""Identity of a StatefulSet's pod, derived from its ordinal.

web-3 → ordinal 3 of the StatefulSet "web", hostname web-3 in the domain of its service
"""

from __future__ import annotations

from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of, number

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_MAX_ORDINAL = 2**31 - 1
_MAX_DIGITS = 253
"""Maximum length of a name, and safely below Python's limit for int conversion."""


def parent_and_ordinal(pod: Json) -> tuple[str, int]:
    """Return (StatefulSet name, ordinal) parsed from the pod's name; ("", -1) if it does not match."""
    parent, dash, digits = name_of(pod).rpartition("-")
    if not dash or not digits.isascii() or not digits.isdecimal():
        return "", -1
    ordinal = int(digits) if len(digits) <= _MAX_DIGITS else _MAX_ORDINAL + 1
    return parent, ordinal if ordinal <= _MAX_ORDINAL else -1


def ordinal_of(pod: Json) -> int:
    return parent_and_ordinal(pod)[1]


def is_member(stateful_set: Json, pod: Json) -> bool:
    """Return whether the pod's name belongs to the StatefulSet."""
    return parent_and_ordinal(pod)[0] == name_of(stateful_set)


def replicas_of(stateful_set: Json) -> int:
    replicas = stateful_set["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def ordinals(stateful_set: Json) -> range:
    """Return the desired ordinals."""
    start = int(number(stateful_set["spec"], "ordinals", "start"))
    return range(start, start + replicas_of(stateful_set))


def pod_name(stateful_set: Json, ordinal: int) -> str:
    return f"{name_of(stateful_set)}-{ordinal}"


def identity_matches(stateful_set: Json, pod: Json) -> bool:
    """Return whether the pod has the name, namespace and label of a member."""
    parent, ordinal = parent_and_ordinal(pod)
    if ordinal < 0 or parent != name_of(stateful_set) or namespace_of(pod) != namespace_of(stateful_set):
        return False
    name = name_of(pod)
    return labels_of(pod).get(POD_NAME_LABEL) == name and name == f"{parent}-{ordinal}"


def set_identity(stateful_set: Json, pod: Json, ordinal: int) -> None:
    """Set name, namespace and labels of the member; modifies the pod's metadata."""
    meta, name = metadata(pod), pod_name(stateful_set, ordinal)
    meta |= {"name": name, "namespace": namespace_of(stateful_set)}
    meta["labels"] = {**labels_of(pod), POD_NAME_LABEL: name, POD_INDEX_LABEL: str(ordinal)}


def network_identity(stateful_set: Json, ordinal: int) -> Json:
    """Return hostname and subdomain of a new pod."""
    place = {"hostname": pod_name(stateful_set, ordinal)}
    if service := stateful_set["spec"].get("serviceName"):
        place["subdomain"] = service
    return place
