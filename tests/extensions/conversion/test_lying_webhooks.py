"""What a webhook answers is checked, and what it may not change is restored."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from conversion_webhook import Converter, widgets
from custom_resources import widget
from webhook_server import FixedResolver, WebhookServer, webhook_server

from pilothouse.apiserver.storage.errors import Undecodable
from pilothouse.apiserver.webhook.client import WebhookClients
from pilothouse.extensions.conversion.converter import WebhookConverter

Response = dict[str, Any]
V2 = "example.com/v2"
FOR_ONE = "conversion webhook for example.com/v1, Kind=Widget"


@pytest.fixture
def answers() -> Converter:
    return Converter()


@pytest.fixture
async def hook(answers: Converter) -> AsyncIterator[WebhookServer]:
    async with webhook_server(answers) as server:
        yield server


@pytest.fixture
async def clients() -> AsyncIterator[WebhookClients]:
    made = WebhookClients(FixedResolver())
    yield made
    await made.close()


def stored(name: str = "a", **metadata: Any) -> dict[str, Any]:
    obj = widget(name, spec={"host": "h", "port": 1})
    obj["metadata"] |= {"namespace": "default", "uid": f"uid-{name}", "generation": 3, **metadata}
    return obj


def first(change: Callable[[Response], Any]) -> Callable[[Response], Any]:
    """Spoils the first object of an answer."""
    return lambda response: change(response["convertedObjects"][0])


def meta(**changes: Any) -> Callable[[Response], Any]:
    return first(lambda obj: obj["metadata"].update(changes))


def result(**said: str) -> Callable[[Response], Any]:
    return lambda response: response.update(result=said)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (result(status="Failure", message="sorry"), "failed: sorry"),
        (result(), "failed: response.result.status was '', not 'Success'"),
        (lambda response: response.update(convertedObjects=[]), "returned 0 objects, expected 1"),
        (lambda response: response["convertedObjects"].append({}), "returned 2 objects, expected 1"),
        (
            first(lambda obj: obj.update(apiVersion="example.com/v1")),
            "returned invalid object at index 0: invalid groupVersion "
            "(expected example.com/v2, received example.com/v1)",
        ),
        (
            first(lambda obj: obj.update(kind="Gadget")),
            "returned invalid object at index 0: invalid kind (expected Widget, received Gadget)",
        ),
        (meta(name="b"), "returned invalid object: must have the same name: a != b"),
        (meta(namespace="b"), "returned invalid object: must have the same namespace: default != b"),
        (meta(uid="b"), "returned invalid object: must have the same UID: uid-a != b"),
        (
            first(lambda obj: obj.pop("metadata")),
            "returned invalid object: must have the same name: a != ",
        ),
        (
            meta(labels=["x"]),
            "returned invalid metadata: invalid metadata.labels of type []interface {} in converted object",
        ),
        (
            meta(annotations={"x": 1}),
            "returned invalid metadata: metadata.annotations[x] must be a string, but is int64 in converted object",
        ),
        (
            meta(labels={"x": "?"}),
            'returned invalid metadata: metadata.labels: Invalid value: "?": a valid label must be an empty string or '
            "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
            "character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
            "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
        ),
    ],
)
async def test_an_answer_that_breaks_a_rule_is_refused(
    hook: WebhookServer, answers: Converter, clients: WebhookClients, spoil: Callable[[Response], Any], problem: str
) -> None:
    answers.spoil = spoil
    with pytest.raises(Undecodable) as found:
        await WebhookConverter(widgets(hook.by_url()), clients).convert([stored()], V2)
    assert str(found.value) == f"{FOR_ONE} {problem}"


async def test_an_answer_to_another_question_is_refused(
    hook: WebhookServer, answers: Converter, clients: WebhookClients
) -> None:
    converter = WebhookConverter(widgets(hook.by_url()), clients)
    answers.spoil = lambda response: response.update(uid="other")
    with pytest.raises(Undecodable) as found:
        await converter.convert([stored()], V2)
    asked = answers.reviews[0]["request"]["uid"]
    assert str(found.value) == f'{FOR_ONE} failed: expected response.uid="{asked}", got "other"'
    old = WebhookConverter(widgets(hook.by_url(), reviews=("v1beta1",)), clients)
    assert len(await old.convert([stored()], V2)) == 1


async def test_an_answer_of_another_type_is_refused(hook: WebhookServer, clients: WebhookClients) -> None:
    async def other(request: web.Request) -> web.StreamResponse:
        return web.json_response({"apiVersion": "v1", "kind": "Pod"})

    hook.answer = other
    with pytest.raises(Undecodable) as found:
        await WebhookConverter(widgets(hook.by_url()), clients).convert([stored()], V2)
    expected = "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /v1, Kind=Pod"
    assert str(found.value) == f"{FOR_ONE} failed: {expected}"


async def test_error_names_the_index_of_the_faulty_object(
    hook: WebhookServer, answers: Converter, clients: WebhookClients
) -> None:
    answers.spoil = lambda response: response["convertedObjects"].reverse()
    with pytest.raises(Undecodable) as found:
        await WebhookConverter(widgets(hook.by_url()), clients).convert([stored("a"), stored("b")], V2)
    assert (
        str(found.value) == f"{FOR_ONE} returned invalid converted object at index 0: must have the same name: a != b"
    )


async def test_only_labels_and_annotations_of_the_metadata_change(
    hook: WebhookServer, answers: Converter, clients: WebhookClients
) -> None:
    answers.spoil = meta(labels={"new": "x"}, annotations=None, generation=99, finalizers=["x/y"], ownerReferences=[{}])
    before = stored(labels={"old": "y"}, annotations={"a": "b"})
    (found,) = await WebhookConverter(widgets(hook.by_url()), clients).convert([before], V2)
    kept = {key: value for key, value in before["metadata"].items() if key != "annotations"}
    assert found["metadata"] == kept | {"labels": {"new": "x"}}


async def test_a_slow_webhook_is_given_up_in_time(hook: WebhookServer, clients: WebhookClients) -> None:
    async def never(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    hook.answer = never
    with pytest.raises(Undecodable) as found:
        await WebhookConverter(widgets(hook.by_url()), clients, timeout=0.05).convert([stored()], V2)
    assert str(found.value).endswith('/convert?timeout=1s": context deadline exceeded')


async def test_a_long_list_goes_in_parts(hook: WebhookServer, answers: Converter, clients: WebhookClients) -> None:
    objects = [stored(f"w{number}") for number in range(1001)]
    found = await WebhookConverter(widgets(hook.by_url()), clients).convert(objects, V2)
    assert answers.sizes == [500, 500, 1]
    assert [obj["metadata"] for obj in found] == [obj["metadata"] for obj in objects]


async def test_an_object_of_a_version_that_went_is_not_sent(
    hook: WebhookServer, answers: Converter, clients: WebhookClients
) -> None:
    with pytest.raises(Undecodable) as found:
        await WebhookConverter(widgets(hook.by_url()), clients).convert(
            [stored() | {"apiVersion": "example.com/v0"}], V2
        )
    assert str(found.value) == "request to convert CR from an invalid group/version: example.com/v0"
    assert answers.reviews == []
