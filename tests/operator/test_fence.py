"""The fence against a model of a server, a lagging cache, broken watches and relists."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from pilothouse.client import Json
from pilothouse.operator.fence import EXPIRY, Fence, version_number


class SteppedClock:
    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    wall = now

    def call_later(self, seconds: float, callback: object) -> object:
        raise NotImplementedError

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


class FencedCache(RuleBasedStateMachine):
    """One object on a server; its history is a list of states, of which the cache has seen a prefix."""

    def __init__(self) -> None:
        super().__init__()
        self.revision = 1
        self.uids = 0
        self.history: list[tuple[int, Json | None]] = [(1, None)]
        self.cached_at = 1
        self.ours = 0
        self.clock = SteppedClock()
        self.fence = Fence(lambda: str(self.cached_at), clock=self.clock)  # type: ignore[arg-type]

    @property
    def server(self) -> Json | None:
        return self.history[-1][1]

    def state_at(self, revision: int) -> Json | None:
        return next(obj for at, obj in reversed(self.history) if at <= revision)

    def write(self) -> Json:
        self.revision += 1
        if self.server is None:
            self.uids += 1
        meta = {"name": "a", "uid": str(self.uids), "resourceVersion": str(self.revision)}
        self.history.append((self.revision, {"metadata": meta}))
        return {"metadata": meta}

    @rule()
    def we_write(self) -> None:
        self.fence.written(self.write())
        self.ours = self.revision

    @rule()
    def others_write(self) -> None:
        self.write()

    @precondition(lambda self: self.server is not None)
    @rule(by_us=st.booleans())
    def delete(self, by_us: bool) -> None:
        gone = self.server
        assert gone is not None
        self.revision += 1
        self.history.append((self.revision, None))
        if by_us:
            self.fence.deleted(gone)
            self.ours = self.revision

    @rule(share=st.floats(0, 1))
    def the_cache_follows(self, share: float) -> None:
        """One event or a relist: the cache reaches any later state, and misses those between."""
        self.cached_at += round((self.revision - self.cached_at) * share)

    @invariant()
    def readers_see_our_writes(self) -> None:
        """The visible state is one of the server's, at least as new as our last write and as the cache."""
        seen = self.fence.visible("a", self.state_at(self.cached_at))
        candidates = [obj for at, obj in self.history if at >= min(self.ours, self.revision)]
        candidates.append(self.state_at(max(self.cached_at, self.ours)))
        assert seen in candidates

    @invariant()
    def the_fence_ends_with_the_cache(self) -> None:
        if self.cached_at == self.revision:
            assert self.fence.visible("a", self.state_at(self.cached_at)) == self.server
            assert len(self.fence) == 0


FencedCache.TestCase.settings = settings(max_examples=150, stateful_step_count=25, deadline=None)
TestFencedCache = FencedCache.TestCase


def test_a_restored_store_with_older_versions_ends_the_fence() -> None:
    clock = SteppedClock()
    fence = Fence(lambda: "5", clock=clock)  # type: ignore[arg-type]
    fence.written({"metadata": {"name": "a", "uid": "1", "resourceVersion": "100"}})
    restored = {"metadata": {"name": "a", "uid": "1", "resourceVersion": "5"}}
    assert fence.visible("a", restored) != restored
    clock.time += EXPIRY + 1
    assert fence.visible("a", restored) == restored


def test_a_version_without_a_number_is_the_oldest() -> None:
    assert [version_number(text) for text in ("", "abc", "12")] == [0, 0, 12]
