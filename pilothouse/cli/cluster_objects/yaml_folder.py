"""A cluster's objects as a folder of YAML, for people and for version control, and their creation order.

DIR/core/Namespace/team.yaml                     GROUP/KIND/NAME.yaml
DIR/apps/Deployment/team/web.yaml                GROUP/KIND/NAMESPACE/NAME.yaml
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from pilothouse.machinery.codec.yaml import parse_yaml, split_documents
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.objects import Json, annotations_of, labels_of, metadata, name_of, namespace_of

_SUFFIXES = (".yaml", ".yml", ".json")
_SERVER_FIELDS = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


class UnreadableManifest(Exception):
    """A file is not a manifest. The message names the file and the problem."""


def write_folder(folder: Path, objects: Sequence[Json], *, plain: bool) -> int:
    """Write one file per object and return the number of files. Raises OSError.

    With `plain`, objects are written in `plain_form`, and objects that the cluster or a controller creates are left
    out.
    """
    written = [obj for obj in objects if not (plain and _is_generated(obj))]
    for obj in written:
        group = obj["apiVersion"].rpartition("/")[0] or "core"
        file = folder / Path(group, obj["kind"], namespace_of(obj), f"{name_of(obj)}.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_bytes(emit_yaml(plain_form(obj) if plain else obj))
    return len(written)


def read_folder(path: Path) -> list[Json]:
    """Return the objects of a file, or of all files in a folder. Raises OSError, UnreadableManifest."""
    files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]
    return [obj for file in files for obj in _objects(file)]


def plain_form(obj: Json) -> Json:
    """Return the object without status and server-set metadata."""
    fields = {name: value for name, value in metadata(obj).items() if name not in _SERVER_FIELDS}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": fields}


def _is_generated(obj: Json) -> bool:
    owners = metadata(obj).get("ownerReferences") or ()
    return is_cluster_managed(obj) or any(owner.get("controller") for owner in owners)


def _objects(file: Path) -> Iterator[Json]:
    for _, document in split_documents(file.read_bytes()):
        try:
            value = parse_yaml(document).value
        except YamlError as error:
            raise UnreadableManifest(f"{file}: {error}") from None
        if value is None:
            continue
        if not isinstance(value, dict) or not {"apiVersion", "kind"} <= set(value):
            raise UnreadableManifest(f"{file}: not a Kubernetes object: apiVersion and kind must be set")
        yield from value["items"] if value["kind"] == "List" else [value]


_FIRST: Final = (
    "Namespace",
    "CustomResourceDefinition",
    "PriorityClass",
    "RuntimeClass",
    "StorageClass",
    "ServiceAccount",
    "ClusterRole",
    "Role",
    "ClusterRoleBinding",
    "RoleBinding",
    "LimitRange",
    "Secret",
    "ConfigMap",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Node",
    "Service",
)
_LAST: Final = (
    "APIService",
    "ResourceQuota",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
)
"""Kinds that can reject other objects."""
_EPHEMERAL: Final = ("Event", "Lease")
"""Kinds of short-lived objects."""
_SERVER_KINDS: Final = ("Service", "Endpoints", "EndpointSlice", "ServiceCIDR")
"""Kinds with an object that every server maintains for itself."""


def creation_order(objects: Sequence[Json]) -> list[Json]:
    """Sort objects: dependencies first, owners before dependents, admission objects last."""
    by_uid = {uid: obj for obj in objects if (uid := metadata(obj).get("uid"))}
    return sorted(objects, key=lambda obj: (_rank(obj), _depth(obj, by_uid, frozenset())))


def is_cluster_managed(obj: Json) -> bool:
    """Whether every cluster creates its own copy of the object."""
    if obj["kind"] in _EPHEMERAL or labels_of(obj).get("kube-aggregator.kubernetes.io/automanaged"):
        return True
    if annotations_of(obj).get("apf.kubernetes.io/autoupdate-spec") == "true":
        return True
    if obj["kind"] == "IPAddress" or name_of(obj) == "kube-root-ca.crt":
        return True
    return obj["kind"] in _SERVER_KINDS and name_of(obj) == "kubernetes" and namespace_of(obj) in ("", "default")


def _rank(obj: Json) -> int:
    if obj["kind"] in _FIRST:
        return _FIRST.index(obj["kind"])
    if obj["kind"] in _LAST:
        return len(_FIRST) + 1 + _LAST.index(obj["kind"])
    return len(_FIRST)


def _depth(obj: Json, by_uid: Mapping[str, Json], above: frozenset[str]) -> int:
    """Return the length of the longest owner chain above the object. Cycles are cut."""
    owners = {owner["uid"] for owner in metadata(obj).get("ownerReferences") or ()} & by_uid.keys() - above
    return max((1 + _depth(by_uid[uid], by_uid, above | owners) for uid in owners), default=0)
