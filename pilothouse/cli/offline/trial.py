"""Runs test cases: each sends one request to a server that has the policies and definitions of its file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import orjson

from pilothouse.cli.offline.cases import Case, CaseError, CaseFile, Expectation, matches, read_case_file
from pilothouse.cli.offline.documents import Checked, CheckReport, Document, Finding, Severity
from pilothouse.cli.offline.manifests import Manifest
from pilothouse.cli.offline.passes import STRICT
from pilothouse.cli.offline.server import CallAnswer, KindPath, OfflineServer, offline_server
from pilothouse.cli.offline.stage import POLICIES, Stage, unknown_kind
from pilothouse.machinery.objects import Json

_GROUP = "admissionregistration.k8s.io"
_NO_TOKEN = {"automountServiceAccountToken": False}
"""Keeps pods as written: a token volume gets a new name each time, which an update rejects."""


async def run_case_files(paths: Sequence[str], about: str) -> CheckReport:
    """Run the cases of all files. `about` is "policy" or "cel": the part that may reject a request.

    Raises NothingToRead.
    """
    checked: list[Checked] = []
    for path in paths:
        try:
            case_file = read_case_file(path)
        except CaseError as error:
            checked.append(Document.of(path).refusal(str(error), line=error.line))
            continue
        async with offline_server() as server:
            checked += await _Trial(server, case_file, about).run()
    return CheckReport(f"test {about}", tuple(checked))


class _Trial:
    def __init__(self, server: OfflineServer, case_file: CaseFile, about: str) -> None:
        self._server, self._file, self._about = server, case_file, about
        self._stage = Stage(server, "default", default_account=_NO_TOKEN)
        self._bindings = [manifest for manifest in case_file.stage if manifest.kind.endswith("AdmissionPolicyBinding")]
        self._bindings += list(_implied_bindings(case_file.stage, self._bindings))
        self._are_bound = False

    async def run(self) -> list[Checked]:
        """Return the problems of the stage if there are any, else the result of each case."""
        stage = [manifest for manifest in self._file.stage if manifest not in self._bindings]
        others = [
            manifest for case in self._file.cases for manifest in (case.object, case.old, *case.params) if manifest
        ]
        await self._stage.set_up(stage, named=others)
        staged = [
            Checked(manifest.file, manifest.line(), manifest.subject, tuple(findings))
            for manifest, findings in self._stage.problems.items()
        ]
        if not all(checked.passed for checked in staged):
            return [checked for checked in staged if not checked.passed]
        return [await self._try(case) for case in self._file.cases]

    async def _try(self, case: Case) -> Checked:
        before = [manifest for manifest in (case.old, *case.params) if manifest]
        try:
            versions = [await self._put(manifest, case) for manifest in before]
            await self._bind(True)
            answer = await self._ask(case, versions[0] if case.old else "")
            problems = list(differences(case.expect, answer, self._about))
        except CaseError as error:
            problems = [str(error)]
        for manifest in before:
            if (place := self._stage.locate(manifest, beside=case.subject.namespace)) is not None:
                await self._bind(False)
                path, namespace = place
                await self._server.admin("DELETE", path.item(namespace, manifest.name), "gracePeriodSeconds=0")
        severity = Severity.ERROR
        findings = tuple(Finding(severity, self._file.file, case.line, text, case.name) for text in problems)
        return Checked(self._file.file, case.line, case.name, findings)

    async def _ask(self, case: Case, version: str) -> CallAnswer:
        call = self._server.as_privileged_user(case.user)
        path, namespace = self._place(case.subject)
        below = f"/{case.subresource}" if case.subresource else ""
        if case.operation == "CREATE" and not below:
            return await call(
                "POST", path.collection(namespace), f"{STRICT}&dryRun=All", orjson.dumps(case.subject.obj)
            )
        item = path.item(namespace, case.subject.name) + below
        if case.operation == "DELETE":
            return await call("DELETE", item, "dryRun=All")
        method = "POST" if case.operation == "CREATE" else "PUT"
        return await call(method, item, f"{STRICT}&dryRun=All", orjson.dumps(_at_version(case.subject.obj, version)))

    async def _put(self, manifest: Manifest, case: Case) -> str:
        """Create the object while no policy is bound. Return its resource version. Raises CaseError."""
        await self._bind(False)
        path, namespace = self._place(manifest, beside=case.subject.namespace)
        answer = await self._stage.create(manifest.obj, path, namespace)
        if not answer.ok:
            raise CaseError(manifest.line(), f"{manifest.subject} cannot be created: {answer.body.get('message')}")
        if "status" in manifest.obj:
            item = f"{path.item(namespace, manifest.name)}/status"
            written = await self._server.admin(
                "PUT", item, "", orjson.dumps(_at_version(manifest.obj, _version(answer)))
            )
            answer = written if written.ok else answer
        return _version(answer)

    def _place(self, manifest: Manifest, *, beside: str = "") -> tuple[KindPath, str]:
        """Return the path and namespace of the manifest. Raises CaseError."""
        place = self._stage.locate(manifest, beside=beside)
        if place is None:
            raise CaseError(manifest.line(), unknown_kind(manifest, self._stage.paths).message)
        return place

    async def _bind(self, wanted: bool) -> None:
        """Create or delete the bindings of the policies."""
        if wanted is self._are_bound:
            return
        for binding in self._bindings:
            path, _ = self._place(binding)
            if not wanted:
                await self._server.admin("DELETE", path.item("", binding.name))
            elif not (answer := await self._stage.create(binding.obj, path, "")).ok:
                raise CaseError(binding.line(), f"{binding.subject}: {answer.body.get('message')}")
        await self._stage.settle(POLICIES)
        self._are_bound = wanted


def _implied_bindings(stage: Sequence[Manifest], bindings: Sequence[Manifest]) -> Iterator[Manifest]:
    """Yield a binding with the action Deny and all parameters for each unbound policy."""
    bound = {binding.obj.get("spec", {}).get("policyName") for binding in bindings}
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


_BY_POLICY = ("ValidatingAdmissionPolicy '", "MutatingAdmissionPolicy '", "policy '")


def differences(expect: Expectation, answer: CallAnswer, about: str) -> Iterator[str]:
    """Yield a text for each difference from the expectation. `about`: see `refused_by_other`."""
    allowed = answer.ok or answer.already_exists
    message = "" if allowed else str(answer.body.get("message", ""))
    if allowed is not expect.allowed or (expect.message and not matches(expect.message, message)):
        yield _diff(_verdict(expect.allowed, expect.message), _verdict(allowed, message))
    elif not allowed and not expect.message and refused_by_other(answer, about):
        yield _diff(f"denied by {_AUTHORS[about]}", f"denied for another reason: {message}")
    for warning in expect.warnings:
        if not any(matches(warning, text) for text in answer.warnings):
            yield _diff(f"warning: {warning}", f"warnings: {'; '.join(answer.warnings) or 'none'}")
    if expect.object is not None and answer.ok:
        yield from _value_differences(expect.object, answer.body, "object")


_AUTHORS = {"policy": "a policy", "cel": "the rules of its definition"}


def refused_by_other(answer: CallAnswer, about: str) -> bool:
    """Whether something other than a policy ("policy") or a schema ("cel") rejected the request."""
    message = str(answer.body.get("message", ""))
    by_policy = any(words in message for words in _BY_POLICY)
    return not by_policy if about == "policy" else by_policy or answer.status != 422


def _verdict(allowed: bool, message: str) -> str:
    verdict = "allowed" if allowed else "denied"
    return f"{verdict}: {message}" if message else verdict


def _diff(expected: str, got: str, where: str = "") -> str:
    head = f"{where} is not as expected" if where else "the answer is not as expected"
    return f"{head}\n- {expected}\n+ {got}"


def _value_differences(expected: Any, got: Any, where: str) -> Iterator[str]:
    """Yield the differences of the expected fields. Fields that are not expected may have any value."""
    if isinstance(expected, dict) and isinstance(got, dict):
        for key, value in expected.items():
            yield from _value_differences(value, got.get(key), f"{where}.{key}")
    elif isinstance(expected, list) and isinstance(got, list) and len(expected) == len(got):
        for at, (value, other) in enumerate(zip(expected, got, strict=True)):
            yield from _value_differences(value, other, f"{where}[{at}]")
    elif expected != got:
        yield _diff(_to_json(expected), _to_json(got), where)


def _to_json(value: Any) -> str:
    return orjson.dumps(value).decode()
