"""Reads an operator's code: imports its module, and finds its manager, reconcilers and kinds."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from pilothouse.machinery.objects import Json
from pilothouse.operator.kinds import AnyKind, classes_of, definitions, gvk_of, kind_of
from pilothouse.operator.manager import Manager
from pilothouse.operator.reconciler import Reconciler, kind_of_reconciler, kinds_of_reconciler
from pilothouse.operator.webhooks import (
    admission_webhooks,
    conversion_kinds,
    conversions,
    definition_name,
    is_webhooks_only,
    plural_of_kind,
)
from pilothouse.scaffold.names import ScaffoldError
from pilothouse.scaffold.operator_manifests import EVENTS, Operator, Use, owned_use, primary_uses, watched_use

AnyReconciler = type[Reconciler[Any]]


def load_operator(
    spec: str, *, name: str = "", namespace: str = "", image: str = "", recorded: Sequence[Json] = ()
) -> Operator:
    """Import MODULE or MODULE:NAME, and return its operator. Raises ScaffoldError."""
    module_name, _, attribute = spec.partition(":")
    module, started = _imported(module_name)
    manager = _manager(module, attribute, started)
    reconcilers = manager.reconciler_types if manager else _reconcilers(module)
    if not reconcilers:
        raise ScaffoldError(f"{spec} has no Manager and no Reconciler: name their module")
    try:
        classes = _classes(module_name, reconcilers)
        converted = {definition_name(kind_of_reconciler(each)) for each in reconcilers if conversions(each)}
        chosen = name or (manager.name if manager else "") or _default_name(module_name)
        return Operator(
            name=chosen,
            namespace=namespace or f"{chosen}-system",
            image=image or f"{chosen}:latest",
            definitions=sorted(definitions(*classes), key=lambda definition: str(definition["metadata"]["name"])),
            uses=[use for each in reconcilers for use in _uses(each)],
            webhooks=[hook for each in reconcilers for hook in admission_webhooks(each)],
            converted=frozenset(converted),
            namespaces=manager.namespaces if manager else (),
            lease=_lease(manager, chosen),
            recorded=recorded,
        )
    except (TypeError, ValueError) as error:
        raise ScaffoldError(f"{spec}: {error}") from error


def _imported(name: str) -> tuple[ModuleType, list[Manager]]:
    """Import the module; a manager that it runs is returned instead of run. Raises ScaffoldError."""
    started: list[Manager] = []

    def run(manager: Manager, **_: Any) -> None:
        started.append(manager)

    sys.path.insert(0, str(Path.cwd()))
    original = Manager.run
    Manager.run = run  # type: ignore[assignment, method-assign]
    try:
        module = import_module(name)
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
            if not found.name.endswith(".__main__"):
                import_module(found.name)
        return module, started
    except (Exception, SystemExit) as error:
        raise ScaffoldError(f"cannot import {name}: {type(error).__name__}: {error}") from error
    finally:
        Manager.run = original  # type: ignore[method-assign]
        sys.path.remove(str(Path.cwd()))


def _manager(module: ModuleType, attribute: str, started: list[Manager]) -> Manager | None:
    """Return the named manager, or the only manager of the module; None if there is none. Raises ScaffoldError."""
    if attribute:
        found = getattr(module, attribute, None)
        found = found() if callable(found) and not isinstance(found, Manager) else found
        if not isinstance(found, Manager):
            raise ScaffoldError(f"{attribute} is not a Manager, nor a function that returns one")
        return found
    known = [value for each in _modules(module.__name__) for value in vars(each).values()]
    managers = {id(value): value for value in (*started, *known) if isinstance(value, Manager)}
    if len(managers) > 1:
        raise ScaffoldError("the module has several managers: name one as MODULE:NAME")
    return next(iter(managers.values()), None)


def _reconcilers(module: ModuleType) -> list[AnyReconciler]:
    """Return the reconcilers of a module and of its submodules that are imported, in the order of their names."""
    found = {
        each
        for loaded in _modules(module.__name__)
        for each in vars(loaded).values()
        if isinstance(each, type) and issubclass(each, Reconciler) and each.__module__ == loaded.__name__
    }
    return sorted(found - {Reconciler}, key=lambda each: (each.__module__, each.__qualname__))


def _classes(module_name: str, reconcilers: Sequence[AnyReconciler]) -> list[type[Any]]:
    """Return the kinds with a definition: used by the reconcilers, or another version of such a kind."""
    kinds = [kind for each in reconcilers for kind in (*kinds_of_reconciler(each), *conversion_kinds(each))]
    used = classes_of(kinds)
    names = {(kind_of(each).gvk.group, kind_of(each).gvk.kind) for each in used}
    modules = {module_name.partition(".")[0], *(each.__module__ for each in used)}
    others = (
        value
        for name in sorted(modules)
        for loaded in _modules(name)
        for value in vars(loaded).values()
        if isinstance(value, type) and "__kind__" in vars(value)
    )
    classes = {each: kind_of(each).gvk for each in (*used, *others)}
    chosen = [each for each, gvk in classes.items() if (gvk.group, gvk.kind) in names]
    return sorted(chosen, key=lambda each: (not kind_of(each).storage, kind_of(each).gvk.version))


def _uses(reconciler: AnyReconciler) -> Iterator[Use]:
    kind = kind_of_reconciler(reconciler)
    declared = getattr(kind, "__kind__", None)
    has_status = declared is None or declared.status is not None
    group, resource = _resource(kind)
    if not is_webhooks_only(reconciler):
        yield from primary_uses(group, resource, has_status=has_status, has_finalizer=bool(reconciler.finalizer))
    for owned in reconciler.owns:
        yield owned_use(*_resource(owned))
    for read in (*(watch.kind for watch in reconciler.watches), *reconciler.reads):
        yield watched_use(*_resource(read))
    yield EVENTS


def _resource(kind: AnyKind) -> tuple[str, str]:
    return gvk_of(kind).group, plural_of_kind(kind)


def _modules(name: str) -> list[ModuleType]:
    return [module for key, module in sorted(sys.modules.items()) if key == name or key.startswith(f"{name}.")]


def _lease(manager: Manager | None, name: str) -> str:
    """Return the lease of the manager; without a manager, the lease of an operator with this name."""
    chosen = manager.leader_election if manager else True
    return chosen.rpartition("/")[2] if isinstance(chosen, str) else name if chosen else ""


def _default_name(module_name: str) -> str:
    return module_name.partition(".")[0].strip("_").replace("_", "-").lower()
