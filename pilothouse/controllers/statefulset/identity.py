"""Identity of a StatefulSet's pod, derived from its ordinal: name, hostname and claims.

web-3  →  ordinal 3 of the StatefulSet "web", hostname web-3 in the domain of its service
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


def claim_name(stateful_set: Json, template: Json, ordinal: int) -> str:
    return f"{name_of(template)}-{name_of(stateful_set)}-{ordinal}"


def claim_templates(stateful_set: Json) -> list[Json]:
    return stateful_set["spec"].get("volumeClaimTemplates") or []


def claims_for(stateful_set: Json, pod: Json) -> dict[str, Json]:
    """Return the pod's claims by template name, which is also the volume name."""
    return {
        name_of(template): _claim(stateful_set, template, ordinal_of(pod)) for template in claim_templates(stateful_set)
    }


def _claim(stateful_set: Json, template: Json, ordinal: int) -> Json:
    selector = stateful_set["spec"].get("selector") or {}
    meta = {
        **template["metadata"],
        "name": claim_name(stateful_set, template, ordinal),
        "namespace": namespace_of(stateful_set),
        "labels": {**labels_of(template), **(selector.get("matchLabels") or {})},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": template.get("spec") or {}}


def storage_matches(stateful_set: Json, pod: Json) -> bool:
    """Return whether the pod has a volume for each claim template."""
    templates, ordinal = claim_templates(stateful_set), ordinal_of(pod)
    if not templates or ordinal < 0:
        return ordinal >= 0
    volumes = {volume.get("name"): volume for volume in pod["spec"].get("volumes") or ()}
    for template in templates:
        source = (volumes.get(name_of(template)) or {}).get("persistentVolumeClaim") or {}
        if source.get("claimName") != claim_name(stateful_set, template, ordinal):
            return False
    return True


def volumes_with_claims(stateful_set: Json, pod: Json) -> list[Json]:
    """Return the pod's volumes plus claim volumes; claim volumes replace volumes of the same name."""
    ordinal = ordinal_of(pod)
    claimed = [
        {
            "name": name_of(template),
            "persistentVolumeClaim": {"claimName": claim_name(stateful_set, template, ordinal)},
        }
        for template in claim_templates(stateful_set)
    ]
    taken = {volume["name"] for volume in claimed}
    return claimed + [volume for volume in pod["spec"].get("volumes") or () if volume.get("name") not in taken]
