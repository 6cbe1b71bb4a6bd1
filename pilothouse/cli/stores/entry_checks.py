"""Checks of every entry of a store, and of references between entries.

Stored values are JSON, protobuf or CBOR, encrypted or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import orjson

from pilothouse.apiserver.storage.backup.model import SavedEntry
from pilothouse.apiserver.storage.encryption.configuration import Encryption
from pilothouse.apiserver.storage.encryption.transformer import Transformer
from pilothouse.apiserver.storage.errors import TransformFailed, Undecodable
from pilothouse.apiserver.storage.interface import Revision
from pilothouse.apiserver.storage.json_view import MAGIC, from_protobuf
from pilothouse.cli.diagnosis.findings import Finding, failed, note
from pilothouse.machinery.cbor.wellformed import SELF_DESCRIBED
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupResource, GroupVersion
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.wire_facts import message_of

_STATE_PREFIXES = ("/ranges/", "/masterleases/", "/peerserverleases/")
"""Prefixes of server state that is not an API object."""
_SEALED_PREFIX = "/pilothouse.dev/"
"""Prefix of values that only the servers can decrypt."""
_FROM_BACKUP = "restore a backup (`pilothouse restore` into an empty store), or delete the key"


class EntryChecks:
    """Checks of each entry, then of the relations between entries."""

    def __init__(self, reader: ValueReader, *, prefix: str, revision: Revision) -> None:
        self._reader = reader
        self._prefix, self._revision = prefix, revision
        self._keys: set[str] = set()
        self._uids: dict[str, str] = {}
        self._references = ReferenceChecks()
        self._encrypted: Counter[str] = Counter()
        self.places: dict[tuple[str, str], str] = {}
        """(group, kind) -> key prefix of its objects, without the root prefix."""

    @property
    def seen(self) -> int:
        """Number of keys."""
        return len(self._keys)

    async def take(self, entry: SavedEntry) -> list[Finding]:
        """Return the faults of the entry."""
        findings = list(self._revisions(entry))
        self._keys.add(entry.key)
        if entry.key.startswith(self._prefix + _SEALED_PREFIX):
            return findings
        try:
            obj = await self._reader.object(entry)
        except Encrypted:
            self._encrypted[entry.key.split("/")[2]] += 1
            return findings
        except TransformFailed as error:
            advice = "add the key that encrypted the value to --encryption-provider-config"
            return [*findings, failed("encryption", f"{entry.key}: cannot be decrypted: {error}", advice)]
        except Undecodable as error:
            return [*findings, failed("value", f"{entry.key}: cannot be decoded: {error}", _FROM_BACKUP)]
        if entry.key.startswith(tuple(self._prefix + prefix for prefix in _STATE_PREFIXES)):
            self._references.add_own_state(entry.key, obj)
            return findings
        return [*findings, *self._object(entry, obj)]

    def summary(self) -> Iterator[Finding]:
        """Yield the faults of references between entries, and the number of skipped values."""
        yield from self._references.findings()
        for resource, count in self._encrypted.items():
            text = f"{count} values of {resource} are encrypted and were skipped"
            yield note("encryption", text, "name the configuration with --encryption-provider-config")

    def _revisions(self, entry: SavedEntry) -> Iterator[Finding]:
        if not 0 < entry.created <= entry.modified <= self._revision:
            text = f"created at {entry.created}, modified at {entry.modified}, in a store at {self._revision}"
            advice = "back up the store and restore it: every key gets a new revision"
            yield failed("revision", f"{entry.key}: {text}", advice)
        if entry.key in self._keys:
            yield failed("key", f"{entry.key}: exists twice", _FROM_BACKUP)

    def _object(self, entry: SavedEntry, obj: Json) -> Iterator[Finding]:
        kind, api_version = obj.get("kind"), obj.get("apiVersion")
        if not isinstance(kind, str) or not isinstance(obj.get("metadata"), dict) or not _is_version(api_version):
            yield failed(
                "value", f"{entry.key}: the value is not an object with kind, apiVersion and metadata", _FROM_BACKUP
            )
            return
        version = GroupVersion.parse(obj["apiVersion"])
        self._references.add(entry.key, obj, built_in=message_of(version.kind(kind)) is not None)
        path = "/".join(filter(None, (namespace_of(obj), name_of(obj))))
        if entry.key.endswith(f"/{path}"):
            self.places[version.group, kind] = entry.key.removesuffix(path).removeprefix(self._prefix)
        else:
            yield failed("key", f"{entry.key}: holds the {kind} {path}, which belongs under another key", _FROM_BACKUP)
        uid = str(metadata(obj).get("uid") or "")
        if not uid:
            yield failed("uid", f"{entry.key}: has no uid", _FROM_BACKUP)
        elif (other := self._uids.setdefault(uid, entry.key)) != entry.key:
            yield failed(
                "uid", f"{entry.key}: has the uid of {other}", "delete one of the two objects and create it again"
            )


def _is_version(text: object) -> bool:
    try:
        return isinstance(text, str) and bool(GroupVersion.parse(text).version)
    except ValueError:
        return False


@dataclass(frozen=True, slots=True)
class _Definition:
    key: str
    versions: frozenset[str]
    stored: frozenset[str]


class ReferenceChecks:
    """Checks that references between objects resolve. Keeps only the referenced names, not the objects."""

    def __init__(self) -> None:
        self._definitions: dict[tuple[str, str], _Definition] = {}  # by group and kind
        self._custom: dict[tuple[str, str, str], str] = {}  # (group, version, kind) -> first key
        self._namespaces: set[str] = set()
        self._used: dict[str, str] = {}  # namespace -> first key in the namespace
        self._addresses: set[str] = set()
        self._cluster_ips: dict[str, str] = {}  # cluster IP -> key of its Service
        self._ports: dict[int, str] = {}  # node port -> key of its Service
        self._allocated_ports: frozenset[int] | None = None

    def add(self, key: str, obj: Json, *, built_in: bool) -> None:
        version, kind = GroupVersion.parse(obj["apiVersion"]), obj["kind"]
        if namespace := namespace_of(obj):
            self._used.setdefault(namespace, key)
        if not built_in:
            self._custom.setdefault((version.group, version.version, kind), key)
        elif kind == "Namespace":
            self._namespaces.add(name_of(obj))
        elif kind == "CustomResourceDefinition":
            spec = obj.get("spec") or {}
            names = {version_spec["name"] for version_spec in spec.get("versions") or ()} | {
                spec.get("version") or ""
            } - {""}
            stored = frozenset((obj.get("status") or {}).get("storedVersions") or ())
            self._definitions[spec["group"], spec["names"]["kind"]] = _Definition(key, frozenset(names), stored)
        elif kind == "IPAddress":
            self._addresses.add(name_of(obj))
        elif kind == "Service" and not version.group:
            self._add_service(key, obj.get("spec") or {})

    def add_own_state(self, key: str, obj: Json) -> None:
        """Add server state: node ports are allocated in one bitmap."""
        if key.endswith("/ranges/servicenodeports"):
            import orjson

            from pilothouse.kube.core.services.port_set import PortSet

            self._allocated_ports = frozenset(PortSet.decode(orjson.dumps(obj)))

    def findings(self) -> Iterator[Finding]:
        yield from self._versions()
        for namespace, key in sorted(self._used.items()):
            if namespace not in self._namespaces:
                advice = f"create the namespace {namespace} and delete it: the namespace controller deletes its objects"
                yield note("namespace", f"{key}: its namespace does not exist", advice)
        repaired = "a running server repairs it within minutes"
        for address, key in sorted(self._cluster_ips.items()):
            if address not in self._addresses:
                yield failed("address", f"{key}: the cluster IP {address} has no IPAddress object", repaired)
        for port, key in sorted(self._ports.items()):
            if self._allocated_ports is not None and port not in self._allocated_ports:
                yield failed("port", f"{key}: the node port {port} is not marked as allocated", repaired)

    def _versions(self) -> Iterator[Finding]:
        for (group, version, kind), key in sorted(self._custom.items()):
            definition = self._definitions.get((group, kind))
            if definition is None:
                advice = "install the definition again, or delete these objects"
                yield failed("version", f"{key}: no definition of {kind}.{group} exists", advice)
            elif version not in definition.versions:
                advice = f"add the version {version} to {definition.key} again, and migrate its objects"
                yield failed("version", f"{key}: stored version {version} is not in its definition", advice)
            elif version not in definition.stored:
                advice = f"add it to status.storedVersions of {definition.key}, or migrate its objects"
                yield failed("version", f"{key}: stored version {version} is not in storedVersions", advice)

    def _add_service(self, key: str, spec: Json) -> None:
        for address in spec.get("clusterIPs") or [spec.get("clusterIP")]:
            if address and address != "None":
                self._cluster_ips[address] = key
        self._ports.update({port["nodePort"]: key for port in spec.get("ports") or () if port.get("nodePort")})


ENCRYPTED: Final = b"k8s:enc:"
STORAGE_PATHS: Final = {
    "minions": "nodes",
    "services/specs": "services",
    "services/endpoints": "endpoints",
    "controllers": "replicationcontrollers",
    "ingress": "ingresses",
}
"""Key path -> resource, for resources with a historical path."""


class Encrypted(Exception):
    """The value is encrypted and no configuration is given."""


class ValueReader:
    """Decodes the values of entries. Encrypted values need a configuration."""

    def __init__(self, encryption: Encryption | None, prefix: str) -> None:
        self._encryption = encryption
        self._prefix = prefix

    async def object(self, entry: SavedEntry) -> Json:
        """Return the object of an entry. Raises Encrypted, TransformFailed, Undecodable."""
        value = entry.value
        if value.startswith(ENCRYPTED):
            value = await self._decrypted(entry)
        return decoded(entry.key, value)

    async def _decrypted(self, entry: SavedEntry) -> bytes:
        if self._encryption is None:
            raise Encrypted
        failure = TransformFailed("the configuration does not list this resource")
        for transformer in self._transformers(entry.key):
            try:
                return (await transformer.from_storage(entry.value, entry.key.encode())).value
            except TransformFailed as error:
                failure = error
        raise failure

    def _transformers(self, key: str) -> Iterator[Transformer]:
        """Yield the transformers that may have written the value. A key does not always name its API group."""
        assert self._encryption is not None
        plural = resource_in(key, self._prefix)
        for group in {"", *(transformer.group for transformer in self._encryption.transformers)} - {"*"}:
            if (transformer := self._encryption.of(GroupResource(group, plural))) is not None:
                yield transformer


def decoded(key: str, value: bytes) -> Json:
    """Decode an unencrypted value. Raises Undecodable."""
    if value.startswith(MAGIC):
        return from_protobuf(key, value)
    try:
        obj = _from_cbor(value) if value.startswith(SELF_DESCRIBED) else orjson.loads(value)
    except ValueError as error:
        raise Undecodable(str(error)) from error
    if not isinstance(obj, dict):
        raise Undecodable("the value is not an object")
    return obj


def resource_in(key: str, prefix: str) -> str:
    """Return the resource (plural) of a key."""
    words = key.removeprefix(prefix + "/").split("/")
    for path in ("/".join(words[:2]), words[0]):
        if path in STORAGE_PATHS:
            return STORAGE_PATHS[path]
    return words[1] if "." in words[0] and len(words) > 1 else words[0]


def _from_cbor(value: bytes) -> object:
    from pilothouse.machinery.cbor.decoding import decode

    return decode(value)
