"""The autoRegisterController, cell by cell: what it sends to the API, the first time and once it has synced."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import orjson
import pytest
from patience import PATIENCE

from pilothouse.aggregator.api_services_to_register import APIServicePriority, make_api_service
from pilothouse.aggregator.autoregister import AUTO_REGISTER_MANAGED_LABEL, AutoRegisterController
from pilothouse.apiserver.http import Request, Response
from pilothouse.apiserver.serving.asgi import AsgiApp
from pilothouse.client.rest.connect import loopback
from pilothouse.machinery.errors import Forbidden
from pilothouse.machinery.names import GroupVersion
from pilothouse.machinery.objects import Json, name_of

GROUP_VERSION = GroupVersion("example.com", "v1")
NAME = "v1.example.com"
COLLECTION = "/apis/apiregistration.k8s.io/v1/apiservices"
OTHER = APIServicePriority(1, 1)
WANTED = APIServicePriority(1000, 100)

# rows: how it is; columns: A. not wanted, B. wanted on start, C. wanted always
TABLE = {
    "1. lookup error": ("error", "error", "error"),
    "2. not found": ("-", "create once", "create"),
    "3. no sync": ("-", "-", "-"),
    "4. sync on start, not present at start": ("-", "-", "-"),
    "5. sync on start, present at start": ("delete once", "update once", "update once"),
    "6. sync always": ("delete", "update once", "update"),
}
CELLS = [
    pytest.param(row, column, wanted, id=f"{row[0]}{'ABC'[column]}")
    for row, cells in TABLE.items()
    for column, wanted in enumerate(cells)
]


def current(label: str = "", priority: APIServicePriority = OTHER) -> Json:
    made = make_api_service(GROUP_VERSION, priority)
    labels = {AUTO_REGISTER_MANAGED_LABEL: label} if label else {}
    made["metadata"] |= {"uid": "u1", "resourceVersion": "7", "labels": labels}
    return made


@dataclass
class Known:
    """The APIServices that there are, as the controller is to see them."""

    api_services: dict[str, Json] = field(default_factory=dict)
    error: Exception | None = None

    def get(self, name: str) -> Json | None:
        if self.error:
            raise self.error
        return self.api_services.get(name)

    def all(self) -> list[Json]:
        return list(self.api_services.values())

    def listen(self, changed: Callable[[list[Json]], None]) -> None: ...

    async def wait_synced(self) -> None: ...


class Api:
    """Answers every request with the same status, and remembers it."""

    def __init__(self, status: int = 200, reason: str = "") -> None:
        self.requests: list[tuple[str, str, Json]] = []
        self._status = status
        self._reason = reason
        self.client = loopback(AsgiApp(self))

    async def __call__(self, request: Request) -> Response:
        self.requests.append((request.method, request.path, orjson.loads(await request.read_body(1 << 20))))
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "reason": self._reason, "code": self._status}
        return Response(self._status, orjson.dumps(body), [(b"content-type", b"application/json")])


async def controller_at(row: str, column: int, api: Api) -> AutoRegisterController:
    """A controller that has started with one APIService in the state of the row, wanted as the column says."""
    known = Known()
    controller = AutoRegisterController(known, api.client)
    if row[0] in "56":
        known.api_services[NAME] = current("onstart" if row[0] == "5" else "true")
    await controller.wait_for_start()
    if row[0] in "34":
        known.api_services[NAME] = current("onstart" if row[0] == "4" else "")
    known.error = RuntimeError("lookup") if row[0] == "1" else None
    wanted = make_api_service(GROUP_VERSION, WANTED)
    if column == 1:
        controller.add_api_service_to_sync_on_start(wanted)
    elif column == 2:
        controller.add_api_service_to_sync(wanted)
    return controller


def sent(api: Api) -> str:
    """The one request that was made, in the words of the table."""
    match api.requests:
        case []:
            return "-"
        case [("POST", path, body)]:
            assert (path, name_of(body), body["spec"]["groupPriorityMinimum"]) == (COLLECTION, NAME, 1000)
            return "create"
        case [("PUT", path, body)]:
            assert path == f"{COLLECTION}/{NAME}"
            assert (body["metadata"]["resourceVersion"], body["spec"]["groupPriorityMinimum"]) == ("7", 1000)
            return "update"
        case [("DELETE", path, body)]:
            assert (path, body["preconditions"]) == (f"{COLLECTION}/{NAME}", {"uid": "u1"})
            return "delete"
    raise AssertionError(api.requests)


@pytest.mark.parametrize(("row", "column", "wanted"), CELLS)
async def test_each_cell_of_the_table_is_followed(row: str, column: int, wanted: str) -> None:
    api = Api()
    controller = await controller_at(row, column, api)
    if wanted == "error":
        with pytest.raises(RuntimeError, match="lookup"):
            await controller.check_api_service(NAME)
        assert sent(api) == "-"
        return
    act, _, once = wanted.partition(" ")
    await controller.check_api_service(NAME)
    assert sent(api) == act
    api.requests.clear()
    await controller.check_api_service(NAME)
    assert sent(api) == ("-" if once else act)


@pytest.mark.parametrize(
    ("row", "column", "status", "reason"),
    [
        ("2. not found", 2, 409, "AlreadyExists"),
        ("6. sync always", 0, 409, "Conflict"),
        ("6. sync always", 0, 404, "NotFound"),
        ("6. sync always", 2, 409, "Conflict"),
        ("6. sync always", 2, 404, "NotFound"),
    ],
)
async def test_what_changed_in_the_meantime_is_no_failure(row: str, column: int, status: int, reason: str) -> None:
    api = Api(status, reason)
    controller = await controller_at(row, column, api)
    await controller.check_api_service(NAME)
    assert sent(api) != "-"


@pytest.mark.parametrize("row", ["2. not found", "5. sync on start, present at start"])
async def test_what_failed_is_done_once_more_even_if_it_is_to_be_done_once(row: str) -> None:
    api = Api(403, "Forbidden")
    controller = await controller_at(row, 1, api)
    for _ in range(2):
        with pytest.raises(Forbidden):
            await controller.check_api_service(NAME)
    assert len(api.requests) == 2


async def test_what_is_as_it_is_wanted_is_not_written() -> None:
    api, known = Api(), Known({NAME: current("true", WANTED)})
    controller = AutoRegisterController(known, api.client)
    await controller.wait_for_start()
    controller.add_api_service_to_sync(make_api_service(GROUP_VERSION, WANTED))
    await controller.check_api_service(NAME)
    assert api.requests == []


async def test_what_is_added_is_labelled_and_the_callers_object_stays_as_it_was() -> None:
    api: Any = Api()
    controller = AutoRegisterController(Known(), api.client)
    wanted = make_api_service(GROUP_VERSION, WANTED)
    controller.add_api_service_to_sync_on_start(wanted)
    await controller.check_api_service(NAME)
    assert wanted == make_api_service(GROUP_VERSION, WANTED)
    ((_, _, body),) = api.requests
    assert body["metadata"]["labels"] == {"kube-aggregator.kubernetes.io/automanaged": "onstart"}


async def test_a_run_without_definitions_says_so_and_names_what_failed(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    failed = asyncio.Event()

    class Refusing(Api):
        async def __call__(self, request: Request) -> Response:
            response = await super().__call__(request)
            if len(self.requests) > 1:
                failed.set()
            return response

    api = Refusing(403, "Forbidden")
    controller = AutoRegisterController(Known(), api.client)
    controller.add_api_service_to_sync(make_api_service(GROUP_VERSION, WANTED))
    run = asyncio.create_task(controller.run())
    async with asyncio.timeout(PATIENCE):
        await failed.wait()
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    messages = [record.getMessage() for record in caplog.records if record.name.endswith("autoregister")]
    assert messages[:2] == [
        "CRD API not enabled, starting APIService registration without waiting for initial CRD sync",
        "Starting autoregister controller",
    ]
    assert messages[2].startswith(f"{NAME} failed with : ")
    assert messages[-1] == "Shutting down autoregister controller"
