"""Node selectors and node affinity choose the nodes that upstream's do."""

from __future__ import annotations

from typing import Any

import pytest

from pilothouse.kinds.node_affinity import NodeSelector, PreferredTerms, required_node_affinity
from pilothouse.machinery.objects import Json
from pilothouse.machinery.selectors.requirement import InvalidSelector

NODE: Json = {"metadata": {"name": "one", "labels": {"zone": "a", "cores": "8"}}}


def expression(key: str, operator: str, *values: str) -> Json:
    return {"key": key, "operator": operator, "values": list(values)}


def selector(*terms: Json) -> NodeSelector:
    return NodeSelector.read({"nodeSelectorTerms": list(terms)})


def pod(required: Json | None, **spec: Any) -> Json:
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}} if required else None
    return {"spec": {"affinity": affinity, **spec}}


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        (expression("zone", "In", "a", "b"), True),
        (expression("zone", "NotIn", "a"), False),
        (expression("rack", "NotIn", "a"), True),
        (expression("zone", "Exists"), True),
        (expression("zone", "DoesNotExist"), False),
        (expression("cores", "Gt", "7"), True),
        (expression("cores", "Gt", "8"), False),
        (expression("cores", "Lt", "9"), True),
        (expression("rack", "Lt", "9"), False),
        (expression("zone", "Gt", "7"), False),
    ],
)
def test_an_expression_looks_at_labels(wanted: Json, matches: bool) -> None:
    assert selector({"matchExpressions": [wanted]}).matches(NODE) is matches


@pytest.mark.parametrize(("operator", "name", "matches"), [("In", "one", True), ("In", "two", False)])
def test_a_field_expression_looks_at_the_name(operator: str, name: str, matches: bool) -> None:
    assert selector({"matchFields": [expression("metadata.name", operator, name)]}).matches(NODE) is matches
    inverse = {"matchFields": [expression("metadata.name", "NotIn", name)]}
    assert selector(inverse).matches(NODE) is not matches


def test_a_term_needs_all_its_expressions_and_a_selector_one_of_its_terms() -> None:
    both = {"matchExpressions": [expression("zone", "In", "a"), expression("cores", "In", "9")]}
    assert not selector(both).matches(NODE)
    assert selector(both, {"matchExpressions": [expression("zone", "In", "a")]}).matches(NODE)
    assert not selector(
        {"matchExpressions": [expression("zone", "In", "a")], "matchFields": [expression("metadata.name", "In", "x")]}
    ).matches(NODE)


def test_no_term_and_an_empty_term_match_nothing() -> None:
    assert not selector().matches(NODE)
    assert not selector({}).matches(NODE)


def test_a_term_that_is_not_understood_matches_nothing_and_leaves_the_others_alone() -> None:
    broken = {"matchExpressions": [expression("zone", "Near", "a")], "matchFields": [expression("x", "In", "a", "b")]}
    terms = selector(broken, {"matchExpressions": [expression("zone", "In", "a")]})
    assert terms.matches(NODE)
    assert not selector(broken).matches(NODE)
    with pytest.raises(InvalidSelector) as refused:
        terms.check()
    assert str(refused.value) == (
        '[nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Near": supported values: "In", '
        '"NotIn", "Exists", "DoesNotExist", "Gt", "Lt", nodeSelectorTerms[0].matchFields[0].values: Invalid value: '
        '["a","b"]: must have one element]'
    )


def test_a_pod_requires_its_node_selector_and_its_affinity() -> None:
    near = {"nodeSelectorTerms": [{"matchExpressions": [expression("zone", "In", "a")]}]}
    assert required_node_affinity(pod(None)).matches(NODE)
    assert required_node_affinity(pod(near, nodeSelector={"cores": "8"})).matches(NODE)
    assert not required_node_affinity(pod(near, nodeSelector={"cores": "4"})).matches(NODE)
    assert not required_node_affinity(pod({"nodeSelectorTerms": [{}]})).matches(NODE)


def test_nodes_are_known_by_name_where_every_term_names_one() -> None:
    one, two = ({"matchFields": [expression("metadata.name", "In", name)]} for name in ("one", "two"))
    anywhere = {"matchExpressions": [expression("zone", "Exists")]}
    assert required_node_affinity(pod({"nodeSelectorTerms": [one, two]})).node_names == frozenset({"one", "two"})
    assert required_node_affinity(pod({"nodeSelectorTerms": [one, anywhere]})).node_names is None
    assert required_node_affinity(pod(None)).node_names is None


def test_preferred_terms_add_up_their_weights() -> None:
    def preferred(weight: int, *wanted: Json) -> Json:
        return {"weight": weight, "preference": {"matchExpressions": list(wanted)}}

    near, big = expression("zone", "In", "a"), expression("cores", "Gt", "4")
    terms = [preferred(2, near), preferred(5, big), preferred(9, expression("rack", "Exists")), preferred(7)]
    assert PreferredTerms.read(terms).score(NODE) == 7
    assert PreferredTerms.read([preferred(0, expression("zone", "Near"))]).score(NODE) == 0
    with pytest.raises(InvalidSelector):
        PreferredTerms.read([preferred(1, expression("zone", "Near"))])
