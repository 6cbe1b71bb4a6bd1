"""PersistentVolumeClaims from a StatefulSet's claim templates, and the pod volumes that use them."""

from __future__ import annotations

from pilothouse.controllers.statefulset.identity import ordinal_of
from pilothouse.machinery.objects import Json, labels_of, name_of, namespace_of


def claim_name(stateful_set: Json, template: Json, ordinal: int) -> str:
    return f"{name_of(template)}-{name_of(stateful_set)}-{ordinal}"


def claim_templates(stateful_set: Json) -> list[Json]:
    return stateful_set["spec"].get("volumeClaimTemplates") or []


def claims_for(stateful_set: Json, pod: Json) -> dict[str, Json]:
    """Return the pod's claims by template name, which is also the volume name."""
    return {name_of(each): _claim(stateful_set, each, ordinal_of(pod)) for each in claim_templates(stateful_set)}


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
    return claimed + [each for each in pod["spec"].get("volumes") or () if each.get("name") not in taken]
