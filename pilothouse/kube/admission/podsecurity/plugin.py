"""PodSecurity: enforces the level in the namespace's labels on pods.

Workloads are never rejected: violations of their pod templates are warnings. Evaluations and exemptions are counted
under upstream's names.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation
from pilothouse.apiserver.tallies import REGISTRY, CounterTally
from pilothouse.kube.admission.podsecurity import evaluator
from pilothouse.kube.admission.podsecurity.checks import CheckedPod, Violation
from pilothouse.kube.admission.podsecurity.policy import (
    Configuration,
    LabelledPolicy,
    Level,
    LevelVersion,
    exempt_namespace_warning,
    label_of,
    policy_of,
)
from pilothouse.machinery import release
from pilothouse.machinery.errors import Forbidden, Invalid
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, metadata
from pilothouse.machinery.server_errors import InternalError
from pilothouse.machinery.status_error import aggregate

NamespaceLabels: TypeAlias = Callable[[str], Awaitable[Mapping[str, str] | None]]
"""Returns the labels of a namespace, or None if the namespace does not exist."""
ListPods: TypeAlias = Callable[[str], Awaitable[list[Json]]]
_NAMESPACES, _PODS = GroupResource("", "namespaces"), GroupResource("", "pods")
_TEMPLATES: dict[GroupResource, tuple[str, ...]] = {
    GroupResource("", "podtemplates"): ("template",),
    GroupResource("", "replicationcontrollers"): ("spec", "template"),
    GroupResource("apps", "replicasets"): ("spec", "template"),
    GroupResource("apps", "deployments"): ("spec", "template"),
    GroupResource("apps", "statefulsets"): ("spec", "template"),
    GroupResource("apps", "daemonsets"): ("spec", "template"),
    GroupResource("batch", "jobs"): ("spec", "template"),
    GroupResource("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
"""Paths of pod templates, by resource."""
_HARMLESS = frozenset(["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"])
"""Subresources of pods without changes to the spec."""

_OF_REQUEST = ("request_operation", "resource", "subresource")
_OPERATIONS = ("create", "update")
"""Common label sets are created in advance, with the value 0."""
_RESOURCES = {"pods": "pod", "namespaces": "namespace"}


class PodSecurity(Handler):
    name = "PodSecurity"
    resources = frozenset((_NAMESPACES, _PODS, *_TEMPLATES))
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, labels_of: NamespaceLabels, pods: ListPods, configuration: Configuration | None = None) -> None:
        self._labels_of = labels_of
        self._pods = pods
        self._configuration = configuration or Configuration()

    async def validate(self, attributes: Attributes) -> None:
        resource = attributes.resource.group_resource
        if resource == _PODS:
            if attributes.subresource not in _HARMLESS:
                await self._validate_pod(attributes)
        elif attributes.subresource or attributes.obj is None:
            return
        elif resource == _NAMESPACES:
            namespace = attributes.obj
            new = self._policy_of(namespace)
            old = self._policy_of(attributes.old) if attributes.old is not None else None
            if new.errors and (old is None or new.errors != old.errors):
                raise Invalid.of(attributes.kind.group_kind, attributes.name, new.errors)
            if old is None or _is_stricter(new.policy.enforce, old.policy.enforce):
                if attributes.name in self._configuration.exempt_namespaces:
                    if warning := exempt_namespace_warning(namespace, new.policy, self._configuration.defaults):
                        attributes.warn(warning)
                elif old is not None:
                    exempt = self._configuration.exempt_runtime_classes
                    pods = [
                        p for p in await self._pods(attributes.name) if p["spec"].get("runtimeClassName") not in exempt
                    ]
                    for warning in evaluator.warnings_about(
                        evaluator.one_of_each_controller_first(pods), attributes.name, new.policy.enforce
                    ):
                        attributes.warn(warning)
        elif (template_path := _TEMPLATES.get(resource)) is not None:
            await self._validate_template(attributes, _at(attributes.obj, template_path))

    async def _validate_pod(self, attributes: Attributes) -> None:
        if self._is_exempt(attributes):
            return
        labels = await self._labels_of(attributes.namespace)
        if labels is None:
            raise InternalError.of(f"failed to lookup namespace {quote(attributes.namespace)}")
        labelled = policy_of(labels, self._configuration.defaults)
        if labelled.policy.is_privileged and not labelled.errors:
            EVALUATIONS.record("allow", labelled.policy.enforce, "enforce", attributes)
            attributes.annotate(label_of("enforce-policy"), str(LevelVersion()))
            return
        pod = attributes.obj or {}
        if attributes.old is None or _is_significant(pod, attributes.old):
            self._evaluate(attributes, labelled, CheckedPod(metadata(pod), pod.get("spec") or {}), enforce=True)

    async def _validate_template(self, attributes: Attributes, template: Json | None) -> None:
        if template is None or self._is_exempt(attributes):
            return
        labels = await self._labels_of(attributes.namespace)
        if labels is None:
            return
        labelled = policy_of(labels, self._configuration.defaults)
        policy = labelled.policy
        if policy.warn.level is policy.audit.level is Level.privileged and not labelled.errors:
            return
        pod = CheckedPod(template.get("metadata") or {}, template.get("spec") or {})
        self._evaluate(attributes, labelled, pod, enforce=False)

    def _evaluate(self, attributes: Attributes, labelled: LabelledPolicy, pod: CheckedPod, *, enforce: bool) -> None:
        if pod.spec.get("runtimeClassName") in self._configuration.exempt_runtime_classes:
            self._exempt(attributes, "runtimeClass")
            return
        policy = labelled.policy
        if labelled.errors:
            wrong = aggregate(map(str, labelled.errors))
            attributes.annotate(label_of("error"), f"Failed to parse policy: {wrong}")
        refused = evaluator.evaluate(policy.enforce, pod) if enforce else []
        if enforce:
            EVALUATIONS.record("deny" if refused else "allow", policy.enforce, "enforce", attributes)
            attributes.annotate(label_of("enforce-policy"), str(policy.enforce))
        if audited := evaluator.evaluate(policy.audit, pod):
            EVALUATIONS.record("deny", policy.audit, "audit", attributes)
            attributes.annotate(label_of("audit-violations"), _would_violate(policy.audit, audited))
        if refused:
            reason = f"violates PodSecurity {quote(str(policy.enforce))}: {evaluator.in_detail(refused)}"
            raise Forbidden.of(attributes.resource.group_resource, attributes.name, reason)
        if violations := evaluator.evaluate(policy.warn, pod):
            EVALUATIONS.record("deny", policy.warn, "warn", attributes)
            attributes.warn(_would_violate(policy.warn, violations))

    def _is_exempt(self, attributes: Attributes) -> bool:
        if attributes.namespace in self._configuration.exempt_namespaces:
            self._exempt(attributes, "namespace")
        elif attributes.user.name in self._configuration.exempt_users:
            self._exempt(attributes, "user")
        else:
            return False
        return True

    def _exempt(self, attributes: Attributes, because_of: str) -> None:
        EXEMPTIONS.record(attributes)
        attributes.annotate(label_of("exempt"), because_of)

    def _policy_of(self, namespace: Json) -> LabelledPolicy:
        return policy_of(metadata(namespace).get("labels") or {}, self._configuration.defaults)


def _would_violate(wanted: LevelVersion, violations: list[Violation]) -> str:
    return f"would violate PodSecurity {quote(str(wanted))}: {evaluator.in_detail(violations)}"


def _is_stricter(new: LevelVersion, old: LevelVersion) -> bool:
    """Report whether the new policy may forbid pods that the old policy allowed."""
    if new == old or new.level is Level.privileged:
        return False
    return new.minor != old.minor or new.level > old.level


def _at(obj: Json, place: tuple[str, ...]) -> Json | None:
    result: Json | None = obj
    for name in place:
        result = (result or {}).get(name)
    return result


def _is_significant(pod: Json, old: Json) -> bool:
    """Report whether the update changes an image, the only mutable field relevant to the checks."""
    new_spec, old_spec = pod.get("spec") or {}, old.get("spec") or {}
    for kind in ("containers", "initContainers"):
        images = ([container.get("image") for container in spec.get(kind) or []] for spec in (new_spec, old_spec))
        if next(images) != next(images):
            return True
    known = {container["name"]: container.get("image") for container in old_spec.get("ephemeralContainers") or []}
    added = new_spec.get("ephemeralContainers") or []
    return any(known.get(container["name"], known) != container.get("image") for container in added)


class _Evaluations:
    def __init__(self) -> None:
        self._tally = CounterTally(
            "pod_security_evaluations",
            "[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.",
            ("decision", "policy_level", "policy_version", "mode", *_OF_REQUEST),
            registry=REGISTRY,
        )
        for operation in _OPERATIONS:
            self._tally.row(("allow", "privileged", "latest", "enforce", operation, "pod", ""))

    def record(self, decision: str, policy: LevelVersion, mode: str, attributes: Attributes) -> None:
        if policy.level is Level.privileged or policy.minor is None:
            version = "latest"
        else:
            version = f"v1.{policy.minor}" if policy.minor <= release.current().minor else "future"
        self._tally.inc((decision, policy.level.name, version, mode, *_of_request(attributes)))


class _Exemptions:
    def __init__(self) -> None:
        self._tally = CounterTally(
            "pod_security_exemptions",
            "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.",
            _OF_REQUEST,
            registry=REGISTRY,
        )
        for operation in _OPERATIONS:
            for resource in ("pod", "controller"):
                self._tally.row((operation, resource, ""))

    def record(self, attributes: Attributes) -> None:
        self._tally.inc(_of_request(attributes))


def _of_request(attributes: Attributes) -> tuple[str, str, str]:
    resource = _RESOURCES.get(attributes.resource.resource, "controller")
    return attributes.operation.value.lower(), resource, attributes.subresource


EVALUATIONS = _Evaluations()
EXEMPTIONS = _Exemptions()
