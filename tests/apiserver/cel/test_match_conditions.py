"""Match conditions on what a request looks like, with an authorizer that has to be waited for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pilothouse.apiserver.authn.user import User
from pilothouse.apiserver.authz.interface import Answer, Attributes, Decision
from pilothouse.apiserver.cel.authorization import Authorizations
from pilothouse.apiserver.cel.evaluation import Activation, ExpressionEvaluator, OutOfBudget
from pilothouse.apiserver.cel.expression import compiled
from pilothouse.apiserver.cel.match_conditions import MatchConditions, MatchFailed
from pilothouse.machinery.cel.admission import AdmissionCompiler, Declarations

AMY = User("amy", groups=("dev",))


class SlowAuthorizer:
    """Allows to read, after a while; falls over at secrets."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    async def authorize(self, attributes: Attributes) -> Answer:
        await asyncio.sleep(0)
        self.asked.append(attributes)
        if attributes.resource == "secrets":
            raise RuntimeError("out of order")
        return Answer(Decision.ALLOW if attributes.verb == "get" else Decision.NO_OPINION, f"because {attributes.verb}")


def conditions(*expressions: str) -> MatchConditions:
    named = [{"name": f"c{index}", "expression": each} for index, each in enumerate(expressions)]
    return MatchConditions.of_admission(named)


def variables(authorizations: Authorizations | None = None) -> dict[str, Any]:
    values: dict[str, Any] = {"object": {"a": 1}, "oldObject": None, "request": {}, "namespaceObject": None}
    if authorizations is not None:
        values["authorizer"] = authorizations.value
        values["authorizer.requestResource"] = authorizations.for_resource(
            group="apps", resource="deployments", subresource="", namespace="x", name="web"
        )
    return values


async def test_no_conditions_match_everything() -> None:
    assert await conditions().matches(variables())


async def test_all_conditions_must_be_true() -> None:
    assert await conditions("object.a == 1", "true").matches(variables())
    assert await conditions("object.a == 1", "object.a == 2").failed_condition(variables()) == "c1"


async def test_a_false_condition_decides_even_when_others_fail() -> None:
    assert not await conditions("object.b == 1", "object.a == 2").matches(variables())


async def test_a_failure_beside_true_conditions_fails_the_match_and_says_why() -> None:
    with pytest.raises(MatchFailed) as failed:
        await conditions("object.b == 1", "true", "object.c == 2").matches(variables())
    assert str(failed.value) == (
        "[expression 'object.b == 1' resulted in error: no such key: b, "
        "expression 'object.c == 2' resulted in error: no such key: c]"
    )


async def test_the_authorizer_is_waited_for_and_asked_each_question_once() -> None:
    authorizer = SlowAuthorizer()
    authorizations = Authorizations(authorizer, AMY)
    check = "authorizer.group('').resource('pods').namespace('x').check('get').allowed()"
    assert await conditions(check, f"{check} && true").matches(variables(authorizations), authorizations)
    [asked] = authorizer.asked
    assert asked == Attributes(AMY, "get", is_resource=True, version="*", resource="pods", namespace="x")


@pytest.mark.parametrize(
    "expression",
    [
        "!authorizer.path('/healthz').check('post').allowed()",
        "authorizer.path('/healthz').check('post').reason() == 'because post'",
        "authorizer.group('').resource('secrets').check('get').errored()",
        "authorizer.group('').resource('secrets').check('get').error() == 'out of order'",
        "authorizer.serviceAccount('kube-system', 'x').group('').resource('pods').check('get').allowed()",
        "authorizer.requestResource.check('get').allowed()",
        "authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c').check('get').allowed()",
    ],
)
async def test_the_authorizer_answers_expressions(expression: str) -> None:
    authorizations = Authorizations(SlowAuthorizer(), AMY)
    assert await conditions(expression).matches(variables(authorizations), authorizations)


async def test_a_service_account_is_asked_about_under_its_own_name_and_groups() -> None:
    authorizer = SlowAuthorizer()
    authorizations = Authorizations(authorizer, AMY)
    await conditions("authorizer.serviceAccount('ns', 'x').path('/a').check('get').allowed()").matches(
        variables(authorizations), authorizations
    )
    groups = ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")
    assert authorizer.asked[0].user == User("system:serviceaccount:ns:x", groups=groups)


async def test_a_long_evaluation_leaves_the_event_loop_free() -> None:
    numbers = list(range(300))
    long = conditions("object.all(x, object.all(y, x + y >= 0))")
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    assert await long.matches({"object": numbers})
    counting.cancel()
    assert turns > 3


async def test_variables_are_evaluated_once_and_only_when_asked_for() -> None:
    compiler = AdmissionCompiler(composed=True)
    declared = {
        name: compiled(compiler, source, Declarations())
        for name, source in (("good", "object.a + 1"), ("bad", "object.b"))
    }
    for name in declared:
        compiler.declare_variable(name, declared[name].source, Declarations())
    evaluator = ExpressionEvaluator(Activation(variables(), declared), None, 100)
    sum_of_two = compiled(compiler, "variables.good + variables.good", Declarations())
    assert (await evaluator.evaluate(sum_of_two)).value == 4
    cost_of_first = 100 - evaluator.budget
    assert (await evaluator.evaluate(sum_of_two)).value == 4
    assert 100 - evaluator.budget < 2 * cost_of_first
    failed = await evaluator.evaluate(compiled(compiler, "variables.bad == 1", Declarations()))
    assert failed.error == (
        "expression 'variables.bad == 1' resulted in error: "
        'composited variable "bad" fails to evaluate: no such key: b'
    )


async def test_a_budget_ends() -> None:
    expression = compiled(AdmissionCompiler(), "object.a == 1", Declarations())
    evaluator = ExpressionEvaluator(Activation(variables(), {}), None, 5)
    await evaluator.evaluate(expression)
    with pytest.raises(OutOfBudget):
        await evaluator.evaluate(expression)
