"""The admission plugins of the built-in groups, in the order in which they run."""

from __future__ import annotations

from collections.abc import Collection

from pilothouse.apiserver.admission.interface import Plugin
from pilothouse.apiserver.admission.namespace_lifecycle import NamespaceLifecycle, NamespacePhase
from pilothouse.kube.admission.default_toleration_seconds import DefaultTolerationSeconds
from pilothouse.kube.admission.priority import Priority
from pilothouse.kube.admission.priority_classes import StoredPriorityClasses
from pilothouse.kube.admission.runtime_class import RuntimeClass
from pilothouse.kube.admission.stored_objects import StoredObjects
from pilothouse.kube.node.runtimeclasses import RUNTIME_CLASSES
from pilothouse.kube.scheduling.priorityclasses import PRIORITY_CLASSES
from pilothouse.kube.served import Registries


def admission_plugins(
    registries: Registries, namespace_phase: NamespacePhase, enabled: Collection[str]
) -> list[Plugin]:
    """Those of the plugins that are enabled, by name."""
    plugins: list[Plugin] = [
        NamespaceLifecycle(namespace_phase),
        Priority(StoredPriorityClasses(registries.open(PRIORITY_CLASSES))),
        DefaultTolerationSeconds(),
        RuntimeClass(StoredObjects(registries.open(RUNTIME_CLASSES)).get),
    ]
    return [plugin for plugin in plugins if plugin.name in enabled]
