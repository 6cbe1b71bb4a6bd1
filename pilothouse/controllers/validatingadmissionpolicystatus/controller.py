"""validatingadmissionpolicy-status-controller: type checks each generation of a policy, and writes the warnings."""

from __future__ import annotations

from pilothouse.client.cache.handlers import ResourceEventHandlerFuncs
from pilothouse.client.controller import Controller, Requeue
from pilothouse.client.workqueue.rate_limiting import RateLimitingQueue
from pilothouse.controllers.context import ControllerContext
from pilothouse.controllers.validatingadmissionpolicystatus.type_checker import TypeChecker
from pilothouse.machinery.errors import NotFound
from pilothouse.machinery.names import GroupVersionResource
from pilothouse.machinery.objects import Json, metadata, name_of, number

NAME = "validatingadmissionpolicy-status"
POLICIES = GroupVersionResource("admissionregistration.k8s.io", "v1", "validatingadmissionpolicies")
_WORKERS = 5


async def run(context: ControllerContext) -> None:
    queue: RateLimitingQueue[str] = RateLimitingQueue(NAME, registry=context.registry, clock=context.clock)
    informer = context.informer(POLICIES)
    handler = ResourceEventHandlerFuncs(
        add=lambda policy: queue.add(name_of(policy)), update=lambda old, new: queue.add(name_of(new))
    )
    informer.add_event_handler(handler)
    checker, policies = TypeChecker(context.client), context.client.for_resource(POLICIES)

    async def sync(name: str) -> Requeue | None:
        policy = informer.indexer.get_by_key(name)
        if policy is None or not _is_due(policy):
            return None
        try:
            await policies.apply(await _checked(checker, policy), field_manager=NAME, force=True, subresource="status")
        except NotFound:
            return None
        return None

    await Controller(NAME, sync, caches=(informer,), workers=_WORKERS, queue=queue, clock=context.clock).run()


def _is_due(policy: Json) -> bool:
    observed: int = number(policy, "status", "observedGeneration")
    return bool((metadata(policy).get("generation") or 0) > observed)


async def _checked(checker: TypeChecker, policy: Json) -> Json:
    """Return the policy with the status to apply."""
    warnings = await checker.check(policy)
    return {
        "apiVersion": str(POLICIES.group_version),
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name_of(policy)},
        "status": {
            "observedGeneration": metadata(policy)["generation"],
            "typeChecking": {"expressionWarnings": warnings} if warnings else {},
        },
    }
