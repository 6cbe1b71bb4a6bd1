"""The template of a server: manifests and definitions to install, the objects after installation, and the reset to
them."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pilothouse.machinery.status_error import StatusError

if TYPE_CHECKING:
    from pilothouse.apiserver.storage.snapshots import StoredSnapshot
    from pilothouse.testing.api import BlockingAPI
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pilothouse.client.blocking import BlockingClient
from pilothouse.machinery.codec.yaml import parse_yaml, split_documents
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.testing.pytest_plugin.settings import Source

_POLL_INTERVAL, _TIMEOUT = 0.01, 10.0
_FIRST_WORK = "/api/v1/namespaces/default/serviceaccounts/default"
"""Object that the first running controller creates."""
_BENCH = "/apis/testing.pilothouse.dev/v1alpha1"
_CLOCK = f"{_BENCH}/clocks/server"

DEFINITION = "CustomResourceDefinition"
_FIELD_MANAGER = "pilothouse-pytest"
_FIRST = (DEFINITION, "Namespace")
_INSTALL_TIMEOUT, _INSTALL_POLL_INTERVAL = 10.0, 0.01
_SUFFIXES = (".yaml", ".yml", ".json")


def take_template(api: BlockingAPI, controllers: Iterable[str]) -> StoredSnapshot:
    """Return a snapshot of the quiescent server. After a timeout, the snapshot is taken anyway."""
    end = time.monotonic() + _TIMEOUT
    while "*" in controllers and api.request("GET", _FIRST_WORK).status != 200 and time.monotonic() < end:
        time.sleep(_POLL_INTERVAL)
    with suppress(TimeoutError, StatusError):
        api.settle(_TIMEOUT)
    return api.snapshot()


def reset(api: BlockingAPI, template: StoredSnapshot) -> None:
    """Reset the server: remove faults, reset the clock, and restore the objects of the template."""
    end_faults(api)
    clock = api.request("GET", _CLOCK)
    if clock.status == 200 and (clock.json.get("spec") or clock.json["status"]["ahead"] != "0s"):
        machines = {"spec": {"stopped": None, "speed": None, "time": datetime.now(UTC).isoformat()}}
        api.request("PATCH", _CLOCK, machines, media="application/merge-patch+json")
    api.restore(template)


def end_faults(api: BlockingAPI) -> None:
    """Delete all faults."""
    faults = api.request("GET", f"{_BENCH}/faults")
    if faults.status == 200 and faults.json["items"]:
        api.request("DELETE", f"{_BENCH}/faults")


def install(client: BlockingClient, manifests: Iterable[Manifest]) -> None:
    """Apply all manifests. Raises BadManifest with the rejected object and the reason."""
    ordered = sorted(manifests, key=lambda manifest: install_rank(manifest.obj["kind"]))
    definitions = [manifest for manifest in ordered if manifest.obj["kind"] == DEFINITION]
    for manifest in definitions:
        _apply(client, manifest)
    for manifest in definitions:
        _await_served(client, manifest)
    for manifest in ordered[len(definitions) :]:
        _apply(client, manifest)


def remove(client: BlockingClient, manifests: Iterable[Manifest]) -> None:
    """Delete existing objects in reverse order."""
    for manifest in sorted(manifests, key=lambda manifest: install_rank(manifest.obj["kind"]), reverse=True):
        with suppress(PilothouseError):
            client.for_object(manifest.obj).delete(manifest.obj["metadata"]["name"])


def install_rank(kind: str) -> int:
    """Return the place of a kind in the order of installation: definitions, namespaces, everything else."""
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


def _apply(client: BlockingClient, manifest: Manifest) -> None:
    try:
        client.for_object(manifest.obj).apply(manifest.obj, field_manager=_FIELD_MANAGER, force=True)
    except PilothouseError as error:
        raise BadManifest(f"{manifest.name} was not installed: {error}") from error


def _await_served(client: BlockingClient, manifest: Manifest) -> None:
    definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    deadline, definition = time.monotonic() + _INSTALL_TIMEOUT, manifest.obj
    while time.monotonic() < deadline:
        definition = definitions.get(manifest.obj["metadata"]["name"])
        if _condition(definition, "Established").get("status") == "True" and _is_served(client, definition):
            return
        if _condition(definition, "NamesAccepted").get("status") == "False":
            break
        time.sleep(_INSTALL_POLL_INTERVAL)
    conditions = definition.get("status", {}).get("conditions") or ()
    unmet = [f"{condition['type']}: {condition.get('message') or condition.get('reason')}" for condition in conditions]
    reasons = "; ".join(unmet) or f"no condition within {_INSTALL_TIMEOUT:g} s"
    raise BadManifest(f"{manifest.name} did not get Established: {reasons}")


def _condition(definition: Json, kind: str) -> Json:
    conditions = definition.get("status", {}).get("conditions") or ()
    return next((condition for condition in conditions if condition["type"] == kind), {})


def _is_served(client: BlockingClient, definition: Json) -> bool:
    spec = definition["spec"]
    versions = [version["name"] for version in spec["versions"] if version["served"]]
    with suppress(NotFound):
        for version in versions:
            client.get_json(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1")
        return True
    return False


class BadManifest(ValueError):
    """A manifest is not an object, or the server rejects it. The message names the manifest and the reason."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """An object and its source."""

    obj: Json
    origin: str

    @property
    def name(self) -> str:
        return f"{self.obj['kind']} {self.obj['metadata'].get('name', '')!r} (from {self.origin})"


def read_manifests(sources: Iterable[Source]) -> Iterator[Manifest]:
    """Yield every object: the documents of files, the files of folders by name, the items of Lists.

    Raises BadManifest, OSError.
    """
    for source in sources:
        if not isinstance(source, Path):
            yield from _objects(dict(source), "the test")
            continue
        files = [file for file in sorted(source.iterdir()) if file.suffix in _SUFFIXES] if source.is_dir() else [source]
        if not files:
            raise BadManifest(f"{source} has no {', '.join(_SUFFIXES)} file")
        for file in files:
            for document in _documents(file):
                yield from _objects(document, str(file))


def _documents(file: Path) -> Iterator[Any]:
    try:
        for _, document in split_documents(file.read_bytes()):
            if (value := parse_yaml(document).value) is not None:
                yield value
    except YamlError as error:
        raise BadManifest(f"{file} is not valid YAML: {error}") from None


def _objects(document: Any, origin: str) -> Iterator[Manifest]:
    if not isinstance(document, dict) or not document.get("kind") or not document.get("apiVersion"):
        raise BadManifest(f"{origin} has a document that is not an object: apiVersion and kind are required")
    if document["kind"] == "List":
        for item in document.get("items") or ():
            yield from _objects(item, origin)
    else:
        yield Manifest({"metadata": {}, **document}, origin)
