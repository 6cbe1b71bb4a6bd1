"""Definitions that are attacks: patterns that backtrack, rules without end, schemas that are too deep or too wide."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
import pytest
from fuzz_budget import budget
from fuzz_verdicts import bounded, check
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE

from pilothouse.client import Json
from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TEXTS = {"type": "string", "maxLength": 5000}


def definition(schema: Json, plural: str = "tries") -> Json:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": plural, "kind": plural.title()}
    spec = {"group": "fuzz.example", "names": names, "scope": "Cluster", "versions": [version]}
    meta = {"name": f"{plural}.fuzz.example"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


def ruled(rule: str, **properties: Json) -> Json:
    return {"type": "object", "x-kubernetes-validations": [{"rule": rule}], "properties": properties}


LIST: Json = {"type": "array", "items": {"type": "integer"}}
ATTACKS: dict[str, Json] = {
    "a loop in a loop in a loop": ruled("self.l.all(a, self.l.all(b, self.l.all(c, a + b + c > 0)))", l=LIST),
    "a rule on an unbounded list": ruled("self.l.all(a, self.l.exists(b, a == b))", l=LIST),
    "a very long rule": ruled(" || ".join(["self.s == 'x'"] * 20_000), s=TEXTS),
    "a very deep rule": ruled("(" * 5_000 + "true" + ")" * 5_000),
    "calls in calls": ruled("self.s" + ".lowerAscii()" * 2_000 + " == 'x'", s=TEXTS),
    "no rule at all": ruled("\0"),
    "a pattern that grows": {"type": "object", "properties": {"a": {"type": "string", "pattern": "((a{99}){99}){99}"}}},
    "a pattern without end": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(" * 50_000}}},
    "a pattern that looks behind": {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?<=a)b"}}},
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_definition_that_is_an_attack_is_refused_at_little_cost(api: API, name: str) -> None:
    with bounded(10):
        answer = await api.request("POST", f"{DEFINITIONS}?dryRun=All", definition(ATTACKS[name]))
    check(answer)
    assert answer.status in (400, 422)


@pytest.mark.parametrize("depth", [50, 500, 3000])
async def test_a_deep_schema_is_taken_or_refused(api: API, depth: int) -> None:
    schema = b'{"type":"object","properties":{"a":' * depth + b'{"type":"string"}' + b"}}" * depth
    body = orjson.dumps(definition({"here": 1})).replace(b'{"here":1}', schema)
    with bounded(10):
        check(await api.request("POST", f"{DEFINITIONS}?dryRun=All", body))


PATTERNS = ["^(a|aa)*c$", "^(a+)+$", "^(a*)*$", "(x+x+)+y", "^(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)(a|a)*c$"]


async def test_no_pattern_of_a_definition_loses_its_way(api: API) -> None:
    properties: dict[str, Any] = {f"p{n}": {"type": "string", "pattern": pattern} for n, pattern in enumerate(PATTERNS)}
    properties |= {"s": {"type": "string", "maxLength": 100}, "q": {"type": "string", "maxLength": 50}}
    schema = ruled("!self.s.matches(self.q)", **properties)
    assert (await api.request("POST", DEFINITIONS, definition(schema, "patterns"))).status == 201
    path = "/apis/fuzz.example/v1/patterns"
    async with asyncio.timeout(PATIENCE):
        while (await api.request("GET", path)).status != 200:  # noqa: ASYNC110  # the server serves it when it is established
            await asyncio.sleep(0.005)
    texts: dict[str, Any] = dict.fromkeys(properties, "a" * 60 + "!") | {"q": "(a|aa)*(a|aa)*(a|aa)*[^a!]$"}
    obj = {"apiVersion": "fuzz.example/v1", "kind": "Patterns", "metadata": {"name": "a"}, **texts}
    with bounded(3):
        answer = await api.request("POST", path, obj)
    assert answer.status == 422
    assert len(answer.json["details"]["causes"]) >= 4


RULES = st.recursive(
    st.sampled_from(
        ["self", "self.s", "self.l", "1", "'a'", "true", "null", "[1]", "{}", "oldSelf", "-1", "1.5", "b'a'"]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["==", "+", "<", "&&", "||", "in", "%", "/"]), inner).map(" ".join),
        inner.map(lambda text: f"({text}).size()"),
        inner.map(lambda text: f"{text}.all(x, x == {text})"),
        inner.map(lambda text: f"string({text}).matches('(a|aa)*')"),
        inner.map(lambda text: f"has({text})"),
        inner.map(lambda text: f"[{text}, {text}].map(y, {text})"),
        inner.map(lambda text: f"{text} ? {text} : {text}"),
    ),
    max_leaves=5,
)


@budget(60)
@given(rule=st.one_of(RULES, st.text(max_size=20)))
async def test_any_rule_is_taken_or_refused(api: API, rule: str) -> None:
    bounded_list = {**LIST, "maxItems": 5}
    with bounded(5):
        answer = await api.request(
            "POST", f"{DEFINITIONS}?dryRun=All", definition(ruled(rule, s=TEXTS, l=bounded_list))
        )
    check(answer)
    assert answer.status in (201, 400, 422)
