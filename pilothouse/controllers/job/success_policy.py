"""successPolicy: rules under which an indexed job succeeds before all indexes have succeeded."""

from __future__ import annotations

from pilothouse.controllers.job.indexes import Indexes, parse_indexes
from pilothouse.machinery.objects import Json, items


def match_success(job: Json, succeeded: Indexes) -> str | None:
    """Return the message of the first satisfied rule; None without a match."""
    rules = items(job["spec"], "successPolicy", "rules")
    for number, rule in enumerate(rules) if succeeded else ():
        if _is_met(rule, succeeded, job["spec"]["completions"]):
            return f"Matched rules at index {number}"
    return None


def _is_met(rule: Json, succeeded: Indexes, completions: int) -> bool:
    wanted, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    if wanted is None:
        return count is not None and len(succeeded) >= count
    required = parse_indexes(wanted, completions)
    if not required:
        return False
    met = len(required & succeeded)
    return met == len(required) or (count is not None and met >= count)
