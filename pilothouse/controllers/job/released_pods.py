"""The pods whose finalizer was removed, until the cache shows that: they must not be counted twice."""

from __future__ import annotations

from collections.abc import Iterable


class ReleasedPods:
    _by_job: dict[str, set[str]]  # key of the job → uids; no set here is ever empty

    def __init__(self) -> None:
        self._by_job = {}

    def of(self, key: str) -> frozenset[str]:
        return frozenset(self._by_job.get(key, ()))

    def expect(self, key: str, uids: Iterable[str]) -> None:
        """The finalizers of these pods are about to be removed."""
        if added := set(uids):
            self._by_job.setdefault(key, set()).update(added)

    def observed(self, key: str, uid: str) -> None:
        """The cache shows it, or it did not come to that."""
        if (expected := self._by_job.get(key)) is not None:
            expected.discard(uid)
            if not expected:
                del self._by_job[key]

    def forget(self, key: str) -> None:
        self._by_job.pop(key, None)
