"""The rule that pods of some service accounts may name only the secrets that the account names."""

from __future__ import annotations

from typing import Any

from pilothouse.machinery.objects import Json, metadata, name_of

_ENFORCE = "kubernetes.io/enforce-mountable-secrets"
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))


def is_limited_to_its_secrets(account: Json) -> bool:
    return (metadata(account).get("annotations") or {}).get(_ENFORCE) in _TRUE


def unreferenced_secret(account: Json, spec: Json) -> str:
    """Return why the first secret that the account does not name is not allowed; empty when all are."""
    known = {secret.get("name") for secret in account.get("secrets") or ()}
    for volume in spec.get("volumes") or ():
        secret = volume.get("secret")
        if secret is not None and (name := secret.get("secretName")) not in known:
            return _not_allowed(f'volume with secret.secretName="{name}"', account)
    for kind, containers in (("init container", "initContainers"), ("container", "containers")):
        if why := _unreferenced(kind, spec.get(containers) or (), known, account):
            return why
    known = {secret.get("name") for secret in account.get("imagePullSecrets") or ()}
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if secret.get("name") not in known:
            what = f'imagePullSecrets[{index}].name="{secret.get("name")}"'
            return _not_allowed(what, account, "imagePullSecret")
    return ""


def unreferenced_secret_of_ephemeral_containers(account: Json, spec: Json) -> str:
    known = {secret.get("name") for secret in account.get("secrets") or ()}
    return _unreferenced("ephemeral container", spec.get("ephemeralContainers") or (), known, account)


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


def _not_allowed(what: str, account: Json, kind: str = "secret") -> str:
    return f"{what} is not allowed because service account {name_of(account)} does not reference that {kind}"
