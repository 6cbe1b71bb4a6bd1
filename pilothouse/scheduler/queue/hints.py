"""Queueing hints: the events that may revoke each plugin's rejections."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from pilothouse.machinery.objects import Json
from pilothouse.scheduler.cluster_events import ClusterEvent, EventHint, Subject
from pilothouse.scheduler.queue.queued_pod import QueuedPod

logger = logging.getLogger(__name__)


class QueueingHints:
    def __init__(self, hints: Mapping[str, Iterable[EventHint]]) -> None:
        """`hints`: plugin name → event hints."""
        self._hints = {plugin: tuple(events) for plugin, events in hints.items()}
        self._concerned: dict[ClusterEvent, dict[str, list[EventHint]]] = {}

    def is_worth_trying(self, queued: QueuedPod, event: ClusterEvent, old: Json | None, new: Json | None) -> bool:
        """Return whether a plugin that rejected the pod may now accept."""
        if event.subject is Subject.ANYTHING:
            return True
        concerned = self._concerned_by(event)
        blamed = (queued.gated_by,) if queued.gated_by else queued.rejected_by
        return any(
            hint.is_worth_trying is None or _ask(hint, queued, old, new)
            for plugin in blamed
            for hint in concerned.get(plugin, ())
        )

    def concerns_anybody(self, event: ClusterEvent) -> bool:
        return event.subject is Subject.ANYTHING or bool(self._concerned_by(event))

    def _concerned_by(self, event: ClusterEvent) -> dict[str, list[EventHint]]:
        if event not in self._concerned:
            found = {plugin: [hint for hint in hints if hint.concerns(event)] for plugin, hints in self._hints.items()}
            self._concerned[event] = {plugin: hints for plugin, hints in found.items() if hints}
        return self._concerned[event]


def _ask(hint: EventHint, queued: QueuedPod, old: Json | None, new: Json | None) -> bool:
    """Call the hint's predicate. An error counts as True: a futile attempt costs less than a forgotten pod."""
    assert hint.is_worth_trying is not None
    try:
        return hint.is_worth_trying(queued.pod, old, new)
    except Exception:
        logger.exception("can not tell whether a change concerns pod %s", queued.pod.key)
        return True
