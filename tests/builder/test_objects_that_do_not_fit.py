"""The author's functions and objects that do not fit the types: the client is told what is wrong with the object."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from pilothouse.builder import APIServer, Column, Errors, Pattern, Resource, Rule
from pilothouse.testing import BlockingAPI

GROUP = "ports.example.com"
server = APIServer(group=GROUP)


@server.resource(version="v1", storage_version=True)
class Pier(Resource):
    @dataclass
    class Spec:
        host: str
        port: int = 0

    def default(self) -> None:
        self.spec.host = self.spec.host.lower()


@server.resource(version="v1beta1", kind="Pier", deprecated="")
class OldPier(Resource):
    @dataclass
    class Spec:
        address: Annotated[str, Pattern("^.+:.+$")]

    columns = (Column("Address", ".spec.address"),)

    def validate(self, old: OldPier | None) -> Errors:
        assert self.spec.address
        yield from ()

    def convert_to(self, stored: type[Pier]) -> Pier:
        host, port = self.spec.address.split(":")
        return stored(spec=stored.Spec(host, int(port)))

    @classmethod
    def convert_from(cls, stored: Pier) -> OldPier:
        return cls(spec=cls.Spec(f"{stored.spec.host}:{stored.spec.port}"))


@server.resource(version="v1")
class Jetty(Resource):
    rules = tuple(Rule(f"self.spec.length != {number}") for number in range(60))

    @dataclass
    class Spec:
        length: int

    def default(self) -> None:
        self.spec.length += 0


@dataclass
class Tow:
    port: int = 0


@Pier.subresource("tow")
async def tow(pier: Pier, body: Tow) -> None:
    pier.spec.port += body.port


@OldPier.subresource("address", verb="update")
def address(pier: OldPier, old: OldPier) -> None:
    pier.spec.address = pier.spec.address.replace("!", "")


@pytest.fixture(scope="module")
def api() -> Iterator[BlockingAPI]:
    with server.in_test(controllers="-*") as api:
        yield api


def _create(api: BlockingAPI, version: str, name: str, **content: Any) -> Any:
    obj = {"apiVersion": f"{GROUP}/{version}", "kind": "Pier", "metadata": {"name": name}, **content}
    return api.request("POST", f"/apis/{GROUP}/{version}/namespaces/default/piers", obj)


REFUSED: list[tuple[str, Any, int, str]] = [
    # version   spec                    code, what is said
    ("v1", [], 422, 'spec: Invalid value: "array": spec in body must be of type object: "array"'),
    ("v1", {"host": 5}, 422, 'spec.host: Invalid value: "integer"'),
    ("v1", {}, 422, "spec.host: Required value"),
    ("v1beta1", [], 422, 'spec: Invalid value: "array": spec in body must be of type object: "array"'),
    ("v1beta1", {"address": 5}, 422, 'spec.address: Invalid value: "integer"'),
    ("v1beta1", {}, 422, "spec.address: Required value"),
    (
        "v1beta1",
        {"address": "a"},
        422,
        "spec.address in body should match '^.+:.+$'",
    ),
    ("v1beta1", {"address": "a:b"}, 400, 'Pier in version "v1beta1" cannot be handled as a Pier: invalid literal'),
]


@pytest.mark.parametrize(("version", "spec", "code", "said"), REFUSED)
def test_what_a_function_stumbles_over_is_said_of_the_object(
    api: BlockingAPI, version: str, spec: Any, code: int, said: str
) -> None:
    answer = _create(api, version, "refused", spec=spec)
    assert answer.status == code
    assert said in answer.json["message"]


def test_the_first_object_of_a_kind_with_many_rules_is_refused_for_its_types(api: BlockingAPI) -> None:
    """So many rules are compiled beside the event loop, and the author's function runs on it."""
    obj = {"apiVersion": f"{GROUP}/v1", "kind": "Jetty", "metadata": {"name": "a"}, "spec": {"length": "long"}}
    answer = api.request("POST", f"/apis/{GROUP}/v1/namespaces/default/jetties", obj)
    assert (answer.status, answer.json["details"]["causes"][0]["field"]) == (422, "spec.length")


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_a_spec_that_cannot_be_empty_must_be_there(api: BlockingAPI, version: str) -> None:
    answer = _create(api, version, "bare")
    assert (answer.status, answer.json["details"]["causes"][0]["field"]) == (422, "spec")


def test_each_version_has_its_own_columns_and_its_own_warning(api: BlockingAPI) -> None:
    created = _create(api, "v1beta1", "one", spec={"address": "Quay:80"})
    assert created.status == 201, created.json
    table = "application/json;as=Table;v=v1;g=meta.k8s.io"
    answer = api.request("GET", f"/apis/{GROUP}/v1beta1/piers", accept=table)
    assert answer.json["rows"][0]["cells"] == ["one", "Quay:80"]
    assert f"{GROUP}/v1beta1 Pier is deprecated; use {GROUP}/v1 Pier" in answer.headers["warning"]
    assert "warning" not in api.request("GET", f"/apis/{GROUP}/v1/piers", accept=table).headers


def test_the_body_of_a_subresource_fits_its_type_or_is_refused(api: BlockingAPI) -> None:
    _create(api, "v1", "towed", spec={"host": "h", "port": 1})
    path = f"/apis/{GROUP}/v1/namespaces/default/piers/towed"
    for port, code in (("x", 422), ([], 422), (4, 201)):
        answer = api.request("POST", f"{path}/tow", {"apiVersion": f"{GROUP}/v1", "kind": "Tow", "port": port})
        assert answer.status == code, answer.json
    assert api.request("GET", path).json["spec"] == {"host": "h", "port": 5}


def test_an_update_through_a_subresource_is_in_its_version_and_fits_the_schema(api: BlockingAPI) -> None:
    _create(api, "v1", "moved", spec={"host": "h", "port": 1})
    path = f"/apis/{GROUP}/v1beta1/namespaces/default/piers/moved"
    for spec, code in (({"address": 5}, 422), ([], 422), ({"address": "g:b"}, 400), ({"address": "g!:2"}, 200)):
        sent = {"apiVersion": f"{GROUP}/v1beta1", "kind": "Pier", "metadata": {"name": "moved"}, "spec": spec}
        answer = api.request("PUT", f"{path}/address", sent)
        assert answer.status == code, answer.json
    assert api.request("GET", path.replace("v1beta1", "v1")).json["spec"] == {"host": "g", "port": 2}
