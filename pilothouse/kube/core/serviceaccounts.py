"""ServiceAccounts."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.apiserver.registry.resource import Names, Resource
from pilothouse.apiserver.registry.table import AGE, NAME, Column
from pilothouse.kube.strategy import KubeStrategy
from pilothouse.machinery.field import Errors
from pilothouse.machinery.objects import Json, annotations_of

ENFORCE_MOUNTABLE_SECRETS = "kubernetes.io/enforce-mountable-secrets"


class ServiceAccountStrategy(KubeStrategy):
    def prepare_for_create(self, obj: Json) -> None:
        _name_secrets_only(obj)

    def prepare_for_update(self, obj: Json, old: Json) -> None:
        _name_secrets_only(obj)

    def validate_update(self, obj: Json, old: Json) -> Errors:
        yield from self.validate_metadata_update(obj, old)
        yield from self.validate(obj)

    def warnings_on_create(self, obj: Json) -> Iterable[str]:
        if ENFORCE_MOUNTABLE_SECRETS in annotations_of(obj):
            yield (
                f"metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; "
                "prefer separate namespaces to isolate access to mounted secrets"
            )

    def warnings_on_update(self, obj: Json, old: Json) -> Iterable[str]:
        return () if ENFORCE_MOUNTABLE_SECRETS in annotations_of(old) else self.warnings_on_create(obj)


def _name_secrets_only(obj: Json) -> None:
    """Reduce references to secrets to the name: secrets are always in the account's namespace."""
    if obj.get("secrets"):
        obj["secrets"] = [{"name": secret["name"]} if secret.get("name") else {} for secret in obj["secrets"]]


SERVICE_ACCOUNTS = Resource(
    names=Names("serviceaccounts", kind="ServiceAccount", short=["sa"]),
    strategy=ServiceAccountStrategy(),
    columns=[
        NAME,
        Column(
            "Secrets",
            lambda obj: len(obj.get("secrets") or ()),
            documented=("io.k8s.api.core.v1.ServiceAccount", "secrets"),
            versions="1.34-",
        ),
        AGE,
    ],
    returns_deleted_object=True,
)
