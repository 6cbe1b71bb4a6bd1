"""Kinds that make pods from a template."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.carry_over import generation_of
from pilothouse.kube.core.pods.disabled_fields import drop_disabled_template_fields
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.pod_templates import template_warnings
from pilothouse.kube.strategy import SpecAndStatusStrategy
from pilothouse.machinery.field import root
from pilothouse.machinery.objects import Json


class WorkloadStrategy(SpecAndStatusStrategy):
    """Drops fields of features that are off from the template, and warns of what users write in it."""

    template_path = root("spec", "template")

    def template_of(self, obj: Json) -> Json | None:
        """Return the pod template, None where it is missing."""
        template: Json | None = obj["spec"].get("template")
        return template

    def prepare_for_create(self, obj: Json) -> None:
        if template := self.template_of(obj):
            drop_disabled_template_fields(template)
        super().prepare_for_create(obj)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        if template := self.template_of(obj):
            drop_disabled_template_fields(template, self.template_of(old))
        super().prepare_for_update(obj, old)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        return not same_spec(obj["spec"], old["spec"])

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return template_warnings(self.template_of(obj), self.template_path)

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if generation_of(obj) == generation_of(old):
            return ()
        return template_warnings(self.template_of(obj), self.template_path)
