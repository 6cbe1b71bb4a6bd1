"""Manifests through a dry run of the real server, in the order in which a cluster would need them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from pilothouse.apiserver.authn.user import User
from pilothouse.cli.offline.documents import NothingToRead
from pilothouse.cli.offline.findings import Checked, CheckReport, Finding, Severity
from pilothouse.cli.offline.manifests import Manifest, as_json, as_new, read_manifests
from pilothouse.cli.offline.passes import try_object
from pilothouse.cli.offline.references import needed_by
from pilothouse.cli.offline.server import CallAnswer, OfflineServer, offline_server
from pilothouse.cli.offline.stage import Stage, unknown_kind
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_ADMISSION_REGISTRATION = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class WhatToValidate:
    """`given` is read and set up first, and only what is wrong with it is reported."""

    paths: Sequence[str]
    given: Sequence[str] = ()
    user: User | None = None
    """Who creates the objects; somebody who may do everything, if None."""
    namespace: str = "default"


async def validate(asked: WhatToValidate) -> CheckReport:
    """Return what a server would say. Raises NothingToRead."""
    read = list(read_manifests(asked.paths))
    if not read:
        raise NothingToRead(f"{', '.join(asked.paths)}: no manifests")
    given = [as_new(one) if isinstance(one, Manifest) else one for one in read_manifests(asked.given)]
    async with offline_server() as server:
        checks = _Validation(server, asked)
        return CheckReport("validate", tuple(await checks.run(given, read)))


class _Validation:
    def __init__(self, server: OfflineServer, asked: WhatToValidate) -> None:
        self._admin = server.admin
        self._user = server.as_user(asked.user) if asked.user else server.admin
        self._has_user = asked.user is not None
        self._stage = Stage(server, asked.namespace)
        self._has_policies = False
        self._seen: dict[tuple[tuple[str, str], str, str], Manifest] = {}
        self._known: dict[str, bool] = {}

    async def run(self, given: Sequence[Manifest | Checked], read: Sequence[Manifest | Checked]) -> list[Checked]:
        taken, manifests = _objects(given), _objects(read)
        await self._stage.set_up(taken, manifests)
        self._has_policies = any(one.group_kind[0] == _ADMISSION_REGISTRATION for one in (*taken, *manifests))
        checked = [await self._check(one) if isinstance(one, Manifest) else one for one in read]
        return [*(one for one in self._of_given(given) if one.findings), *checked]

    def _of_given(self, given: Iterable[Manifest | Checked]) -> Iterable[Checked]:
        for one in given:
            if isinstance(one, Manifest):
                yield Checked(one.file, one.line(), one.subject, tuple(self._stage.problems.get(one, ())))
            else:
                yield one

    async def _check(self, manifest: Manifest) -> Checked:
        found = [*self._of_its_own(manifest), *self._stage.problems.get(manifest, ())]
        known = {finding.message for finding in found}
        found += [finding for finding in await self._try(manifest) if finding.message not in known]
        line = manifest.line() if manifest.prefix else manifest.document.first_line
        return Checked(manifest.file, line, manifest.subject, tuple(sorted(found, key=attrgetter("line"))))

    def _of_its_own(self, manifest: Manifest) -> Iterable[Finding]:
        """Yield what the text says twice: a key, or an object that another text has, too."""
        for line, message in manifest.duplicates:
            yield Finding(Severity.ERROR, manifest.file, line, message, manifest.subject)
        if manifest.metadata.get("name"):
            place = self._stage.place_of(manifest)
            key = (manifest.group_kind, place[1] if place else "", manifest.name)
            if (other := self._seen.setdefault(key, manifest)) is not manifest:
                message = f"{manifest.subject} is also in {other.file}:{other.line()}"
                yield manifest.finding(Severity.WARNING, message, path="metadata.name")

    async def _try(self, manifest: Manifest) -> list[Finding]:
        place = self._stage.place_of(manifest)
        if place is None:
            return [unknown_kind(manifest, self._stage.paths)]
        path, namespace = place
        if message := self._stage.refused_namespaces.get(namespace):
            return [manifest.finding(Severity.ERROR, message, path="metadata.namespace")]
        if manifest in self._stage.problems and not (self._has_policies or self._has_user):
            return []
        dry = "" if self._adds_up(manifest, namespace) else "&dryRun=All"

        async def create(obj: Json, query: str) -> CallAnswer:
            return await self._user("POST", path.collection(namespace), query + dry, as_json(obj))

        tried = await try_object(manifest, create)
        found = []
        for needed in needed_by(manifest, namespace):
            if needed.path not in self._known:
                self._known[needed.path] = (await self._admin("GET", needed.path)).is_well
            if not self._known[needed.path]:
                found.append(needed.missing(manifest))
        return [*tried.findings, *found]

    def _adds_up(self, manifest: Manifest, namespace: str) -> bool:
        """Whether it must be written for real, so that a quota counts it."""
        return namespace in self._stage.with_quota and manifest not in self._stage.problems


def _objects(read: Iterable[Manifest | Checked]) -> list[Manifest]:
    return [one for one in read if isinstance(one, Manifest)]
