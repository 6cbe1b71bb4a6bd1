"""clusterrole-aggregation-controller: copies the rules of selected roles into aggregated roles.

Rules are applied with a separate field manager, so that the author of the aggregation rule does not own them.
"""

from __future__ import annotations

from collections.abc import Iterator

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.cache.indexer import Indexer
from pilothouse.client.controller import Controller
from pilothouse.controllers.context import ControllerContext
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, labels_of, name_of
from pilothouse.machinery.selectors.labels import from_label_selector

FIELD_MANAGER = "clusterrole-aggregation-controller"
CLUSTER_ROLES = GroupVersionResource("rbac.authorization.k8s.io", "v1", "clusterroles")
_QUEUE = "ClusterRoleAggregator"
_WORKERS = 5


async def run(context: ControllerContext) -> None:
    queue, informer = context.queue(_QUEUE, str), context.informer(CLUSTER_ROLES)
    roles = context.client.for_resource(CLUSTER_ROLES)

    def enqueue() -> None:
        """Enqueue all aggregated roles: any role change may affect them, and they are few."""
        for role in informer.indexer.list():
            if role.get("aggregationRule") is not None:
                queue.add(name_of(role))

    async def sync(name: str) -> None:
        role = informer.indexer.get_by_key(name)
        if role is None or role.get("aggregationRule") is None:
            return
        rules = aggregated_rules(role, informer.indexer)
        if rules != (role.get("rules") or []):
            kind = {"apiVersion": str(CLUSTER_ROLES.group_version), "kind": "ClusterRole"}
            # Omitting `rules` removes all previously applied rules.
            applied: Json = {**kind, "metadata": {"name": name}, **({"rules": rules} if rules else {})}
            await roles.apply(applied, field_manager=FIELD_MANAGER, force=True)

    informer.add_event_handler(
        ResourceEventHandlerFuncs(
            add=lambda role: enqueue(), update=lambda old, new: enqueue(), delete=lambda role: enqueue()
        )
    )
    controller = Controller(_QUEUE, sync, caches=(informer,), workers=_WORKERS, queue=queue, clock=context.clock)
    await controller.run()


def aggregated_rules(role: Json, roles: Indexer) -> list[Json]:
    """Return the rules without duplicates, ordered by selector and role name."""
    rules: list[Json] = []
    for selected in _selected(role, roles):
        for rule in selected.get("rules") or ():
            if rule not in rules:
                rules.append(rule)
    return rules


def _selected(role: Json, roles: Indexer) -> Iterator[Json]:
    for selector in role["aggregationRule"].get("clusterRoleSelectors") or ():
        matches = from_label_selector(selector).matches
        selected = (other for other in roles.list() if matches(labels_of(other)) and name_of(other) != name_of(role))
        yield from sorted(selected, key=name_of)
