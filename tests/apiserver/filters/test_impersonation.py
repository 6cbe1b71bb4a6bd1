"""Acting as another user: who may, in which mode, and what the other user's groups are then."""

from __future__ import annotations

import pytest
from filter_requests import make_request

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.always import AlwaysAllow
from pilothouse.apiserver.authz.interface import Answer, Attributes, Authorizer, Decision
from pilothouse.apiserver.filters.impersonation import with_impersonation
from pilothouse.apiserver.http import Request, Response
from pilothouse.machinery.errors import BadRequest, Forbidden


class Verbs:
    """Allows these verbs, and remembers what it was asked."""

    def __init__(self, *verbs: str) -> None:
        self.verbs = verbs
        self.asked: list[tuple[str, str, str]] = []

    async def authorize(self, attributes: Attributes) -> Answer:
        self.asked.append((attributes.verb, attributes.resource, attributes.name))
        return Answer(Decision.ALLOW if attributes.verb in self.verbs else Decision.NO_OPINION)


async def impersonate(authorizer: Authorizer, **headers: str) -> User:
    seen: list[User] = []

    async def handler(request: Request) -> Response:
        assert not any(name.startswith(b"impersonate-") for name, _ in request.headers)
        seen.append(request.user)
        return Response(200)

    named = {name.replace("_", "-"): value for name, value in headers.items()}
    await with_impersonation(authorizer)(handler)(make_request()(headers=named))
    return seen[0]


async def test_without_the_headers_a_request_stays_its_own_users() -> None:
    assert (await impersonate(Verbs())).name == "alice"


async def test_the_other_user_has_the_parts_that_were_asked_for_and_is_authenticated() -> None:
    user = await impersonate(AlwaysAllow(), Impersonate_User="bob", Impersonate_Group="dev", Impersonate_Uid="7")
    assert user == User("bob", "7", ("dev", "system:authenticated"))


async def test_a_service_account_comes_with_its_groups() -> None:
    user = await impersonate(AlwaysAllow(), Impersonate_User="system:serviceaccount:ns:robot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")


async def test_a_node_impersonated_in_a_constrained_mode_is_in_the_nodes_group() -> None:
    verbs = Verbs("impersonate-on:arbitrary-node:get", "impersonate:arbitrary-node")
    user = await impersonate(verbs, Impersonate_User="system:node:n1")
    assert user.groups == ("system:nodes", "system:authenticated")


async def test_the_narrow_modes_are_asked_before_the_legacy_one() -> None:
    verbs = Verbs("impersonate")
    await impersonate(verbs, Impersonate_User="bob")
    assert verbs.asked == [("impersonate-on:user-info:get", "configmaps", "a"), ("impersonate", "users", "bob")]


async def test_a_refusal_names_the_first_thing_that_was_missing() -> None:
    with pytest.raises(Forbidden) as refused:
        await impersonate(Verbs(), Impersonate_User="bob")
    assert 'User "alice" cannot impersonate-on:user-info:get resource "configmaps"' in refused.value.message


async def test_a_constrained_mode_never_gives_system_masters() -> None:
    verbs = Verbs("impersonate-on:user-info:get", "impersonate:user-info")
    with pytest.raises(Forbidden, match="system:masters"):
        await impersonate(verbs, Impersonate_User="bob", Impersonate_Group="system:masters")


async def test_parts_of_nobody_are_refused() -> None:
    with pytest.raises(BadRequest, match="without impersonating a user name"):
        await impersonate(AlwaysAllow(), Impersonate_Group="dev")


async def test_nobody_is_impersonated_whose_parts_have_control_characters() -> None:
    for headers in ({"Impersonate-Extra-a%0d%0ab": "1"}, {"Impersonate-Group": "a\tb"}):
        with pytest.raises(BadRequest, match=r"^cannot impersonate: .* contains control characters$"):
            await impersonate(AlwaysAllow(), Impersonate_User="bob", **headers)
