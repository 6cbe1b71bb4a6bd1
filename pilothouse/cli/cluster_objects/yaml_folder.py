"""A cluster's objects as a folder of YAML, for people and for version control.

DIR/core/Namespace/team.yaml                     GROUP/KIND/NAME.yaml
DIR/apps/Deployment/team/web.yaml                GROUP/KIND/NAMESPACE/NAME.yaml
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pilothouse.cli.cluster_objects.order import is_cluster_managed
from pilothouse.machinery.codec.yaml import parse_yaml, split_documents
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of

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
