"""ResourceClaimTemplates: immutable templates of claims for pods."""

from __future__ import annotations

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME
from pilothouse.kube.resource.device_classes import GROUP
from pilothouse.kube.resource.gated_fields import CLAIM_SPEC_FIELDS
from pilothouse.kube.resource.printed_claims import printed_template_spec
from pilothouse.kube.resource.requests import default_requests, validate_claim_spec
from pilothouse.kube.strategy import KubeStrategy, drop_disabled
from pilothouse.kube.validation.volume_claims import validate_template_metadata
from pilothouse.machinery.field import Errors, invalid, root
from pilothouse.machinery.objects import Json, part
from pilothouse.machinery.validation.immutable import FIELD_IMMUTABLE, semantically_equal


class ResourceClaimTemplateStrategy(KubeStrategy):
    def default(self, obj: Json) -> None:
        default_requests(part(obj, "spec", "spec"))

    def prepare_for_create(self, obj: Json) -> None:
        drop_disabled(part(obj, "spec", "spec"), None, CLAIM_SPEC_FIELDS)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        drop_disabled(part(obj, "spec", "spec"), part(old, "spec", "spec"), CLAIM_SPEC_FIELDS)

    def validate(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_template_metadata(part(obj, "spec", "metadata"), root("spec", "metadata"))
        yield from validate_claim_spec(part(obj, "spec", "spec"), root("spec", "spec"))

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_again(obj, old)
        if not semantically_equal(obj.get("spec"), old.get("spec")):
            yield invalid(root("spec"), printed_template_spec(part(obj, "spec")), FIELD_IMMUTABLE)


RESOURCE_CLAIM_TEMPLATES = Resource(
    names=Names("resourceclaimtemplates", kind="ResourceClaimTemplate"),
    strategy=ResourceClaimTemplateStrategy(),
    group=GROUP,
    returns_deleted_object=True,
    columns=[NAME, AGE],
)
