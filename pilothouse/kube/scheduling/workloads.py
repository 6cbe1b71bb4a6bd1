"""Workloads: templates of the pod groups of an application."""

from __future__ import annotations

from itertools import zip_longest

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME
from pilothouse.kube.scheduling.pod_groups import drop_disabled_group_fields, keyed_list, required_name, validate_group
from pilothouse.kube.scheduling.priorityclasses import GROUP
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.validation.fields import dns_label, dns_subdomain, follow
from pilothouse.machinery.field import Errors, Path, invalid, required, root, too_many
from pilothouse.machinery.objects import Json, items, part, text
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal
from pilothouse.machinery.validation.names import name_is_path_segment

MAX_TEMPLATES = 8

_CONTROLLER = root("spec", "controllerRef")
_TEMPLATES = root("spec", "podGroupTemplates")


class WorkloadStrategy(KubeStrategy):
    def prepare_for_create(self, obj: Json) -> None:
        self.prepare_for_update(obj, {})

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        templates, before = items(obj, "spec", "podGroupTemplates"), items(old, "spec", "podGroupTemplates")
        for template, old_template in zip_longest(templates, before[: len(templates)]):
            drop_disabled_group_fields(template, old_template)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        reference, templates = part(obj, "spec").get("controllerRef"), items(obj, "spec", "podGroupTemplates")
        if reference is not None:
            if group := text(reference, "apiGroup"):
                yield from dns_subdomain(group, _CONTROLLER.child("apiGroup"))
            for name in ("kind", "name"):
                yield from required_name(
                    text(reference, name),
                    _CONTROLLER.child(name),
                    lambda value, path: follow(name_is_path_segment, value, path),
                )
        yield from keyed_list(templates, MAX_TEMPLATES, _validate_template, _TEMPLATES)
        if not templates:
            yield required(_TEMPLATES)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        spec, before = part(obj, "spec"), part(old, "spec")
        if not semantically_equal(spec.get("controllerRef"), before.get("controllerRef")):
            yield invalid(_CONTROLLER, None, FIELD_IMMUTABLE)
        templates = items(spec, "podGroupTemplates")
        if not semantically_equal(templates, items(before, "podGroupTemplates")):
            yield invalid(_TEMPLATES, None, FIELD_IMMUTABLE)
            if len(templates) > MAX_TEMPLATES:
                yield too_many(_TEMPLATES, len(templates), MAX_TEMPLATES)
            if not templates:
                yield required(_TEMPLATES)


def _validate_template(template: Json, path: Path) -> Errors:
    yield from required_name(text(template, "name"), path.child("name"), dns_label)
    yield from validate_group(template, path)


WORKLOADS = Resource(
    names=Names("workloads", kind="Workload"),
    strategy=WorkloadStrategy(),
    group=GROUP,
    version="v1alpha2",
    columns=[NAME, AGE],
)
