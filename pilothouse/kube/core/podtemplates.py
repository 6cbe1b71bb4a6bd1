"""PodTemplates."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.metadata import begin_generation
from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import NAME, Column
from pilothouse.kube.core.pods.defaults.pod import default_pod_template
from pilothouse.kube.core.pods.disabled_fields import drop_disabled_template_fields
from pilothouse.kube.core.pods.equality import same_spec
from pilothouse.kube.core.pods.validation.options_from_stored import options_for_template
from pilothouse.kube.core.pods.validation.pod import validate_pod_template
from pilothouse.kube.core.pods.warnings.pod import pod_template_warnings
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.kube.workloads import container_columns
from pilothouse.machinery.field import Errors, root
from pilothouse.machinery.objects import Json, labels_of, metadata, part
from pilothouse.machinery.selectors.labels import format_labels


class PodTemplateStrategy(KubeStrategy):
    def default(self, obj: Json) -> None:
        default_pod_template(obj.setdefault("template", {}))

    def prepare_for_create(self, obj: Json) -> None:
        metadata(obj)["generation"] = 1
        drop_disabled_template_fields(obj["template"])

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        drop_disabled_template_fields(obj["template"], old["template"])
        if not same_spec(obj["template"], old["template"]):
            begin_generation(obj, old)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_pod_template(obj["template"], root("template"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from validate_pod_template(obj["template"], root("template"), options_for_template(old["template"]))

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        return pod_template_warnings(obj["template"], root("template"))

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        if same_spec(obj["template"], old["template"]):
            return ()
        return pod_template_warnings(obj["template"], root("template"))


POD_TEMPLATES = Resource(
    names=Names("podtemplates", kind="PodTemplate"),
    strategy=PodTemplateStrategy(),
    returns_deleted_object=True,
    columns=[
        NAME,
        *container_columns(lambda obj: part(obj, "template"), priority=0),
        Column(
            "Pod Labels",
            lambda obj: format_labels(labels_of(part(obj, "template"))),
            description="The labels for the pod template.",
        ),
    ],
)
