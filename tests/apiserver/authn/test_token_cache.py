"""What is remembered of tokens, and for how long."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pilothouse.apiserver.authn.interface import InvalidToken, TokenIdentity
from pilothouse.apiserver.authn.token_cache import CachedTokens
from pilothouse.apiserver.authn.user import User


class Counting:
    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self.go.set()

    async def authenticate_token(self, token: str, audiences: Sequence[str] | None = None) -> TokenIdentity | None:
        self.asked.append(token)
        self.begun.set()
        await self.go.wait()
        if token == "wrong":
            raise InvalidToken("wrong")
        return TokenIdentity(User("jane"), tuple(audiences or ())) if token == "good" else None


async def test_a_token_is_asked_about_once_for_each_audience() -> None:
    counting = Counting()
    cached = CachedTokens(counting, success_ttl=60, failure_ttl=60)
    for _ in range(2):
        assert await cached.authenticate_token("good") == TokenIdentity(User("jane"))
        assert await cached.authenticate_token("good", ["a"]) == TokenIdentity(User("jane"), ("a",))
        assert await cached.authenticate_token("bad") is None
    assert counting.asked == ["good", "good", "bad"]


async def test_what_was_wrong_is_remembered_only_if_asked_for() -> None:
    for errors, times in ((False, 2), (True, 1)):
        counting = Counting()
        cached = CachedTokens(counting, success_ttl=60, failure_ttl=60, errors=errors)
        for _ in range(2):
            with pytest.raises(InvalidToken, match="wrong"):
                await cached.authenticate_token("wrong")
        assert len(counting.asked) == times


async def test_those_who_ask_together_share_one_answer_even_if_the_first_goes_away() -> None:
    counting = Counting()
    counting.go.clear()
    cached = CachedTokens(counting, success_ttl=0, failure_ttl=0)
    first, second = (asyncio.create_task(cached.authenticate_token("good")) for _ in range(2))
    await counting.begun.wait()
    first.cancel()
    counting.go.set()
    assert (await second) is not None
    assert counting.asked == ["good"]
    await cached.authenticate_token("good")
    assert len(counting.asked) == 2, "nothing is remembered without a time"
