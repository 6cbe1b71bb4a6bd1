"""ValidatingWebhookConfigurations and MutatingWebhookConfigurations."""

from __future__ import annotations

from typing import ClassVar

from pilothouse.apiserver.registry.table import Column, count
from pilothouse.kube.admissionregistration.strategy import AdmissionRegistrationStrategy, resource_of
from pilothouse.kube.admissionregistration.webhooks import STRICT, default_webhook, leniency, validate_webhooks
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json, items


class ValidatingWebhookStrategy(AdmissionRegistrationStrategy):
    content = "webhooks"
    mutating: ClassVar[bool] = False

    def default(self, obj: Json) -> None:
        for hook in items(obj, "webhooks"):
            default_webhook(hook, mutating=self.mutating)

    def is_new_generation(self, obj: Json, old: Json) -> bool:
        """Upstream tells what is empty from what is not there in webhooks."""
        return bool(obj.get("webhooks") != old.get("webhooks"))

    def validate_configuration(self, obj: Json) -> Errors:
        yield from self.validate_metadata(obj)
        yield from validate_webhooks(items(obj, "webhooks"), STRICT, mutating=self.mutating)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata(obj)
        new = items(obj, "webhooks")
        yield from validate_webhooks(new, leniency(new, items(old, "webhooks")), mutating=self.mutating)


class MutatingWebhookStrategy(ValidatingWebhookStrategy):
    mutating = True


_COLUMNS = [
    Column(
        "Webhooks",
        count("webhooks"),
        type="integer",
        description="Webhooks indicates the number of webhooks registered in this configuration",
    ),
]

VALIDATING_WEBHOOK_CONFIGURATIONS = resource_of(
    "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", ValidatingWebhookStrategy(), _COLUMNS
)
MUTATING_WEBHOOK_CONFIGURATIONS = resource_of(
    "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", MutatingWebhookStrategy(), _COLUMNS
)
