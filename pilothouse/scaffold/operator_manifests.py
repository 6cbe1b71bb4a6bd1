"""Manifests of an operator, from its code: CustomResourceDefinitions, RBAC, Deployment and webhooks, as files in the
order of application. The same code makes the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json
from pilothouse.operator.webhooks import (
    CONVERT_PATH,
    REGISTRATION,
    AdmissionWebhook,
    conversion_of,
    webhook_configurations,
)
from pilothouse.scaffold.manifests import role_and_binding, rule

FILES = {
    # file                  part
    "1-namespace.yaml": "manifests",
    "2-crds.yaml": "crds",
    "3-rbac.yaml": "rbac",
    "4-deployment.yaml": "manifests",
    "5-webhooks.yaml": "webhooks",
}
"""File -> command that writes it besides `manifests`."""
_HTTP_PORT, _WEBHOOK_PORT = 8080, 9443
_USER = 65532
_READ = ("get", "list", "watch")
_WRITE = ("create", "delete", *_READ, "patch", "update")
_DEFINITIONS = "apiextensions.k8s.io"


@dataclass(frozen=True, slots=True)
class Use:
    """How the operator uses a resource."""

    group: str
    resource: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Operator:
    """The parts of an operator that its manifests follow from."""

    name: str
    namespace: str
    image: str
    definitions: Sequence[Json]
    """CustomResourceDefinitions without a conversion webhook."""
    uses: Sequence[Use]
    webhooks: Sequence[AdmissionWebhook] = ()
    converted: frozenset[str] = frozenset()
    """Names of the CustomResourceDefinitions with conversions."""
    namespaces: Sequence[str] = ()
    """Watched namespaces; empty = all."""
    lease: str = ""
    """Name of the leader election's lease; empty without an election."""
    recorded: Sequence[Json] = ()
    """Rules of a recorded run."""

    @property
    def serves_webhooks(self) -> bool:
        return bool(self.webhooks or self.converted)

    def files(self) -> dict[str, list[Json]]:
        """File name -> objects; files without objects are left out."""
        files = {
            "1-namespace.yaml": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}],
            "2-crds.yaml": [self._definition(definition) for definition in self.definitions],
            "3-rbac.yaml": list(self._permissions()),
            "4-deployment.yaml": [self._deployment()],
            "5-webhooks.yaml": list(self._webhook_objects()),
        }
        return {name: objects for name, objects in files.items() if objects}

    def _definition(self, definition: Json) -> Json:
        if definition["metadata"]["name"] not in self.converted:
            return definition
        return {**definition, "spec": {**definition["spec"], "conversion": conversion_of(self._service(CONVERT_PATH))}}

    def _permissions(self) -> Iterator[Json]:
        """Yield the service account, its roles and its bindings."""
        subject = {"kind": "ServiceAccount", "name": self.name, "namespace": self.namespace}
        yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": self._metadata()}
        rules = merged_rules([*(rule(use.group, use.resource, *use.verbs) for use in self.uses), *self.recorded])
        shared = merged_rules(self._cluster_rules()) if self.namespaces else []
        everywhere = shared if self.namespaces else merged_rules([*rules, *self._cluster_rules()])
        if everywhere:
            metadata = {"name": f"{self.namespace}:{self.name}", "labels": {"app": self.name}}
            yield from role_and_binding(metadata, everywhere, subject)
        for namespace in self.namespaces:
            yield from role_and_binding({**self._metadata(), "namespace": namespace}, rules, subject)
        if own := merged_rules(self._own_rules()):
            metadata = {**self._metadata(), "name": f"{self.name}:manager"}
            yield from role_and_binding(metadata, own, subject)

    def _cluster_rules(self) -> Iterator[Json]:
        """Yield the rules for cluster-scoped objects that carry the CA of the webhooks."""
        for type_ in sorted({hook.options.type for hook in self.webhooks}):
            found = rule(REGISTRATION, f"{type_}webhookconfigurations", "get", "patch")
            yield {**found, "resourceNames": [self.name]}
        if self.converted:
            found = rule(_DEFINITIONS, "customresourcedefinitions", "get", "patch")
            yield {**found, "resourceNames": sorted(self.converted)}

    def _own_rules(self) -> Iterator[Json]:
        """Yield the rules for objects of the operator itself, in its own namespace."""
        if self.lease:
            yield rule("coordination.k8s.io", "leases", "create")
            yield {**rule("coordination.k8s.io", "leases", "get", "update"), "resourceNames": [self.lease]}
        if self.serves_webhooks:
            yield rule("", "secrets", "create")  # the CA that all replicas share
            yield {**rule("", "secrets", "get", "update"), "resourceNames": [f"{self.name}-ca"]}

    def _deployment(self) -> Json:
        labels = {"app": self.name}
        ports = [
            {"name": "http", "containerPort": _HTTP_PORT},  # health and metrics
            *([{"name": "webhooks", "containerPort": _WEBHOOK_PORT}] if self.serves_webhooks else []),
        ]
        environment: list[Json] = [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ]
        container = {
            "name": "manager",
            "image": self.image,
            "env": environment,
            "ports": ports,
            "livenessProbe": {"httpGet": {"path": "/healthz", "port": "http"}, "periodSeconds": 20},
            "readinessProbe": {"httpGet": {"path": "/readyz", "port": "http"}, "periodSeconds": 10},
            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "readOnlyRootFilesystem": True,
            },
            "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
        }
        pod = {
            "serviceAccountName": self.name,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _USER,
                "runAsGroup": _USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
            "volumes": [{"name": "tmp", "emptyDir": {}}],  # certificates of the webhooks
            "terminationGracePeriodSeconds": 30,
        }
        spec = {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": self._metadata(), "spec": spec}

    def _webhook_objects(self) -> Iterator[Json]:
        if self.serves_webhooks:
            ports = [{"name": "webhooks", "port": 443, "targetPort": "webhooks"}]
            spec = {"selector": {"app": self.name}, "ports": ports}
            yield {"apiVersion": "v1", "kind": "Service", "metadata": self._metadata(), "spec": spec}
            yield from webhook_configurations(self.name, self.webhooks, self._service)

    def _service(self, path: str) -> Json:
        """Return the clientConfig of a path. The operator adds the caBundle."""
        return {"service": {"namespace": self.namespace, "name": self.name, "path": path, "port": 443}}

    def _metadata(self) -> Json:
        return {"name": self.name, "namespace": self.namespace, "labels": {"app": self.name}}


def primary_uses(group: str, resource: str, *, has_status: bool, has_finalizer: bool) -> Iterator[Use]:
    """Yield the uses of the reconciled resource."""
    yield Use(group, resource, (*_READ, "patch", "update") if has_finalizer else _READ)
    if has_status:
        yield Use(group, f"{resource}/status", ("get", "patch", "update"))
    # Owner references with blockOwnerDeletion need this where OwnerReferencesPermissionEnforcement is on.
    yield Use(group, f"{resource}/finalizers", ("update",))


def owned_use(group: str, resource: str) -> Use:
    """Return the use of a resource whose objects the operator writes."""
    return Use(group, resource, _WRITE)


def watched_use(group: str, resource: str) -> Use:
    """Return the use of a resource whose objects the operator reads."""
    return Use(group, resource, _READ)


EVENTS = Use("", "events", ("create", "patch"))


def merged_rules(rules: Iterable[Json]) -> list[Json]:
    """Merge rules for the same resource, drop names that a rule without names covers, and sort."""
    verbs: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    urls: dict[str, set[str]] = {}
    for one in rules:
        for url in one.get("nonResourceURLs") or ():
            urls.setdefault(url, set()).update(one["verbs"])
        names = tuple(sorted(one.get("resourceNames") or ()))
        for group in one.get("apiGroups") or ():
            for resource in one.get("resources") or ():
                verbs.setdefault((group, resource, names), set()).update(one["verbs"])
    out = []
    for (group, resource, names), found in sorted(verbs.items()):
        left = found - verbs.get((group, resource, ()), set()) if names else found
        if left:
            named = {"resourceNames": list(names)} if names else {}
            out.append({**rule(group, resource, *sorted(left)), **named})
    return [*out, *({"nonResourceURLs": [url], "verbs": sorted(found)} for url, found in sorted(urls.items()))]
