"""ServiceAccount: requires the pod's service account, and adds token volume and image pull secrets."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from pilothouse.apiserver.admission.interface import Attributes, Handler, Operation, refused
from pilothouse.kinds.pods import is_mirror_pod
from pilothouse.kinds.references import secret_names
from pilothouse.kube.admission.plugin_parts import invalid_resource_name
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.names_generator import generate_name
from pilothouse.machinery.objects import Json, metadata, name_of

GetServiceAccount: TypeAlias = Callable[[str, str], Awaitable[Json | None]]
"""By namespace and name."""

DEFAULT = "default"
_PODS = GroupResource("", "pods")
_ATTEMPTS = 10

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
_VOLUME_PREFIX = "kube-api-access-"
_EXPIRATION_SECONDS = 3607
"""1 hour and 7 seconds: marks injected tokens, whose expiration is extended."""

_ENFORCE = "kubernetes.io/enforce-mountable-secrets"

_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))


class ServiceAccount(Handler):
    name = "ServiceAccount"
    resources = (_PODS,)
    operations = (Operation.CREATE, Operation.UPDATE)

    def __init__(self, get: GetServiceAccount) -> None:
        self._get = get

    async def admit(self, attributes: Attributes) -> None:
        pod = _written_pod(attributes)
        if pod is None or attributes.operation is not Operation.CREATE:
            return
        if is_mirror_pod(pod):
            _validate_mirror(attributes, pod["spec"])
        else:
            spec = pod["spec"]
            if not spec.get("serviceAccountName"):
                spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT
            account = await self._account_of(attributes, spec["serviceAccountName"])
            if _mounts_token(account, spec):
                _mount_token(spec)
            if not spec.get("imagePullSecrets") and (secrets := account.get("imagePullSecrets")):
                spec["imagePullSecrets"] = [{"name": secret["name"]} for secret in secrets]
            _refuse(attributes, account, unreferenced_secret, pod)

    async def validate(self, attributes: Attributes) -> None:
        pod = _written_pod(attributes)
        if pod is None:
            return
        if attributes.operation is Operation.UPDATE:
            if attributes.subresource == "ephemeralcontainers":
                account = await self._named_account(attributes, pod)
                _refuse(attributes, account, unreferenced_secret_of_ephemeral_containers, pod)
        elif is_mirror_pod(pod):
            _validate_mirror(attributes, pod["spec"])
        else:
            _refuse(attributes, await self._named_account(attributes, pod), unreferenced_secret, pod)

    async def _named_account(self, attributes: Attributes, pod: Json) -> Json:
        name = pod["spec"].get("serviceAccountName")
        if not name:
            where = f"{attributes.namespace}/{metadata(pod).get('name', '')}"
            raise refused(attributes, f"no service account specified for pod {where}")
        return await self._account_of(attributes, name)

    async def _account_of(self, attributes: Attributes, name: str) -> Json:
        """Return the account of the pod. Wait for the default account, created after the namespace by a controller."""
        for attempt in range(_ATTEMPTS if name == DEFAULT else 1):
            if attempt:
                await asyncio.sleep(random.uniform(0.1, 0.2))
            if (existing := await self._get(attributes.namespace, name)) is not None:
                return existing
        reason = invalid_resource_name(name) or f"serviceaccount {quote(name)} not found"
        raise refused(attributes, f"error looking up service account {attributes.namespace}/{name}: {reason}")


def _written_pod(attributes: Attributes) -> Json | None:
    if attributes.resource.group_resource != _PODS or attributes.subresource not in ("", "ephemeralcontainers"):
        return None
    if attributes.obj is not None:
        attributes.obj.setdefault("spec", {})
    return attributes.obj


def _mounts_token(account: Json, spec: Json) -> bool:
    """Report whether to mount a token. The pod's setting overrides the account's setting."""
    for wish in (spec.get("automountServiceAccountToken"), account.get("automountServiceAccountToken")):
        if wish is not None:
            return bool(wish)
    return True


def _validate_mirror(attributes: Attributes, spec: Json) -> None:
    """Raise Forbidden for a mirror pod with an account, a token volume or secrets."""
    if spec.get("serviceAccountName"):
        raise refused(attributes, "a mirror pod may not reference service accounts")
    if secret_names(spec):
        raise refused(attributes, "a mirror pod may not reference secrets")
    projections = (volume.get("projected") or {} for volume in spec.get("volumes") or [])
    sources = (source for projected in projections for source in projected.get("sources") or [])
    if any(source.get("serviceAccountToken") is not None for source in sources):
        raise refused(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _refuse(attributes: Attributes, account: Json, find: Callable[[Json, Json], str], pod: Json) -> None:
    if is_limited_to_its_secrets(account) and (reason := find(account, pod["spec"])):
        error: Forbidden = refused(attributes, reason)
        raise error


def _mount_token(spec: Json) -> None:
    """Mount the token volume in each container, except at occupied mount paths."""
    existing = next(
        (volume["name"] for volume in spec.get("volumes") or [] if volume["name"].startswith(_VOLUME_PREFIX)), None
    )
    name = existing or generate_name(_VOLUME_PREFIX)
    mounting = [
        container
        for container in [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
        if not _mounts_something_there(container)
    ]
    for container in mounting:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if mounting and existing is None:
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "projected": _token_source()}]


def _mounts_something_there(container: Json) -> bool:
    return any(mount.get("mountPath") == MOUNT_PATH for mount in container.get("volumeMounts") or ())


def _token_source() -> Json:
    namespace: Any = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _EXPIRATION_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [namespace]}},
        ],
        "defaultMode": 0o644,
    }


def is_limited_to_its_secrets(account: Json) -> bool:
    return (metadata(account).get("annotations") or {}).get(_ENFORCE) in _TRUE


def unreferenced_secret(account: Json, spec: Json) -> str:
    """Return the reason to reject the first secret outside the account's list, or an empty string."""
    allowed = {secret.get("name") for secret in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        secret = volume.get("secret")
        if secret is not None and (name := secret.get("secretName")) not in allowed:
            return _not_allowed(f'volume with secret.secretName="{name}"', account)
    for kind, containers in (("init container", "initContainers"), ("container", "containers")):
        if reason := _unreferenced(kind, spec.get(containers) or (), allowed, account):
            return reason
    allowed = {secret.get("name") for secret in account.get("imagePullSecrets") or ()}
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if secret.get("name") not in allowed:
            what = f'imagePullSecrets[{index}].name="{secret.get("name")}"'
            return _not_allowed(what, account, "imagePullSecret")
    return ""


def unreferenced_secret_of_ephemeral_containers(account: Json, spec: Json) -> str:
    allowed = {secret.get("name") for secret in account.get("secrets") or ()}
    return _unreferenced("ephemeral container", spec.get("ephemeralContainers") or (), allowed, account)


def _unreferenced(kind: str, containers: Any, known: set[Any], account: Json) -> str:
    for container in containers:
        for env in container.get("env") or ():
            name = ((env.get("valueFrom") or {}).get("secretKeyRef") or {}).get("name")
            if name is not None and name not in known:
                where = f"{kind} {container['name']} with envVar {env['name']}"
                return _not_allowed(f'{where} referencing secret.secretName="{name}"', account)
        for source in container.get("envFrom") or ():
            name = (source.get("secretRef") or {}).get("name")
            if name is not None and name not in known:
                where = f"{kind} {container['name']} with envFrom"
                return _not_allowed(f'{where} referencing secret.secretName="{name}"', account)
    return ""


def _not_allowed(subject: str, account: Json, kind: str = "secret") -> str:
    return f"{subject} is not allowed because service account {name_of(account)} does not reference that {kind}"
