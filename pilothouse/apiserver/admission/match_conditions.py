"""Match conditions of webhooks and policies: evaluation, metrics and failure policy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pilothouse.apiserver.admission import metrics
from pilothouse.apiserver.admission.versioned import VersionedAttributes, admission_variables
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

if TYPE_CHECKING:
    from pilothouse.apiserver.cel.authorization import Authorizations
    from pilothouse.apiserver.cel.match_conditions import MatchConditions


@dataclass(frozen=True, slots=True)
class Owner:
    """Owner of the conditions, for metrics: `kind` is webhook or policy, `type` is admit or validating."""

    name: str
    kind: str
    type: str
    fails_open: bool
    """Whether an evaluation error counts as no match."""


async def conditions_hold(
    conditions: MatchConditions,
    seen: VersionedAttributes,
    owner: Owner,
    authorizations: Authorizations,
    *,
    params: Json | None = None,
) -> bool:
    """Return whether all conditions hold. Raises MatchFailed on errors, unless the owner fails open."""
    # Deferred import: CEL is expensive to import for servers without expressions.
    from pilothouse.apiserver.cel.match_conditions import MatchFailed

    attributes = seen.attributes
    labels = (owner.name, owner.kind, owner.type, attributes.operation.value)
    variables = admission_variables(seen, resource=attributes.resource, params=params, authorizations=authorizations)
    start = time.perf_counter()
    try:
        holds = await conditions.matches(variables, authorizations)
    except MatchFailed:
        metrics.MATCH_CONDITION_ERRORS.inc(labels)
        if not owner.fails_open:
            raise
        holds = False
    finally:
        metrics.MATCH_CONDITION_SECONDS.observe(labels, time.perf_counter() - start)
    if not holds:
        metrics.MATCH_CONDITION_EXCLUSIONS.inc(labels)
    return holds
