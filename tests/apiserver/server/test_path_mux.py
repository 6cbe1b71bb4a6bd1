"""The path mux: precedence, registration at run time, listing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pilothouse.apiserver.http import Handler, Request, Response, text
from pilothouse.apiserver.server.mux import PathRecorderMux


def saying(word: str) -> Handler:
    async def handler(request: Request) -> Response:
        return text(200, word)

    return handler


async def no_body(limit: int) -> bytes:
    return b""


async def ask(mux: PathRecorderMux, path: str) -> str:
    answer = await mux(Request("GET", path, "", [], no_body))
    assert isinstance(answer.body, bytes)
    return answer.body.decode()


@pytest.fixture
def mux() -> PathRecorderMux:
    return PathRecorderMux("test", saying("not found"))


async def test_an_exact_path_wins_over_every_prefix(mux: PathRecorderMux) -> None:
    mux.handle_prefix("/apis/", saying("prefix"))
    mux.handle("/apis/apps", saying("exact"))
    assert await ask(mux, "/apis/apps") == "exact"
    assert await ask(mux, "/apis/apps/") == "prefix"


async def test_an_exact_path_does_not_match_what_is_under_it(mux: PathRecorderMux) -> None:
    mux.handle("/version", saying("version"))
    assert await ask(mux, "/version/") == "not found"
    assert await ask(mux, "/versions") == "not found"


async def test_the_longest_prefix_wins(mux: PathRecorderMux) -> None:
    mux.handle_prefix("/apis/", saying("short"))
    mux.handle_prefix("/apis/apps/v1/", saying("long"))
    assert await ask(mux, "/apis/apps/v1/deployments") == "long"
    assert await ask(mux, "/apis/apps/v2/deployments") == "short"
    assert await ask(mux, "/apis") == "not found"


async def test_the_prefix_slash_matches_everything(mux: PathRecorderMux) -> None:
    mux.handle_prefix("/", saying("all"))
    assert await ask(mux, "/anything/at/all") == "all"


async def test_an_unregistered_path_falls_through_again(mux: PathRecorderMux) -> None:
    mux.handle("/a", saying("a"))
    mux.handle_prefix("/b/", saying("b"))
    mux.unregister("/a")
    mux.unregister("/b/")
    mux.unregister("/never-there")
    assert await ask(mux, "/a") == await ask(mux, "/b/c") == "not found"
    assert mux.listed_paths() == []


async def test_a_path_can_be_registered_again_after_it_was_unregistered(mux: PathRecorderMux) -> None:
    mux.handle("/a", saying("first"))
    mux.unregister("/a")
    mux.handle("/a", saying("second"))
    assert await ask(mux, "/a") == "second"


def test_registering_a_path_twice_is_refused(mux: PathRecorderMux) -> None:
    mux.handle("/a", saying("a"))
    with pytest.raises(ValueError, match='test: "/a" is already registered'):
        mux.handle("/a", saying("a"))


def test_a_prefix_must_end_in_a_slash(mux: PathRecorderMux) -> None:
    with pytest.raises(ValueError, match='"/a" must end in a trailing slash'):
        mux.handle_prefix("/a", saying("a"))


def test_only_listed_paths_are_listed_and_they_are_sorted(mux: PathRecorderMux) -> None:
    mux.handle("/b", saying("b"))
    mux.handle("/hidden", saying("h"), listed=False)
    mux.handle_prefix("/a/", saying("a"))
    assert mux.listed_paths() == ["/a/", "/b"]


words = st.text(alphabet="ab/", max_size=6)


@settings(max_examples=100)
@given(prefixes=st.sets(words.map(lambda word: f"/{word}/"), max_size=6), path=words.map(lambda word: f"/{word}"))
def test_the_prefix_found_is_the_longest_that_the_path_starts_with(prefixes: set[str], path: str) -> None:
    mux = PathRecorderMux("test", saying("not found"))
    handlers = {prefix: saying(prefix) for prefix in prefixes}
    for prefix, handler in handlers.items():
        mux.handle_prefix(prefix, handler)
    matching = max((prefix for prefix in prefixes if path.startswith(prefix)), key=len, default=None)
    assert mux.find(path) is (handlers[matching] if matching else mux.not_found)
