"""podFailurePolicy: rules that fail the job or index, count the failure, or ignore it."""

from __future__ import annotations

from collections.abc import Iterable

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of, namespace_of


@dataclass(frozen=True, slots=True)
class FailureMatch:
    """Action of the first matching rule; empty without a match."""

    action: str = ""
    message: str = ""
    """Failure message of the job, for action FailJob."""

    @property
    def counts(self) -> bool:
        """Return whether the failure counts towards the back-off limits."""
        return self.action != "Ignore"


NO_MATCH = FailureMatch()


def match_failure(job: Json, pod: Json) -> FailureMatch:
    """Return the policy's match for a failed pod."""
    policy = job["spec"].get("podFailurePolicy") or {}
    for number, rule in enumerate(policy.get("rules") or ()):
        if (why := _why(rule, pod)) is not None:
            action = rule["action"]
            told = f"{why} matching {action} rule at index {number}" if action == "FailJob" else ""
            return FailureMatch(action, told)
    return NO_MATCH


def count_failures(job: Json, pods: Iterable[Json]) -> int:
    return sum(match_failure(job, pod).counts for pod in pods)


def _why(rule: Json, pod: Json) -> str | None:
    status, where = pod.get("status") or {}, f"{namespace_of(pod)}/{name_of(pod)}"
    if (codes := rule.get("onExitCodes")) is not None:
        containers = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
        found = next((each for each in containers if _matches(each, codes)), None)
        if found is None:
            return None
        return f"Container {found['name']} for pod {where} failed with exit code {_exit_code(found)}"
    patterns = rule.get("onPodConditions") or ()
    wanted = {(each["type"], each.get("status")) for each in patterns}
    condition = next(
        (each for each in status.get("conditions") or () if (each["type"], each["status"]) in wanted), None
    )
    return None if condition is None else f"Pod {where} has condition {condition['type']}"


def _matches(container: Json, codes: Json) -> bool:
    """Return whether a failed container matches the exit code rule; running or successful containers never match."""
    code = _exit_code(container)
    if not code or codes.get("containerName") not in (None, container["name"]):
        return False
    listed = code in (codes.get("values") or ())
    return listed if codes["operator"] == "In" else not listed and codes["operator"] == "NotIn"


def _exit_code(container: Json) -> int:
    code: int = ((container.get("state") or {}).get("terminated") or {}).get("exitCode") or 0
    return code
