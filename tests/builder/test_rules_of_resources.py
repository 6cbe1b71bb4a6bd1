"""What the methods of a declared class add to its resource: defaults, rules, versions, subresources, warnings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pydantic
import pytest

from pilothouse.builder import APIServer, Errors, InvalidDeclaration, Json, Resource, forbidden, required
from pilothouse.testing import BlockingAPI

GROUP = "rules.example.com"
server = APIServer(group=GROUP)


@server.resource(version="v1", kind="Boat", storage_version=True)
class Boat(Resource):
    @dataclass
    class Spec:
        name: str = ""
        owner: str = ""
        approved_by: str = ""

    @dataclass
    class Status:
        log: str = ""

    def default(self) -> None:
        self.spec.name = self.spec.name or "unnamed"

    def prepare_for_create(self) -> None:
        self.spec.approved_by = ""

    def prepare_for_update(self, old: Boat) -> None:
        self.spec.owner = old.spec.owner

    def validate(self, old: Boat | None) -> Errors:
        if not self.spec.owner:
            yield required("spec.owner", "every boat is somebody's")
        if old and old.spec.name != self.spec.name:
            yield forbidden("spec.name", "renaming a boat brings bad luck")

    def warnings(self, old: Boat | None) -> Iterable[str]:
        return ["a boat without a proper name"] if self.spec.name == "unnamed" else []

    @classmethod
    def generate_name(cls, prefix: str) -> str:
        return f"{prefix}generated"


@server.resource(version="v1alpha1", kind="Boat", deprecated="")
class OldBoat(Resource):
    @dataclass
    class Spec:
        title: str = ""
        owner: str = ""

    def convert_to(self, stored: type[Boat]) -> Boat:
        return stored(metadata=self.metadata, spec=Boat.Spec(name=self.spec.title, owner=self.spec.owner))

    @classmethod
    def convert_from(cls, stored: Boat) -> OldBoat:
        return cls(metadata=stored.metadata, spec=cls.Spec(title=stored.spec.name, owner=stored.spec.owner))


@dataclass
class Approval:
    by: str
    reason: str = ""


@Boat.subresource("approve")
async def approve(boat: Boat, body: Approval) -> None:
    boat.spec.approved_by = body.by


@Boat.subresource("owner", verb="update")
def change_owner(boat: Boat, old: Boat) -> None:
    boat.spec.name, boat.status = old.spec.name, old.status


@Boat.subresource("log", verb="connect")
async def log(boat: Boat, request: Any) -> AsyncIterator[str]:
    async def lines() -> AsyncIterator[str]:
        yield f"{boat.spec.name} sets sail\n"
        yield "land ho\n"

    return lines()


@pytest.fixture(scope="module")
def api() -> Iterator[BlockingAPI]:
    with server.in_test() as api:
        yield api


BOATS, OLD_BOATS = (f"/apis/{GROUP}/{version}/namespaces/default/boats" for version in ("v1", "v1alpha1"))


def boat(called: str, version: str = "v1", **spec: Any) -> dict[str, Any]:
    return {"apiVersion": f"{GROUP}/{version}", "kind": "Boat", "metadata": {"name": called}, "spec": spec}


def test_defaults_and_preparations_are_the_authors(api: BlockingAPI) -> None:
    made = api.request("POST", BOATS, boat("a", owner="ann", approvedBy="herself"))
    assert made.json["spec"] == {"name": "unnamed", "owner": "ann"}
    assert made.headers["warning"] == '299 - "a boat without a proper name"'


def test_what_validate_yields_refuses_the_object(api: BlockingAPI) -> None:
    refused = api.request("POST", BOATS, boat("b"))
    assert refused.status == 422
    message = f'Boat.{GROUP} "b" is invalid: spec.owner: Required value: every boat is somebody\'s'
    assert refused.json["message"] == message


def test_an_update_is_validated_against_the_old_object_and_keeps_what_the_author_carries_over(
    api: BlockingAPI,
) -> None:
    api.request("POST", BOATS, boat("c", owner="ann", name="Argo"))
    merge = {"media": "application/merge-patch+json"}
    refused = api.request("PATCH", f"{BOATS}/c", {"spec": {"name": "Nautilus"}}, **merge)
    assert refused.json["details"]["causes"][0]["field"] == "spec.name"
    kept = api.request("PATCH", f"{BOATS}/c", {"spec": {"owner": "eve"}}, **merge)
    assert kept.json["spec"]["owner"] == "ann"
    assert kept.json["metadata"]["generation"] == 1


def test_names_are_generated_by_the_author(api: BlockingAPI) -> None:
    obj = boat("", owner="ann")
    obj["metadata"] = {"generateName": "x-"}
    assert api.request("POST", BOATS, obj).json["metadata"]["name"] == "x-generated"


def test_versions_show_the_same_object_each_in_its_own_words(api: BlockingAPI) -> None:
    made = api.request("POST", OLD_BOATS, boat("d", "v1alpha1", title="Argo", owner="ann"))
    assert made.json["spec"] == {"title": "Argo", "owner": "ann"}
    assert made.headers["warning"].startswith(f'299 - "{GROUP}/v1alpha1 Boat is deprecated; use {GROUP}/v1 Boat"')
    assert api.request("GET", f"{BOATS}/d").json["spec"] == {"name": "Argo", "owner": "ann"}
    listed = api.request("GET", OLD_BOATS).json["items"]
    assert [each["spec"]["title"] for each in listed if each["metadata"]["name"] == "d"] == ["Argo"]


def test_a_create_below_an_object_changes_it_as_the_function_does(api: BlockingAPI) -> None:
    api.request("POST", BOATS, boat("e", owner="ann", name="Argo"))
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Approval", "by": "bob"}
    answer = api.request("POST", f"{BOATS}/e/approve", body)
    assert (answer.status, answer.json) == (201, {**body, "metadata": {"namespace": "default"}})
    assert api.request("GET", f"{BOATS}/e").json["spec"]["approvedBy"] == "bob"


def test_the_body_of_a_create_is_read_by_its_own_schema(api: BlockingAPI) -> None:
    api.request("POST", BOATS, boat("f", owner="ann"))
    body = {"apiVersion": f"{GROUP}/v1", "kind": "Approval", "by": "bob", "colour": "red"}
    refused = api.request("POST", f"{BOATS}/f/approve?fieldValidation=Strict", body)
    assert (refused.status, 'unknown field "colour"' in refused.json["message"]) == (400, True)
    refused = api.request("POST", f"{BOATS}/f/approve", {**body, "by": 7})
    assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, "by")
    assert api.request("POST", f"{BOATS}/none/approve", body).status == 404


def test_an_update_below_an_object_follows_the_functions_rules(api: BlockingAPI) -> None:
    api.request("POST", BOATS, boat("g", owner="ann", name="Argo"))
    merge = {"media": "application/merge-patch+json"}
    changed = api.request("PATCH", f"{BOATS}/g/owner", {"spec": {"owner": "eve", "name": "Nautilus"}}, **merge)
    assert changed.json["spec"] == {"name": "Argo", "owner": "eve"}


def test_a_connect_streams_what_the_function_yields(api: BlockingAPI) -> None:
    api.request("POST", BOATS, boat("h", owner="ann", name="Argo"))
    assert api.request("GET", f"{BOATS}/h/log").body == b"Argo sets sail\nland ho\n"


def test_discovery_shows_the_subresources_with_their_verbs(api: BlockingAPI) -> None:
    shown = {each["name"]: each for each in api.request("GET", f"/apis/{GROUP}/v1").json["resources"]}
    assert (shown["boats/approve"]["kind"], shown["boats/approve"]["verbs"]) == ("Approval", ["create"])
    assert shown["boats/owner"]["verbs"] == ["get", "patch", "update"]
    assert shown["boats/log"]["verbs"] == ["get"]


def test_a_declaration_that_cannot_be_served_says_everything_that_is_wrong() -> None:
    wrong = APIServer(group="wrong.example.com")

    @wrong.resource(version="1", plural="Not Good")
    class Thing(Resource):
        rules = ("self.spec.",)

    with pytest.raises(InvalidDeclaration) as error:
        _ = wrong.kinds[0].custom_resource
    assert "Thing cannot be served" in str(error.value)
    assert "spec.names.plural" in str(error.value)
    assert "spec.versions[0].name" in str(error.value)


def test_two_versions_need_one_that_is_stored() -> None:
    unclear = APIServer(group="unclear.example.com")
    for version in ("v1", "v2"):
        unclear.resource(version=version, kind="Thing")(type("Thing", (Resource,), {}))
    with pytest.raises(InvalidDeclaration, match="exactly one version of Thing must have storage_version=True"):
        _ = unclear.kinds[0].custom_resource


def test_a_spec_may_be_a_schema_and_rules_may_be_plain_strings() -> None:
    plain = APIServer(group="plain.example.com")

    @plain.resource(version="v1")
    class Thing(Resource):
        Spec: ClassVar[Json] = {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}
        rules = ("self.spec.size < 10",)

    with plain.in_test() as api:
        things = "/apis/plain.example.com/v1/namespaces/default/things"
        thing = {"apiVersion": "plain.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {}}
        assert api.request("POST", things, thing).json["spec"] == {"size": 3}
        refused = api.request("POST", things, {**thing, "metadata": {"name": "b"}, "spec": {"size": 11}})
        assert refused.json["details"]["causes"][0]["message"] == ("Invalid value: failed rule: self.spec.size < 10")


def test_a_spec_may_be_a_pydantic_model() -> None:
    class Limits(pydantic.BaseModel):
        most: int = pydantic.Field(default=5, le=9)

    modelled = APIServer(group="models.example.com")

    @modelled.resource(version="v1", namespaced=False)
    class Thing(Resource):
        Spec = Limits

        def validate(self, old: Any) -> Errors:
            if self.spec.most == 7:
                yield forbidden("spec.most", "seven is taken")

    with modelled.in_test() as api:
        things = "/apis/models.example.com/v1/things"
        thing = {"apiVersion": "models.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {}}
        assert api.request("POST", things, thing).json["spec"] == {"most": 5}
        for most, field in ((10, "spec.most"), (7, "spec.most")):
            refused = api.request("POST", things, {**thing, "metadata": {"name": "b"}, "spec": {"most": most}})
            assert (refused.status, refused.json["details"]["causes"][0]["field"]) == (422, field)
