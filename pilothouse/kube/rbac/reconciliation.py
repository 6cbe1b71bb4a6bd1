"""Ensures bootstrap roles and bindings before the server becomes ready.

Failures are logged and retried; the start fails after half a minute.

Grants under names of older releases are copied to the new names, unless an object exists under the new name.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.registry.store import RegistryStore
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.storage.errors import StorageError
from pilothouse.kube.rbac.bootstrap_policy import AUTO_UPDATE, bootstrap_objects
from pilothouse.kube.rbac.rules import PolicyRule, uncovered
from pilothouse.kube.served import tracked_access
from pilothouse.machinery.errors import AlreadyExists
from pilothouse.machinery.objects import Json, metadata, name_of, namespace_of
from pilothouse.machinery.status_error import StatusError

_ROUNDS = 30
_PAUSE = 1.0
_AGGREGATED = {name: f"system:aggregate-to-{name}" for name in ("admin", "edit", "view")}
"""Roles whose own rules moved to an aggregated role."""

_SPLIT = {"system:discovery": "system:public-info-viewer"}
"""Bindings that other bindings were split from."""

_CARRIED = ("labels", "annotations")

_log = logging.getLogger(__name__)


class RolesNotInitialized(Exception):
    """The bootstrap roles could not be made."""


class BootstrapPolicy:
    def __init__(
        self,
        registries: Iterable[RegistryStore],
        *,
        features: FeatureGates | None = None,
        pause: float = _PAUSE,
    ) -> None:
        self._features = features or FeatureGates()
        self._kinds = {registry.resource.names.kind: tracked_access(registry) for registry in registries}
        self._pause = pause

    async def ensure(self) -> None:
        """Raises RolesNotInitialized."""
        expected = bootstrap_objects(self._features.enabled).by_kind
        for _ in range(_ROUNDS):
            results = await asyncio.gather(*(self._ensure_kind(kind, objects) for kind, objects in expected.items()))
            if all(results):
                return
            await asyncio.sleep(self._pause)
        raise RolesNotInitialized("unable to initialize roles: timed out waiting for the condition")

    async def _ensure_kind(self, kind: str, expected: list[Json]) -> bool:
        """Write objects concurrently, so that they share commits."""
        access = self._kinds[kind]
        try:
            stored = {(namespace_of(obj), name_of(obj)): obj for obj in await access.list()}
            if await self._migrate(kind, {name: obj for (_, name), obj in stored.items()}):
                return await self._ensure_kind(kind, expected)
        except (StatusError, StorageError) as error:
            _log.error("unable to initialize %ss: %s", kind.lower(), error)
            return False
        ensured = (_ensure(access, obj, stored.get((namespace_of(obj), name_of(obj)))) for obj in expected)
        return all(await asyncio.gather(*ensured))

    async def _migrate(self, kind: str, stored: Mapping[str, Json]) -> bool:
        """Report whether objects were migrated. Raise StatusError."""
        wanted = list(_MIGRATIONS[kind](stored)) if kind in _MIGRATIONS else []
        for obj in wanted:
            await self._kinds[kind].ensure(obj)
        return bool(wanted)


async def _ensure(access: OwnAccess, expected: Json, stored: Json | None) -> bool:
    """Whether the object is as expected now, or wants to be left alone."""
    try:
        if stored is None:
            await access.create(expected)
        elif not is_protected(stored):
            if refers_elsewhere(stored, expected):
                await access.delete(name_of(stored), namespace=namespace_of(stored))
                await access.create(expected)
            elif reconciled(stored, expected) != stored:
                await access.update(stored, lambda current: _replace(current, reconciled(current, expected)))
    except AlreadyExists:
        return False  # another server was faster: the next round checks the object
    except (StatusError, StorageError) as error:
        what = f"{expected['kind'].lower()}.{expected['apiVersion'].partition('/')[0]}/{name_of(expected)}"
        _log.error("unable to reconcile %s: %s", what, error)
        return False
    return True


def _replace(obj: Json, new: Json) -> None:
    obj.clear()
    obj.update(new)


def _migrated_roles(stored: Mapping[str, Json]) -> Iterator[Json]:
    """Yield cluster roles to create, from the stored roles by name."""
    for old, new in _AGGREGATED.items():
        if new not in stored and old in stored and stored[old].get("aggregationRule") is None:
            yield _renamed(stored[old], new) | {"rules": stored[old].get("rules")}


def _migrated_bindings(stored: Mapping[str, Json]) -> Iterator[Json]:
    for old, new in _SPLIT.items():
        if old in stored and new not in stored:
            reference = stored[old]["roleRef"] | {"name": new}
            yield _renamed(stored[old], new) | {"subjects": stored[old].get("subjects"), "roleRef": reference}


def _renamed(obj: Json, name: str) -> Json:
    carried = {field: dict(metadata(obj)[field]) for field in _CARRIED if metadata(obj).get(field)}
    return {"kind": obj["kind"], "apiVersion": obj["apiVersion"], "metadata": {"name": name, **carried}}


_MIGRATIONS: Mapping[str, Callable[[Mapping[str, Json]], Iterable[Json]]] = {
    "ClusterRole": _migrated_roles,
    "ClusterRoleBinding": _migrated_bindings,
}


def is_protected(obj: Json) -> bool:
    """Report whether the autoupdate annotation protects the object."""
    return bool((metadata(obj).get("annotations") or {}).get(AUTO_UPDATE) == "false")


def refers_elsewhere(binding: Json, expected: Json) -> bool:
    """Report whether a binding refers to another role. The reference is immutable, so the binding must be replaced."""
    return bool(binding.get("roleRef") != expected.get("roleRef"))


def reconciled(stored: Json, expected: Json) -> Json:
    """Return the object with everything expected; equal to the stored object if complete."""
    obj = {**stored, "metadata": {**metadata(stored)}}  # copy on write: changed parts are replaced below
    for field in ("annotations", "labels"):
        metadata(obj)[field] = metadata(expected)[field] | (metadata(obj).get(field) or {})
    if "roleRef" in expected:
        result = obj.get("subjects") or []
        missing = [subject for subject in expected.get("subjects") or () if subject not in result]
        if missing:
            obj["subjects"] = [*result, *missing]
    else:
        if obj.get("rules") != expected.get("rules"):
            rules, wanted = obj.get("rules") or (), expected.get("rules") or ()
            missing_rules = uncovered([*map(PolicyRule.of, rules)], map(PolicyRule.of, wanted))
            if missing_rules:
                obj["rules"] = [*rules, *(rule.as_json() for rule in missing_rules)]
        # A role without expected aggregation loses its aggregation rule.
        if "aggregationRule" not in expected:
            obj.pop("aggregationRule", None)
        else:
            selectors = (obj.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
            missing = [item for item in expected["aggregationRule"]["clusterRoleSelectors"] if item not in selectors]
            if missing:
                obj["aggregationRule"] = {"clusterRoleSelectors": [*selectors, *missing]}
    return obj
