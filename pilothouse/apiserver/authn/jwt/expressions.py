"""CEL expressions of an issuer on claims and on the mapped user."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.cel.evaluation import BUDGET, Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import Expression, compiled_in
from pilothouse.machinery.cel.environment import CompilationFailed, Environment
from pilothouse.machinery.cel.front.tree import Call, Const, Ident, Node, Select, descendants
from pilothouse.machinery.cel.library.rows import parse_type
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

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
