"""Nobody is let in whose name, groups, UID or extras could end a header and begin another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pilothouse.apiserver.authn.interface import InvalidIdentity, InvalidToken, identity
from pilothouse.apiserver.authn.jwt.claims import ClaimMapper
from pilothouse.apiserver.authn.jwt.settings import ClaimOrExpression, IssuerSettings
from pilothouse.apiserver.authn.request_header import STANDARD
from pilothouse.apiserver.authn.tokens import read_token_file
from pilothouse.apiserver.authn.webhook_tokens import WebhookTokens
from pilothouse.kube.serviceaccount.validator import PRIVATE, user_of
from pilothouse.machinery.objects import Json

EVIL = "bob\r\nX-Remote-Group: system:masters"


@pytest.mark.parametrize("control", ["\r\n", "\n", "\r", "\0", "\t", "\x1f", "\x7f"])
@pytest.mark.parametrize(
    "where", [{"uid": "a{}b"}, {"groups": ("ok", "a{}b")}, {"extra": {"a{}b": ()}}, {"extra": {"k": ("a{}b",)}}]
)
def test_no_part_of_an_identity_has_control_characters(where: dict[str, Any], control: str) -> None:
    placed = _placed(where, control)
    with pytest.raises(InvalidIdentity, match="contains control characters"):
        identity("bob", **placed)
    with pytest.raises(InvalidIdentity, match="the user name contains control characters"):
        identity(f"bob{control}")


def _placed(value: Any, control: str) -> Any:
    if isinstance(value, str):
        return value.format(control)
    if isinstance(value, dict):
        return {_placed(key, control): _placed(each, control) for key, each in value.items()}
    return tuple(_placed(each, control) for each in value)


def test_names_may_have_spaces_and_any_letters() -> None:
    user = identity("Amélie  Müller 王", groups=["a b"], extra={"acme.com/x": ["1", "2"]})
    assert (user.name, user.groups, user.extra) == ("Amélie  Müller 王", ("a b",), {"acme.com/x": ("1", "2")})


def test_a_token_file_with_such_a_user_is_refused_at_the_start(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text(f'good,amy,1\nbad,"{EVIL}",2\n', newline="")
    with pytest.raises(ValueError, match=r"tokens\.csv:2: the user name contains control characters"):
        read_token_file(file)


async def test_a_webhook_cannot_name_such_a_user() -> None:
    class Webhook:
        async def review(self, review: Json) -> Json:
            return {"status": {"authenticated": True, "user": {"username": "bob", "groups": [EVIL]}}}

    with pytest.raises(InvalidToken, match="a group contains control characters"):
        await WebhookTokens(Webhook()).authenticate_token("token")


async def test_the_claims_of_an_issuer_cannot_name_such_a_user() -> None:
    mapper = ClaimMapper(
        IssuerSettings("https://issuer", ("us",), username=ClaimOrExpression("sub"), groups=ClaimOrExpression("groups"))
    )
    assert (await mapper.user_of({"sub": "bob"})).name == "bob"
    for claims in ({"sub": EVIL}, {"sub": "bob", "groups": [EVIL]}):
        with pytest.raises(InvalidToken, match="contains control characters"):
            await mapper.user_of(claims)


def test_a_service_account_token_cannot_name_such_a_user() -> None:
    claims = {"jti": EVIL, PRIVATE: {"namespace": "default", "serviceaccount": {"name": "robot", "uid": "1"}}}
    with pytest.raises(InvalidToken, match="an extra contains control characters"):
        user_of(claims)


def test_the_keys_of_extras_cannot_smuggle_them_in_escaped() -> None:
    with pytest.raises(InvalidIdentity):
        STANDARD.user([(b"x-remote-user", b"bob"), (b"x-remote-extra-a%0d%0ab", b"1")])
