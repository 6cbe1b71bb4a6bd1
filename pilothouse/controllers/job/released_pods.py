"""Pods whose finalizer removal is not in the cache yet, and which must not be counted twice."""

from __future__ import annotations

from collections.abc import Iterable


class ReleasedPods:
    _by_job: dict[str, set[str]]  # job key → uids; sets are never empty

    def __init__(self) -> None:
        self._by_job = {}

    def of(self, key: str) -> frozenset[str]:
        return frozenset(self._by_job.get(key, ()))

    def expect(self, key: str, uids: Iterable[str]) -> None:
        """Record pods whose finalizers are about to be removed."""
        if added := set(uids):
            self._by_job.setdefault(key, set()).update(added)

    def observed(self, key: str, uid: str) -> None:
        """Record that the cache shows the removal, or that the removal failed."""
        if (expected := self._by_job.get(key)) is not None:
            expected.discard(uid)
            if not expected:
                del self._by_job[key]

    def forget(self, key: str) -> None:
        self._by_job.pop(key, None)
