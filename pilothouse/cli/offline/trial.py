"""Runs cases: each is one request, tried on a server that has the policies and definitions of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pilothouse.cli.offline.case_files import read_case_file
from pilothouse.cli.offline.cases import Case, CaseError, CaseFile
from pilothouse.cli.offline.comparison import differences
from pilothouse.cli.offline.documents import Document
from pilothouse.cli.offline.findings import Checked, CheckReport, Finding, Severity
from pilothouse.cli.offline.manifests import Manifest, as_json
from pilothouse.cli.offline.passes import STRICT
from pilothouse.cli.offline.resources import KindPath
from pilothouse.cli.offline.server import CallAnswer, OfflineServer, offline_server
from pilothouse.cli.offline.stage import POLICIES, Stage, unknown_kind
from pilothouse.machinery.objects import Json

_GROUP = "admissionregistration.k8s.io"
_NO_TOKEN = {"automountServiceAccountToken": False}
"""So that pods stay as they are written: a volume with a new name each time could not be updated."""


async def run_case_files(paths: Sequence[str], about: str) -> CheckReport:
    """Return how the cases of all files went. `about` is what may refuse a request: "policy" or "cel".

    Raises NothingToRead.
    """
    checked: list[Checked] = []
    for path in paths:
        try:
            read = read_case_file(path)
        except CaseError as error:
            checked.append(Document.of(path).refusal(str(error), line=error.line))
            continue
        async with offline_server() as server:
            checked += await _Trial(server, read, about).run()
    return CheckReport(f"test {about}", tuple(checked))


class _Trial:
    def __init__(self, server: OfflineServer, read: CaseFile, about: str) -> None:
        self._server, self._file, self._about = server, read, about
        self._stage = Stage(server, "default", default_account=_NO_TOKEN)
        self._bindings = [one for one in read.stage if one.kind.endswith("AdmissionPolicyBinding")]
        self._bindings += list(_implied_bindings(read.stage, self._bindings))
        self._are_bound = False

    async def run(self) -> list[Checked]:
        """Return what is wrong with the stage, if anything is; else how each case went."""
        stage = [one for one in self._file.stage if one not in self._bindings]
        others = [one for case in self._file.cases for one in (case.object, case.old, *case.params) if one]
        await self._stage.set_up(stage, named=others)
        wrong = [
            Checked(one.file, one.line(), one.subject, tuple(found)) for one, found in self._stage.problems.items()
        ]
        if not all(checked.is_well for checked in wrong):
            return [checked for checked in wrong if not checked.is_well]
        return [await self._try(case) for case in self._file.cases]

    async def _try(self, case: Case) -> Checked:
        before = [one for one in (case.old, *case.params) if one]
        try:
            versions = [await self._put(one, case) for one in before]
            await self._bind(True)
            answer = await self._ask(case, versions[0] if case.old else "")
            wrong = list(differences(case.expect, answer, self._about))
        except CaseError as error:
            wrong = [str(error)]
        for one in before:
            if (place := self._stage.place_of(one, beside=case.subject.namespace)) is not None:
                await self._bind(False)
                path, namespace = place
                await self._server.admin("DELETE", path.item(namespace, one.name), "gracePeriodSeconds=0")
        severity = Severity.ERROR
        found = tuple(Finding(severity, self._file.file, case.line, text, case.name) for text in wrong)
        return Checked(self._file.file, case.line, case.name, found)

    async def _ask(self, case: Case, version: str) -> CallAnswer:
        call = self._server.called(case.user)
        path, namespace = self._place(case.subject)
        below = f"/{case.subresource}" if case.subresource else ""
        if case.operation == "CREATE" and not below:
            return await call("POST", path.collection(namespace), f"{STRICT}&dryRun=All", as_json(case.subject.obj))
        item = path.item(namespace, case.subject.name) + below
        if case.operation == "DELETE":
            return await call("DELETE", item, "dryRun=All")
        method = "POST" if case.operation == "CREATE" else "PUT"
        return await call(method, item, f"{STRICT}&dryRun=All", as_json(_at_version(case.subject.obj, version)))

    async def _put(self, manifest: Manifest, case: Case) -> str:
        """Write the object while no policy has a say; return its resource version. Raises CaseError."""
        await self._bind(False)
        path, namespace = self._place(manifest, beside=case.subject.namespace)
        answer = await self._stage.create(manifest.obj, path, namespace)
        if not answer.is_well:
            raise CaseError(manifest.line(), f"{manifest.subject} cannot be there: {answer.body.get('message')}")
        if "status" in manifest.obj:
            item = f"{path.item(namespace, manifest.name)}/status"
            written = await self._server.admin("PUT", item, "", as_json(_at_version(manifest.obj, _version(answer))))
            answer = written if written.is_well else answer
        return _version(answer)

    def _place(self, manifest: Manifest, *, beside: str = "") -> tuple[KindPath, str]:
        """Raises CaseError."""
        place = self._stage.place_of(manifest, beside=beside)
        if place is None:
            raise CaseError(manifest.line(), unknown_kind(manifest, self._stage.paths).message)
        return place

    async def _bind(self, wanted: bool) -> None:
        """Put the policies into force, or out of it."""
        if wanted is self._are_bound:
            return
        for binding in self._bindings:
            path, _ = self._place(binding)
            if not wanted:
                await self._server.admin("DELETE", path.item("", binding.name))
            elif not (answer := await self._stage.create(binding.obj, path, "")).is_well:
                raise CaseError(binding.line(), f"{binding.subject}: {answer.body.get('message')}")
        await self._stage.settle(POLICIES)
        self._are_bound = wanted


def _implied_bindings(stage: Sequence[Manifest], bindings: Sequence[Manifest]) -> Iterator[Manifest]:
    """Yield, for each policy that nobody binds, a binding that denies, with every parameter there is."""
    bound = {one.obj.get("spec", {}).get("policyName") for one in bindings}
    for policy in stage:
        if policy.group_kind[0] == _GROUP and policy.kind.endswith("AdmissionPolicy") and policy.name not in bound:
            spec: Json = {"policyName": policy.name}
            if policy.kind.startswith("Validating"):
                spec["validationActions"] = ["Deny"]
            if policy.obj.get("spec", {}).get("paramKind"):
                spec["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Deny"}
            head = {"apiVersion": policy.obj["apiVersion"], "kind": f"{policy.kind}Binding"}
            yield Manifest(policy.document, {**head, "metadata": {"name": policy.name}, "spec": spec}, policy.prefix)


def _version(answer: CallAnswer) -> str:
    return str(answer.body["metadata"]["resourceVersion"])


def _at_version(obj: Json, version: str) -> Json:
    return {**obj, "metadata": {**obj.get("metadata", {}), "resourceVersion": version}}
