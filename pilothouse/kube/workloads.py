"""Kinds with a pod template: strategy, validation, warnings and columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

from pilothouse.apiserver.registry.metadata import generation_of
from pilothouse.apiserver.registry.table import Cell, Column
from pilothouse.kube.core.pods.defaults.pod import default_pod_template
from pilothouse.kube.core.pods.disabled_fields import drop_disabled_template_fields
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_template
from pilothouse.kube.core.pods.validation.pod import validate_pod_annotations, validate_pod_template
from pilothouse.kube.core.pods.warnings.pod import pod_template_warnings
from pilothouse.kube.strategy import GatedFields, SpecAndStatusStrategy, drop_disabled
from pilothouse.kube.validation.selectors import is_empty, shown_selector
from pilothouse.machinery.field import Errors, Path, invalid, required, root
from pilothouse.machinery.objects import Json, annotations_of, items, name_of, number, part
from pilothouse.machinery.selectors.labels import format_label_selector
from pilothouse.machinery.validation.labels import validate_label_selector
from pilothouse.machinery.validation.names import is_dns1123_label

__all__ = ["default_pod_template", "template_warnings", "validate_template", "validate_template_annotations"]

_ADVICE = (
    "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
    "a DNS label is recommended: "
)


class WorkloadStrategy(SpecAndStatusStrategy):
    """Drops gated fields of the template, and warns about its contents."""

    template_path = root("spec", "template")
    gated_fields: ClassVar[tuple[GatedFields, ...]] = ()
    names_pods: ClassVar[bool] = False
    """Whether pod names begin with the name of the object, which should be a DNS label."""

    def template_of(self, obj: Json) -> Json | None:
        """Return the pod template, or None."""
        template: Json | None = obj["spec"].get("template")
        return template

    def prepare_for_create(self, obj: Json) -> None:
        if template := self.template_of(obj):
            drop_disabled_template_fields(template)
        drop_disabled(obj, None, self.gated_fields)
        super().prepare_for_create(obj)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if template := self.template_of(obj):
            drop_disabled_template_fields(template, self.template_of(old))
        drop_disabled(obj, old, self.gated_fields)
        super().prepare_for_update(obj, old)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return not same_spec(obj["spec"], old["spec"])

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if self.names_pods:
            yield from pod_name_warnings(obj)
        yield from template_warnings(self.template_of(obj), self.template_path)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if generation_of(obj) == generation_of(old):
            return ()
        return template_warnings(self.template_of(obj), self.template_path)


class ReplicatedStrategy(WorkloadStrategy):
    """Base of ReplicaSets and ReplicationControllers."""

    names_pods = True

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from self.validate_spec(obj["spec"])

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from self.validate_spec(obj["spec"], old["spec"])

    @abstractmethod
    def validate_spec(self, spec: Json, old: Json | None = None) -> Errors:
        """Validate the spec. `old` is the stored spec; an update may keep its faults."""


def validate_template(template: Json, path: Path, old: Json | None = None) -> Errors:
    """Validate the template. `old` is the stored template; an update may keep its faults."""
    return validate_pod_template(template, path, options_for_template(old))


def validate_template_annotations(template: Json, path: Path, old: Json | None = None) -> Errors:
    """Validate annotations with a meaning for the server."""
    spec = template.get("spec") or {}
    return validate_pod_annotations(annotations_of(template), spec, path, options_for_template(old))


def template_warnings(template: Json | None, path: Path) -> Iterable[str]:
    return pod_template_warnings(template, path) if template else ()


def pod_name_warnings(obj: Json) -> Iterable[str]:
    messages = is_dns1123_label(name_of(obj))
    return [f"{_ADVICE}[{' '.join(messages)}]"] if messages else []


def _template(obj: Json) -> Json:
    return part(obj, "spec", "template")


def container_columns(template: Callable[[Json], Json] = _template, *, priority: int = 1) -> list[Column]:
    """Return the columns with names and images of containers, shown in wide tables."""
    return [
        Column(
            "Containers",
            lambda obj: _joined(template(obj), "name"),
            priority=priority,
            description="Names of each container in the template.",
        ),
        Column(
            "Images",
            lambda obj: _joined(template(obj), "image"),
            priority=priority,
            description="Images referenced by each container in the template.",
        ),
    ]


def selector_column(definition: str, cell: Cell | None = None) -> Column:
    """Return the column of the selector. `definition` is the documented spec type."""
    return Column("Selector", cell or _selector, priority=1, documented=(definition, "selector"))


def _selector(obj: Json) -> Any:
    return format_label_selector(part(obj, "spec").get("selector"))


def _joined(template: Json, field: str) -> str:
    return ",".join(container.get(field) or "" for container in items(template, "spec", "containers"))


READY = Column(
    "Ready",
    lambda obj: f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
    description="Number of the pod with ready state",
)


def validate_required_selector(selector: Json | None, path: Path, owner: str) -> Errors:
    if selector is None:
        yield required(path)
        return
    yield from validate_label_selector(selector, path)
    if is_empty(selector):
        yield invalid(path, shown_selector(selector), f"empty selector is invalid for {owner}")
