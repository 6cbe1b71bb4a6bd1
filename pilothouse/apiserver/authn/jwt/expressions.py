"""The expressions of an issuer: about the claims of a token, and about the user that they make."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pilothouse.apiserver.authn.interface import InvalidToken
from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.cel.evaluation import BUDGET, Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import Expression, compiled_in
from pilothouse.machinery.cel.environment import Environment
from pilothouse.machinery.cel.syntax import SyntaxTree, kind_of
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.objects import Json

_CLAIMS = Environment((("claims", "map<string, dyn>"),))
_USER = Environment((("user", "kubernetes.UserInfo"),))


def compiled_on_claims(source: str, *, types: tuple[str, ...] = ()) -> Expression:
    return compiled_in(_CLAIMS, source, types=types)


def compiled_on_user(source: str) -> Expression:
    return compiled_in(_USER, source, types=("bool",))


@dataclass(frozen=True, slots=True)
class ClaimExpressions:
    """Evaluates on the claims of one token."""

    claims: Json

    async def value(self, expression: Expression) -> Any:
        """Raises InvalidToken."""
        return await _evaluated(expression, {"claims": self.claims})


async def user_fulfils(expression: Expression, user: User) -> bool:
    """Raises InvalidToken."""
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
    """Whether an expression looks at a claim by its name."""
    try:
        tree = SyntaxTree(_CLAIMS.compile(source).program)
    except Exception:  # one that does not compile is told of elsewhere
        return False
    return any(_is_selection(each, claim) for each in _parts(tree.root))


def _is_selection(expression: Any, claim: str) -> bool:
    kind = kind_of(expression)
    if kind == "select_expr":
        selected = expression.select_expr
        return bool(selected.operand.ident_expr.name == "claims" and selected.field == claim)
    if kind == "call_expr" and expression.call_expr.function == "_?._":
        operand, field = expression.call_expr.args
        return bool(operand.ident_expr.name == "claims" and field.const_expr.string_value == claim)
    return False


def _parts(expression: Any) -> Iterator[Any]:
    yield expression
    for inner in _children(expression):
        yield from _parts(inner)


def _children(expression: Any) -> Iterator[Any]:
    kind = kind_of(expression)
    if kind == "select_expr":
        yield expression.select_expr.operand
    elif kind == "call_expr":
        if expression.call_expr.HasField("target"):
            yield expression.call_expr.target
        yield from expression.call_expr.args
    elif kind == "list_expr":
        yield from expression.list_expr.elements
    elif kind == "struct_expr":
        for entry in expression.struct_expr.entries:
            yield from (entry.map_key, entry.value)
    elif kind == "comprehension_expr":
        loop = expression.comprehension_expr
        yield from (loop.iter_range, loop.accu_init, loop.loop_condition, loop.loop_step, loop.result)
