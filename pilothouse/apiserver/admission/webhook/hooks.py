"""The compiled webhooks of all configurations of a kind, sorted by configuration name and position."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pilothouse.apiserver.admission.matching import MatchCriteria
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json, name_of

if TYPE_CHECKING:
    from pilothouse.apiserver.cel.match_conditions import MatchConditions
from pilothouse.apiserver.registry.compiled import CompiledObjects
from pilothouse.apiserver.registry.store import RegistryStore

_TIMEOUT = 10


@dataclass(frozen=True, slots=True)
class AdmissionWebhook:
    uid: str
    """Unique id of the webhook; names may repeat within and between configurations."""
    name: str
    configuration: str
    client_config: Json
    criteria: MatchCriteria
    conditions: MatchConditions | None
    """None without match conditions."""
    fails_open: bool
    """Whether the write proceeds if the call fails (failurePolicy Ignore)."""
    can_dry_run: bool
    timeout: float
    review_versions: tuple[str, ...]
    """Supported AdmissionReview versions in order of preference."""
    reinvocable: bool


def webhooks_of(configuration: Json, *, origin: str = "") -> tuple[AdmissionWebhook, ...]:
    """Return the webhooks in configuration order. `origin` distinguishes static from API configurations."""
    seen: Counter[str] = Counter()
    found = []
    for webhook in configuration.get("webhooks") or ():
        name = webhook["name"]
        uid = f"{origin}{name_of(configuration)}/{name}/{seen[name]}"
        seen[name] += 1
        found.append(_webhook(uid, name_of(configuration), webhook))
    return tuple(found)


def _webhook(uid: str, configuration: str, webhook: Json) -> AdmissionWebhook:
    return AdmissionWebhook(
        uid=uid,
        name=webhook["name"],
        configuration=configuration,
        client_config=webhook["clientConfig"],
        criteria=MatchCriteria.of_webhook(webhook),
        conditions=_conditions(webhook.get("matchConditions")),
        fails_open=webhook.get("failurePolicy") == "Ignore",
        can_dry_run=webhook.get("sideEffects") in ("None", "NoneOnDryRun"),
        timeout=float(webhook.get("timeoutSeconds") or _TIMEOUT),
        review_versions=tuple(webhook.get("admissionReviewVersions") or ()),
        reinvocable=webhook.get("reinvocationPolicy") == "IfNeeded",
    )


def _conditions(conditions: Sequence[Json] | None) -> MatchConditions | None:
    if not conditions:
        return None
    from pilothouse.apiserver.cel.match_conditions import MatchConditions

    return MatchConditions.of_admission(conditions)


class WebhookSource:
    def __init__(self, configurations: RegistryStore) -> None:
        self._configurations = CompiledObjects(configurations, webhooks_of)
        self._of: Sequence[tuple[AdmissionWebhook, ...]] = ()
        self._webhooks: tuple[AdmissionWebhook, ...] = ()

    async def __call__(self) -> Sequence[AdmissionWebhook]:
        """Return the webhooks. Raises CacheNotReady."""
        compiled = await self._configurations.all()
        if compiled is not self._of:
            self._of, self._webhooks = compiled, tuple(hook for hooks in compiled for hook in hooks)
        return self._webhooks
