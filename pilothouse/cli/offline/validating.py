"""Validation of manifests by a dry run on the server, in creation order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

import orjson

from pilothouse.apiserver.authn.user import User
from pilothouse.cli.offline.documents import Checked, CheckReport, Finding, NothingToRead, Severity
from pilothouse.cli.offline.manifests import Manifest, as_new, read_manifests
from pilothouse.cli.offline.passes import try_object
from pilothouse.cli.offline.server import CallAnswer, OfflineServer, offline_server
from pilothouse.cli.offline.stage import Stage, unknown_kind
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_ADMISSION_REGISTRATION = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """Manifests to validate. Objects of `given` are created first; only their errors are reported."""

    paths: Sequence[str]
    given: Sequence[str] = ()
    user: User | None = None
    """User who creates the objects; None: an administrator."""
    namespace: str = "default"


async def validate(request: ValidationRequest) -> CheckReport:
    """Validate the manifests as a server would. Raises NothingToRead."""
    read = list(read_manifests(request.paths))
    if not read:
        raise NothingToRead(f"{', '.join(request.paths)}: no manifests")
    given = [
        as_new(manifest) if isinstance(manifest, Manifest) else manifest for manifest in read_manifests(request.given)
    ]
    async with offline_server() as server:
        checks = _Validation(server, request)
        return CheckReport("validate", tuple(await checks.run(given, read)))


class _Validation:
    def __init__(self, server: OfflineServer, request: ValidationRequest) -> None:
        self._admin = server.admin
        self._user = server.as_user(request.user) if request.user else server.admin
        self._has_user = request.user is not None
        self._stage = Stage(server, request.namespace)
        self._has_policies = False
        self._seen: dict[tuple[tuple[str, str], str, str], Manifest] = {}
        self._known: dict[str, bool] = {}

    async def run(self, given: Sequence[Manifest | Checked], read: Sequence[Manifest | Checked]) -> list[Checked]:
        taken, manifests = _objects(given), _objects(read)
        await self._stage.set_up(taken, manifests)
        self._has_policies = any(manifest.group_kind[0] == _ADMISSION_REGISTRATION for manifest in (*taken, *manifests))
        checked = [await self._check(manifest) if isinstance(manifest, Manifest) else manifest for manifest in read]
        return [*(manifest for manifest in self._of_given(given) if manifest.findings), *checked]

    def _of_given(self, given: Iterable[Manifest | Checked]) -> Iterable[Checked]:
        for item in given:
            if isinstance(item, Manifest):
                yield Checked(item.file, item.line(), item.subject, tuple(self._stage.problems.get(item, ())))
            else:
                yield item

    async def _check(self, manifest: Manifest) -> Checked:
        findings = [*self._duplicates(manifest), *self._stage.problems.get(manifest, ())]
        known = {finding.message for finding in findings}
        findings += [finding for finding in await self._try(manifest) if finding.message not in known]
        line = manifest.line() if manifest.prefix else manifest.document.first_line
        return Checked(manifest.file, line, manifest.subject, tuple(sorted(findings, key=attrgetter("line"))))

    def _duplicates(self, manifest: Manifest) -> Iterable[Finding]:
        """Yield duplicate keys, and objects that another document has as well."""
        for line, message in manifest.duplicates:
            yield Finding(Severity.ERROR, manifest.file, line, message, manifest.subject)
        if manifest.metadata.get("name"):
            place = self._stage.locate(manifest)
            key = (manifest.group_kind, place[1] if place else "", manifest.name)
            if (other := self._seen.setdefault(key, manifest)) is not manifest:
                message = f"{manifest.subject} is also in {other.file}:{other.line()}"
                yield manifest.finding(Severity.WARNING, message, path="metadata.name")

    async def _try(self, manifest: Manifest) -> list[Finding]:
        place = self._stage.locate(manifest)
        if place is None:
            return [unknown_kind(manifest, self._stage.paths)]
        path, namespace = place
        if message := self._stage.refused_namespaces.get(namespace):
            return [manifest.finding(Severity.ERROR, message, path="metadata.namespace")]
        if manifest in self._stage.problems and not (self._has_policies or self._has_user):
            return []
        dry = "" if (namespace in self._stage.with_quota and manifest not in self._stage.problems) else "&dryRun=All"

        async def create(obj: Json, query: str) -> CallAnswer:
            return await self._user("POST", path.collection(namespace), query + dry, orjson.dumps(obj))

        tried = await try_object(manifest, create)
        missing = []
        for reference in needed_by(manifest, namespace):
            if reference.path not in self._known:
                self._known[reference.path] = (await self._admin("GET", reference.path)).ok
            if not self._known[reference.path]:
                missing.append(reference.missing(manifest))
        return [*tried.findings, *missing]


def _objects(read: Iterable[Manifest | Checked]) -> list[Manifest]:
    return [item for item in read if isinstance(item, Manifest)]


@dataclass(frozen=True, slots=True)
class Reference:
    field: str
    kind: str
    path: str
    """Path of the referenced collection; `{namespace}` is the namespace of the referring object."""


_SERVICE_ACCOUNT = Reference("serviceAccountName", "ServiceAccount", "/api/v1/namespaces/{namespace}/serviceaccounts")
_IN_POD_SPECS = (
    _SERVICE_ACCOUNT,
    Reference("priorityClassName", "PriorityClass", "/apis/scheduling.k8s.io/v1/priorityclasses"),
    Reference("runtimeClassName", "RuntimeClass", "/apis/node.k8s.io/v1/runtimeclasses"),
)
_STORAGE_CLASS = Reference("storageClassName", "StorageClass", "/apis/storage.k8s.io/v1/storageclasses")
_INGRESS_CLASS = Reference("ingressClassName", "IngressClass", "/apis/networking.k8s.io/v1/ingressclasses")
_TEMPLATE = ("spec", "template", "spec")
_PLACES: dict[tuple[str, str], tuple[tuple[str, ...], tuple[Reference, ...]]] = {
    **{("apps", kind): (_TEMPLATE, _IN_POD_SPECS) for kind in ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet")},
    ("batch", "Job"): (_TEMPLATE, _IN_POD_SPECS),
    ("batch", "CronJob"): (("spec", "jobTemplate", "spec", "template", "spec"), _IN_POD_SPECS),
    ("", "ReplicationController"): (_TEMPLATE, _IN_POD_SPECS),
    ("", "PersistentVolumeClaim"): (("spec",), (_STORAGE_CLASS,)),
    ("networking.k8s.io", "Ingress"): (("spec",), (_INGRESS_CLASS,)),
}


@dataclass(frozen=True, slots=True)
class Needed:
    """A referenced object: its path, and the field that refers to it."""

    kind: str
    name: str
    path: str
    field: str

    def missing(self, manifest: Manifest) -> Finding:
        hint = "add it to the manifests, or name a file that has it with --given"
        return manifest.finding(Severity.WARNING, f"there is no {self.kind} {self.name}", path=self.field, hint=hint)


def needed_by(manifest: Manifest, namespace: str) -> Iterator[Needed]:
    """Yield references that the server does not check, but that the object needs to work."""
    place, references = _PLACES.get(manifest.group_kind, ((), ()))
    spec = _at(manifest.obj, place)
    for reference in references if isinstance(spec, dict) else ():
        name = spec.get(reference.field)
        if isinstance(name, str) and name:
            path = f"{reference.path.format(namespace=namespace)}/{name}"
            yield Needed(reference.kind, name, path, ".".join((*place, reference.field)))


def _at(value: Any, place: tuple[str, ...]) -> Any:
    """Return the value at the path; None if the manifest has another structure."""
    for name in place:
        value = value.get(name) if isinstance(value, dict) else None
    return value
