"""A cluster's objects as a folder of YAML, for people and for version control.

DIR/core/Namespace/team.yaml                     GROUP/KIND/NAME.yaml
DIR/apps/Deployment/team/web.yaml                GROUP/KIND/NAMESPACE/NAME.yaml
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pilothouse.cli.cluster_objects.order import is_made_by_the_cluster
from pilothouse.machinery.codec.yaml import parse_yaml, split_documents
from pilothouse.machinery.codec.yaml_emit import emit_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of

_SUFFIXES = (".yaml", ".yml", ".json")
_OF_THE_SERVER = ("creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid")


class UnreadableManifest(Exception):
    """The message names the file and says what is wrong with it."""


def write_folder(folder: Path, objects: Sequence[Json], *, plain: bool) -> int:
    """Write one file for each; where it is to be `plain` in its `plain_form`, and none for what the cluster or a
    controller makes by itself. Return how many there are. Raises OSError."""
    written = [obj for obj in objects if not (plain and _is_made_by_itself(obj))]
    for obj in written:
        group = obj["apiVersion"].rpartition("/")[0] or "core"
        file = folder / Path(group, obj["kind"], namespace_of(obj), f"{name_of(obj)}.yaml")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_bytes(emit_yaml(plain_form(obj) if plain else obj))
    return len(written)


def read_folder(path: Path) -> list[Json]:
    """The objects of all files below, or of the one file. Raises OSError, UnreadableManifest."""
    files = sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES) if path.is_dir() else [path]
    return [obj for file in files for obj in _objects(file)]


def plain_form(obj: Json) -> Json:
    """Return what somebody would have written: nothing that the server or a controller fills in."""
    own = {name: value for name, value in metadata(obj).items() if name not in _OF_THE_SERVER}
    return {**{name: value for name, value in obj.items() if name != "status"}, "metadata": own}


def _is_made_by_itself(obj: Json) -> bool:
    owners = metadata(obj).get("ownerReferences") or ()
    return is_made_by_the_cluster(obj) or any(owner.get("controller") for owner in owners)


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
