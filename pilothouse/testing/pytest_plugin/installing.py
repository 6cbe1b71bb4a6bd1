"""What a template is made of: definitions first, each until it is served, then everything else in its order."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

from pilothouse.client.blocking import BlockingClient
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.objects import Json
from pilothouse.machinery.status_error import PilothouseError
from pilothouse.testing.pytest_plugin.manifests import BadManifest, Manifest

DEFINITION = "CustomResourceDefinition"
_FIELD_MANAGER = "pilothouse-pytest"
_FIRST = (DEFINITION, "Namespace")
_PATIENCE, _PAUSE = 10.0, 0.01


def install(client: BlockingClient, manifests: Iterable[Manifest]) -> None:
    """Apply all of them. Raises BadManifest, which names the object that the server does not take, and why."""
    ordered = sorted(manifests, key=lambda each: _rank(each.obj["kind"]))
    definitions = [each for each in ordered if each.obj["kind"] == DEFINITION]
    for manifest in definitions:
        _apply(client, manifest)
    for manifest in definitions:
        _await_served(client, manifest)
    for manifest in ordered[len(definitions) :]:
        _apply(client, manifest)


def remove(client: BlockingClient, manifests: Iterable[Manifest]) -> None:
    """Delete those that are there, the last first."""
    for manifest in sorted(manifests, key=lambda each: _rank(each.obj["kind"]), reverse=True):
        with suppress(PilothouseError):
            client.for_object(manifest.obj).delete(manifest.obj["metadata"]["name"])


def _rank(kind: str) -> int:
    return _FIRST.index(kind) if kind in _FIRST else len(_FIRST)


def _apply(client: BlockingClient, manifest: Manifest) -> None:
    try:
        client.for_object(manifest.obj).apply(manifest.obj, field_manager=_FIELD_MANAGER, force=True)
    except PilothouseError as error:
        raise BadManifest(f"{manifest.name} was not installed: {error}") from error


def _await_served(client: BlockingClient, manifest: Manifest) -> None:
    definitions = client.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    deadline, found = time.monotonic() + _PATIENCE, manifest.obj
    while time.monotonic() < deadline:
        found = definitions.get(manifest.obj["metadata"]["name"])
        if _condition(found, "Established").get("status") == "True" and _is_served(client, found):
            return
        if _condition(found, "NamesAccepted").get("status") == "False":
            break
        time.sleep(_PAUSE)
    raise BadManifest(f"{manifest.name} did not get Established: {_reasons(found)}")


def _condition(definition: Json, kind: str) -> Json:
    conditions = definition.get("status", {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), {})


def _is_served(client: BlockingClient, definition: Json) -> bool:
    spec = definition["spec"]
    versions = [version["name"] for version in spec["versions"] if version["served"]]
    with suppress(NotFound):
        for version in versions:
            client.get_json(f"/apis/{spec['group']}/{version}/{spec['names']['plural']}?limit=1")
        return True
    return False


def _reasons(definition: Json) -> str:
    conditions = definition.get("status", {}).get("conditions") or ()
    unmet = [f"{each['type']}: {each.get('message') or each.get('reason')}" for each in conditions]
    return "; ".join(unmet) or f"the server said nothing about it for {_PATIENCE:g} s"
