"""The Kubernetes version that wrote a data directory.

A newer version opens the directory. An older version opens it only if it can read every stored object; otherwise the
start is refused, and the message names the objects.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import orjson

from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.storage.interface import Entry, Store
from pilothouse.apiserver.storage.json_view import MAGIC, from_protobuf
from pilothouse.controlplane.errors import StartFailed
from pilothouse.machinery import release
from pilothouse.machinery.cbor.wellformed import SELF_DESCRIBED
from pilothouse.machinery.files import PRIVATE, write_atomically
from pilothouse.machinery.names import GroupVersion, GroupVersionKind
from pilothouse.machinery.objects import Json
from pilothouse.machinery.wire_facts import message_of

log = logging.getLogger(__name__)

FILE = "kubernetes-version"
"""File in the data directory; directories without it were written by 1.36."""
_WITHOUT_FILE = "1.36"
_PAGE = 500
_SHOWN = 10
_OWN_GROUPS = ".pilothouse.dev"
_DEFINITIONS = "/apiextensions.k8s.io/customresourcedefinitions/"


async def settle_version(data_dir: Path, store: Store, prefix: str) -> None:
    """Record the version of this process as the version of the directory.

    Raises StartFailed if a newer version wrote objects that this version cannot read.
    """
    own, file = release.current(), data_dir / FILE
    written = _recorded(file)
    if not written:
        written = _WITHOUT_FILE if await store.count(f"{prefix}/") else own.name
    if written == own.name:
        if not file.exists():
            write_atomically(file, f"{own.name}\n".encode(), mode=PRIVATE)
        return
    unreadable = [item async for item in _unreadable(store, prefix)]
    is_newer = written not in release.RELEASES or release.RELEASES[written].version > own.version
    if unreadable and is_newer:
        raise StartFailed(
            f"the data directory {data_dir} was written by Kubernetes {written}, and Kubernetes {own.name} cannot read"
            f" {_listed(unreadable)}; start the server with --kubernetes-version={written}, or delete these objects"
            " there first"
        )
    if unreadable:
        log.warning("Kubernetes %s cannot read %s, written by Kubernetes %s", own.name, _listed(unreadable), written)
    write_atomically(file, f"{own.name}\n".encode(), mode=PRIVATE)


def _recorded(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


async def _unreadable(store: Store, prefix: str) -> AsyncIterator[str]:
    """Yield `kind (apiVersion) namespace/name` of objects whose kind or API version this version does not have."""
    definitions = [_object(entry) async for entry in _entries(store, f"{prefix}{_DEFINITIONS}")]
    custom = {kind for definition in definitions for kind in _defined(definition)}
    async for entry in _entries(store, f"{prefix}/"):
        try:
            kind = _kind(obj := _object(entry))
        except Undecodable:
            yield entry.key
            continue
        if kind is None or kind.group.endswith(_OWN_GROUPS) or (kind.group, kind.kind) in custom:
            continue
        if message_of(kind) is None:
            names = (obj["metadata"].get(name) for name in ("namespace", "name"))
            yield f"{kind.kind} ({kind.api_version}) {'/'.join(filter(None, names))}"


async def _entries(store: Store, prefix: str) -> AsyncIterator[Entry]:
    after, more = "", True
    while more:
        page = await store.list(prefix, after=after, limit=_PAGE)
        for entry in page.entries:
            yield entry
            after = entry.key
        more = len(page.entries) == _PAGE


def _object(entry: Entry) -> Json:
    """Return the object of an entry; empty for encrypted values and other values without a kind. Raises Undecodable."""
    if entry.value.startswith(MAGIC):
        return from_protobuf(entry.key, entry.value)
    if entry.value.startswith(SELF_DESCRIBED):
        from pilothouse.machinery.cbor.decoding import decode

        obj = decode(entry.value)
    else:
        obj = orjson.loads(entry.value) if entry.value.startswith(b"{") else {}
    return obj if isinstance(obj, dict) else {}


def _kind(obj: Json) -> GroupVersionKind | None:
    if not isinstance(obj.get("metadata"), dict) or not obj.get("kind"):
        return None
    try:
        return GroupVersion.parse(obj["apiVersion"]).kind(obj["kind"])
    except (KeyError, ValueError):
        return None


def _defined(definition: Json) -> Iterator[tuple[str, str]]:
    """Yield (group, kind) of a stored CustomResourceDefinition."""
    spec = definition.get("spec") or {}
    if "names" in spec:
        yield spec.get("group", ""), spec["names"].get("kind", "")


def _listed(items: list[str]) -> str:
    shown = ", ".join(items[:_SHOWN])
    return f"{shown} and {len(items) - _SHOWN} more" if len(items) > _SHOWN else shown
