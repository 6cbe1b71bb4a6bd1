"""The storages of the group policy."""

from __future__ import annotations

from pilothouse.apiserver.endpoints.groups import APIGroup, APIVersion
from pilothouse.apiserver.registry.subresource import StatusStore
from pilothouse.kube.policy.poddisruptionbudgets import POD_DISRUPTION_BUDGETS, PodDisruptionBudgetStatusStrategy
from pilothouse.kube.served import Registries, served
from pilothouse.machinery.names import GroupVersion


class PolicyStorageProvider:
    def open(self, registries: Registries) -> APIGroup:
        budgets = registries.open(POD_DISRUPTION_BUDGETS)
        resources = [
            served(budgets),
            served(budgets, StatusStore(budgets, PodDisruptionBudgetStatusStrategy()), subresource="status"),
        ]
        return APIGroup("policy", [APIVersion(GroupVersion("policy", "v1"), resources)])
