"""Mapping of claims to users, by claim names or by CEL expressions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pilothouse.apiserver.authn.interface import InvalidToken, identity
from pilothouse.apiserver.authn.jwt.settings import ClaimOrExpression, IssuerSettings
from pilothouse.apiserver.authn.user import ALL_AUTHENTICATED, User
from pilothouse.apiserver.cel.evaluation import BUDGET, Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import Expression, compiled_in
from pilothouse.machinery.cel.environment import CompilationFailed, Environment
from pilothouse.machinery.cel.front.tree import Call, Const, Ident, Node, Select, descendants
from pilothouse.machinery.cel.library.rows import parse_type
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"
_STRINGS = "expression must return a string or a list of strings"


class ClaimMapper:
    def __init__(self, settings: IssuerSettings) -> None:
        self._settings = settings
        self._username, self._groups, self._uid = map(_compiled, (settings.username, settings.groups, settings.uid))
        self._extra = [(key, compiled_on_claims(source)) for key, source in settings.extra]
        self._claim_rules = [(rule, compiled_on_claims(rule.expression)) for rule in settings.claim_rules]
        self._user_rules = [(rule, compiled_on_user(rule.expression)) for rule in settings.user_rules]

    async def user_of(self, claims: Json) -> User:
        """Build the user. Raises InvalidToken."""
        seen = ClaimExpressions(claims)
        user = identity(
            await self._name(claims, seen),
            groups=await self._groups_of(claims, seen),
            uid=await self._uid_of(claims, seen),
            extra=await self._extra_of(claims, seen),
        )
        for claim, wanted in self._settings.required_claims:
            if claim not in claims:
                raise InvalidToken(f"oidc: required claim {claim} not present in ID token")
            found = _text(claims, claim, f"parse claim {claim}")
            if found != wanted:
                raise InvalidToken(f"oidc: required claim {claim} value does not match. Got = {found}, want = {wanted}")
        for rule, expression in self._claim_rules:
            if await _value(seen, expression, "claim validation", "") is not True:
                failed = f"validation expression '{rule.expression}' failed: {rule.message}"
                raise InvalidToken(f"oidc: error evaluating claim validation expression: {failed}")
        for rule, expression in self._user_rules:
            try:
                fulfilled = await user_fulfils(expression, user)
            except InvalidToken as error:
                raise InvalidToken(f"oidc: error evaluating user info validation rule: {error}") from None
            if not fulfilled:
                failed = f"validation expression '{rule.expression}' failed: {rule.message}"
                raise InvalidToken(f"oidc: error evaluating user info validation rule: {failed}")
        settled = ALL_AUTHENTICATED in user.groups
        return user if settled else User(user.name, user.uid, (*user.groups, ALL_AUTHENTICATED), user.extra)

    async def _name(self, claims: Json, seen: ClaimExpressions) -> str:
        if self._username is not None:
            found = await _value(seen, self._username, "username claim")
            if not isinstance(found, str):
                reason = "username claim expression must return a string"
                raise InvalidToken(f"oidc: error evaluating username claim expression: {reason}")
            if not found:
                raise InvalidToken("oidc: empty username via CEL expression is not allowed")
            return found
        mapping = self._settings.username
        name = _text(claims, mapping.claim, f"parse username claims {quote(mapping.claim)}")
        if mapping.claim == "email" and claims.get("email_verified", True) is not True:
            raise InvalidToken("oidc: email not verified")
        return mapping.prefix + name

    async def _groups_of(self, claims: Json, seen: ClaimExpressions) -> list[str]:
        mapping = self._settings.groups
        if self._groups is not None:
            return _strings(await _value(seen, self._groups, "group claim"), "group claim expression")
        found = claims.get(mapping.claim) if mapping.claim else None
        if found is None:
            return []
        groups = [found] if isinstance(found, str) else found
        if not isinstance(groups, list) or not all(isinstance(group, str) for group in groups):
            raise InvalidToken(f"oidc: parse groups claim {quote(mapping.claim)}: {_STRINGS}")
        return [mapping.prefix + group for group in groups]

    async def _uid_of(self, claims: Json, seen: ClaimExpressions) -> str:
        if self._uid is None:
            claim = self._settings.uid.claim
            return _text(claims, claim, f"parse uid claim {quote(claim)}") if claim else ""
        found = await _value(seen, self._uid, "uid claim")
        if not isinstance(found, str):
            reason = "uid claim expression must return a string"
            raise InvalidToken(f"oidc: error evaluating uid claim expression: {reason}")
        return found

    async def _extra_of(self, claims: Json, seen: ClaimExpressions) -> dict[str, tuple[str, ...]]:
        extra: dict[str, tuple[str, ...]] = {}
        if isinstance(claims.get("jti"), str):
            extra[_CREDENTIAL_ID] = (f"JTI={claims['jti']}",)
        for key, expression in self._extra:
            what = f"extra claim expression: {expression.source}"
            values = _strings(await seen.value(expression), what)
            if values:
                extra[key] = tuple(values)
        return extra


def _compiled(mapping: ClaimOrExpression) -> Expression | None:
    return compiled_on_claims(mapping.expression) if mapping.expression else None


async def _value(seen: ClaimExpressions, expression: Expression, what: str, suffix: str = "") -> Any:
    try:
        return await seen.value(expression)
    except InvalidToken as error:
        raise InvalidToken(f"oidc: error evaluating {what} expression{suffix}: {error}") from None


def _text(claims: Json, claim: str, doing: str) -> str:
    if claim not in claims:
        raise InvalidToken(f"oidc: {doing}: claim not present")
    if not isinstance(claims[claim], str):
        raise InvalidToken(f"oidc: {doing}: the claim is no string")
    found: str = claims[claim]
    return found


def _strings(value: Any, what: str) -> list[str]:
    if value is None:
        return []
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
        raise InvalidToken(f"oidc: error evaluating {what}: {_STRINGS}")
    return [each for each in found if each]


_USER_TYPE = "kubernetes.UserInfo"
_USER_FIELDS = {
    "username": "string",
    "uid": "string",
    "groups": "list(string)",
    "extra": "map(string, list(string))",
}


@lru_cache(maxsize=1)
def _claims() -> Environment:
    return Environment({"claims": "map(string, dyn)"})


@lru_cache(maxsize=1)
def _user() -> Environment:
    fields = {name: parse_type(kind) for name, kind in _USER_FIELDS.items()}
    return Environment({"user": _USER_TYPE}, {_USER_TYPE: fields})


def compiled_on_claims(source: str, *, types: tuple[str, ...] = ()) -> Expression:
    return compiled_in(_claims(), source, types=types)


def compiled_on_user(source: str) -> Expression:
    return compiled_in(_user(), source, types=("bool",))


@dataclass(frozen=True, slots=True)
class ClaimExpressions:
    """Evaluates expressions on the claims of a token."""

    claims: Json

    async def value(self, expression: Expression) -> Any:
        """Evaluate the expression. Raises InvalidToken."""
        return await _evaluated(expression, {"claims": self.claims})


async def user_fulfils(expression: Expression, user: User) -> bool:
    """Return whether the expression is true for the user. Raises InvalidToken."""
    seen = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return await _evaluated(expression, {"user": seen}) is True


async def _evaluated(expression: Expression, variables: Json) -> Any:
    try:
        found = await ExpressionEvaluator(Activation(variables, {}), None, BUDGET).evaluate(expression)
    except OutOfBudget as error:
        raise InvalidToken(str(error)) from None
    if found.error:
        raise InvalidToken(found.error)
    return found.value


def selects_claim(source: str, claim: str) -> bool:
    """Return whether the expression selects the claim by name."""
    try:
        tree = _claims().compile(source).program
    except CompilationFailed:
        return False  # reported elsewhere
    return any(_is_selection(node, claim) for node in descendants(tree.root))


def _is_selection(node: Node, claim: str) -> bool:
    if type(node) is Select:
        return _is_claims(node.operand) and node.field == claim
    if type(node) is Call and node.function == "_?._":
        operand, field = node.args
        return _is_claims(operand) and type(field) is Const and field.value == claim
    return False


def _is_claims(node: Node) -> bool:
    return type(node) is Ident and node.name == "claims"
