"""What objects say of each other: definitions of the versions that are stored, namespaces of what is in them, services
of the addresses and ports that they were given."""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.cli.diagnosis.findings import Finding, failed, note
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of, namespace_of


@dataclass(frozen=True, slots=True)
class _Definition:
    key: str
    versions: frozenset[str]
    stored: frozenset[str]


class Agreement:
    """Notes what it needs of each object, and no object itself."""

    def __init__(self) -> None:
        self._definitions: dict[tuple[str, str], _Definition] = {}  # by group and kind
        self._custom: dict[tuple[str, str, str], str] = {}  # group, version and kind, and the first key with it
        self._namespaces: set[str] = set()
        self._used: dict[str, str] = {}  # namespaces that objects are in, and the first key in each
        self._addresses: set[str] = set()
        self._given: dict[str, str] = {}  # addresses of services, and the keys of these
        self._ports: dict[int, str] = {}  # node ports of services, and the keys of these
        self._taken: frozenset[int] | None = None

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
            names = {each["name"] for each in spec.get("versions") or ()} | {spec.get("version") or ""} - {""}
            stored = frozenset((obj.get("status") or {}).get("storedVersions") or ())
            self._definitions[spec["group"], spec["names"]["kind"]] = _Definition(key, frozenset(names), stored)
        elif kind == "IPAddress":
            self._addresses.add(name_of(obj))
        elif kind == "Service" and not version.group:
            self._add_service(key, obj.get("spec") or {})

    def add_own_state(self, key: str, obj: Json) -> None:
        """The ports that servers have given out are kept as one bitmap."""
        if key.endswith("/ranges/servicenodeports"):
            import orjson

            from pilothouse.kube.core.services.portallocator.port_set import PortSet

            self._taken = frozenset(PortSet.decode(orjson.dumps(obj)))

    def findings(self) -> Iterator[Finding]:
        yield from self._versions()
        for namespace, key in sorted(self._used.items()):
            if namespace not in self._namespaces:
                advice = f"create the namespace {namespace} and delete it: the namespace controller deletes its objects"
                yield note("namespace", f"{key}: its namespace does not exist", advice)
        repaired = "a running server repairs it within minutes"
        for address, key in sorted(self._given.items()):
            if address not in self._addresses:
                yield failed("address", f"{key}: the cluster IP {address} has no IPAddress object", repaired)
        for port, key in sorted(self._ports.items()):
            if self._taken is not None and port not in self._taken:
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
                self._given[address] = key
        self._ports.update({port["nodePort"]: key for port in spec.get("ports") or () if port.get("nodePort")})
