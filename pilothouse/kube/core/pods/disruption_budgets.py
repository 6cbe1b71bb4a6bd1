"""PodDisruptionBudgets in evictions: decide on a disruption, and count the disruption."""

from __future__ import annotations

from pilothouse.apiserver.registry.errors import map_storage_errors
from pilothouse.apiserver.registry.own_access import OwnAccess
from pilothouse.apiserver.storage.errors import RevisionConflict
from pilothouse.machinery import version_rules
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.errors import Forbidden, NotFound
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupResource
from pilothouse.machinery.objects import Json, labels_of, metadata, name_of, namespace_of
from pilothouse.machinery.selectors.labels import from_label_selector
from pilothouse.machinery.selectors.requirement import InvalidSelector
from pilothouse.machinery.server_errors import Timeout, TooManyRequests
from pilothouse.machinery.times import now

MAX_DISRUPTED_PODS = 2000
"""Maximum evictions that the disruption controller has not yet observed. More mean a lagging controller."""

_ATTEMPTS = 20
_RETRY_AFTER = 10
_BUDGET = GroupResource("policy", "poddisruptionbudget")
_CAUSE = "DisruptionBudget"
_ALLOWED = "DisruptionAllowed"
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."


@dataclass(frozen=True, slots=True)
class StoredBudgets:
    statuses: OwnAccess
    """Writes the status of budgets."""

    async def of(self, pod: Json) -> list[Json]:
        """Return the budgets with a selector that matches the pod."""
        registry = self.statuses.registry
        with map_storage_errors(registry.resource.group_resource):
            page = await registry.list_newest(namespace_of(pod))
        return [budget for budget in (stored.parse() for stored in page.objects) if _guards(budget, pod)]

    async def spend(self, budget: Json, pod_name: str, *, dry_run: bool) -> None:
        """Count one disruption.

        Raises TooManyRequests or Forbidden if the budget is exhausted, Timeout after too many conflicts.
        """
        namespace, name = namespace_of(budget), name_of(budget)
        registry = self.statuses.registry
        for _ in range(_ATTEMPTS):
            resource = registry.resource.group_resource
            with map_storage_errors(resource, name):
                stored = await registry.newest(namespace, name)
            if stored is None:
                raise NotFound.of(resource, name)
            spent = stored.parse()
            check_disruption_allowed(spent)
            if dry_run:
                return
            status = spent["status"]
            status["disruptionsAllowed"] -= 1
            if status["disruptionsAllowed"] == 0:
                condition: Json = {"type": _ALLOWED, "status": "False", "reason": "InsufficientPods", "message": ""}
                if status.get("observedGeneration"):
                    condition["observedGeneration"] = status["observedGeneration"]
                conditions = status.setdefault("conditions", [])
                before = next((condition for condition in conditions if condition.get("type") == _ALLOWED), None)
                condition["lastTransitionTime"] = now()
                if before is None:
                    conditions.append(condition)
                else:
                    if before.get("status") == "False":
                        condition["lastTransitionTime"] = before.get("lastTransitionTime")
                    before.clear()
                    before.update(condition)
            # The controller does not count disrupted pods as available.
            status.setdefault("disruptedPods", {})[pod_name] = now()
            try:
                await self.statuses.replace(stored, spent)
            except RevisionConflict:
                continue
            return
        reason = f"couldn't update PodDisruptionBudget {quote(name)} due to conflicts"
        raise Timeout(f"Timeout: {reason}", details={"retryAfterSeconds": _RETRY_AFTER})


def still_being_processed(name: str) -> TooManyRequests:
    message = f"The disruption budget {name} is still being processed by the server."
    return _too_many_requests(message, retry_after=_RETRY_AFTER)


def check_disruption_allowed(budget: Json) -> None:
    status, name = budget.get("status") or {}, name_of(budget)
    if (status.get("observedGeneration") or 0) < (metadata(budget).get("generation") or 0):
        raise still_being_processed(name)
    allowed = status.get("disruptionsAllowed") or 0
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative", "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or ()) > MAX_DISRUPTED_PODS:
        reason = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise _forbidden(name, reason, "too many pending evictions not confirmed by PDB controller")
    if allowed == 0:
        raise _too_many_requests(_refusal(name, status))


def _guards(budget: Json, pod: Json) -> bool:
    try:
        selector = from_label_selector((budget.get("spec") or {}).get("selector"))
    except InvalidSelector:
        return False
    return selector.matches(labels_of(pod))


def _refusal(name: str, status: Json) -> str:
    desired, current = status.get("desiredHealthy") or 0, status.get("currentHealthy") or 0
    conditions = status.get("conditions") or ()
    condition: Json = next((condition for condition in conditions if condition.get("type") == _ALLOWED), {})
    reason, message = condition.get("reason") or "", condition.get("message") or ""
    explained = condition.get("status") == "False" and bool(message)
    start = f"The disruption budget {name}"
    # The counts of a failed sync are unreliable.
    if explained and reason == "SyncFailed":
        return f"{start} does not allow evicting pods currently because it failed sync: {message}"
    if current <= desired:
        return f"{start} needs {desired} healthy pods and has {current} currently"
    if explained:
        return f"{start} does not allow evicting pods currently ({reason}): {message}"
    return f"{start} does not allow evicting pods currently"


def _forbidden(name: str, reason: str, cause: str) -> Forbidden:
    error = Forbidden.of(_BUDGET, name, reason)
    if version_rules.holds("EvictionCauses"):
        message = f"The disruption budget {name} does not allow evicting pods currently: {cause}"
        error.details = (error.details or {}) | {"causes": [{"reason": _CAUSE, "message": message}]}
    return error


def _too_many_requests(message: str, *, retry_after: int = 0) -> TooManyRequests:
    error = TooManyRequests.of(_REFUSED, retry_after)
    error.details = (error.details or {}) | {"causes": [{"reason": _CAUSE, "message": message}]}
    return error
