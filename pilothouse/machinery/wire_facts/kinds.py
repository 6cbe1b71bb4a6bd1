"""The names of messages: by kind, `apps/v1, Kind=Deployment` → `k8s.io.api.apps.v1.Deployment`, and by OpenAPI name."""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.wire_facts.facts import is_kind

META = "k8s.io.apimachinery.pkg.apis.meta.v1"

_PACKAGES = {
    "": "k8s.io.api.core",
    "admission.k8s.io": "k8s.io.api.admission",
    "admissionregistration.k8s.io": "k8s.io.api.admissionregistration",
    "apidiscovery.k8s.io": "k8s.io.api.apidiscovery",
    "apiextensions.k8s.io": "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "k8s.io.kube_aggregator.pkg.apis.apiregistration",
    "apps": "k8s.io.api.apps",
    "authentication.k8s.io": "k8s.io.api.authentication",
    "authorization.k8s.io": "k8s.io.api.authorization",
    "autoscaling": "k8s.io.api.autoscaling",
    "batch": "k8s.io.api.batch",
    "certificates.k8s.io": "k8s.io.api.certificates",
    "coordination.k8s.io": "k8s.io.api.coordination",
    "discovery.k8s.io": "k8s.io.api.discovery",
    "events.k8s.io": "k8s.io.api.events",
    "extensions": "k8s.io.api.extensions",
    "flowcontrol.apiserver.k8s.io": "k8s.io.api.flowcontrol",
    "imagepolicy.k8s.io": "k8s.io.api.imagepolicy",
    "internal.apiserver.k8s.io": "k8s.io.api.apiserverinternal",
    "meta.k8s.io": "k8s.io.apimachinery.pkg.apis.meta",
    "networking.k8s.io": "k8s.io.api.networking",
    "node.k8s.io": "k8s.io.api.node",
    "policy": "k8s.io.api.policy",
    "rbac.authorization.k8s.io": "k8s.io.api.rbac",
    "resource.k8s.io": "k8s.io.api.resource",
    "scheduling.k8s.io": "k8s.io.api.scheduling",
    "storage.k8s.io": "k8s.io.api.storage",
    "storagemigration.k8s.io": "k8s.io.api.storagemigration",
}
_IN_EVERY_VERSION = frozenset(
    {"WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"}
)
_UNVERSIONED = frozenset({"Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList"})


@dataclass(frozen=True, slots=True)
class MessageName:
    package: str
    message: str

    def __str__(self) -> str:
        return f"{self.package}.{self.message}"


def definition_name(package: str, message: str) -> str:
    """The OpenAPI name of a message: `k8s.io.api.core.v1`, `Pod` → `io.k8s.api.core.v1.Pod`."""
    return f"io.k8s.{package.removeprefix('k8s.io.')}.{message}".replace("_", "-")


def message_named(definition: str) -> MessageName:
    """The other way round: the message that goes by an OpenAPI name, if there is one."""
    package, _, message = definition.rpartition(".")
    return MessageName("k8s.io." + package.removeprefix("io.k8s.").replace("-", "_"), message)


def message_of(gvk: GroupVersionKind) -> MessageName | None:
    """The message of a built-in kind, None for any other. Every built-in version has the options and WatchEvent too."""
    if gvk.kind in _IN_EVERY_VERSION or (gvk.kind in _UNVERSIONED and gvk.api_version == "v1"):
        return MessageName(META, gvk.kind)
    stem = _PACKAGES.get(gvk.group)
    if stem is None:
        return None
    package = f"{stem}.{gvk.version}"
    if gvk.api_version == "meta.k8s.io/v1beta1" and gvk.kind == "PartialObjectMetadata":
        package = META  # upstream's v1beta1 type is an alias of v1's
    return MessageName(package, gvk.kind) if is_kind(package, gvk.kind) else None
