"""What ingresses and their classes may say."""

from __future__ import annotations

from typing import Any

import pytest
from rules import decoded, refusals, update_refusals

from pilothouse.kube.networking.ingress_classes import INGRESS_CLASSES
from pilothouse.kube.networking.ingresses import INGRESSES, IngressStatusStrategy
from pilothouse.machinery.objects import Json

SERVICE = {"service": {"name": "s", "port": {"number": 80}}}


def ingress(**spec: Any) -> Json:
    return {"spec": spec}


def with_path(**path: Any) -> Json:
    return ingress(rules=[{"http": {"paths": [{"backend": SERVICE, **path}]}}])


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        (ingress(), ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"]),
        (ingress(defaultBackend=SERVICE), []),
        (
            ingress(defaultBackend={}),
            ['spec.defaultBackend: Invalid value: "": resource or service backend is required'],
        ),
        (
            ingress(defaultBackend={**SERVICE, "resource": {"kind": "K", "name": "n"}}),
            ['spec.defaultBackend: Invalid value: "": cannot set both resource and service backends'],
        ),
        (
            ingress(defaultBackend={"resource": {"kind": "a/b", "name": ""}}),
            [
                "spec.defaultBackend.resource.kind: Invalid value: \"a/b\": may not contain '/'",
                "spec.defaultBackend.resource.name: Required value",
            ],
        ),
        (
            ingress(defaultBackend={"service": {"name": "", "port": {}}}),
            [
                "spec.defaultBackend.service.name: Required value",
                "spec.defaultBackend: Required value: port name or number is required",
            ],
        ),
        (
            ingress(defaultBackend={"service": {"name": "s", "port": {"name": "a", "number": 1}}}),
            ['spec.defaultBackend: Invalid value: "": cannot set both port name & port number'],
        ),
        (with_path(), ["spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified"]),
        (with_path(pathType="ImplementationSpecific"), []),
        (
            with_path(pathType="ImplementationSpecific", path="a//b"),
            ['spec.rules[0].http.paths[0].path: Invalid value: "a//b": must be an absolute path'],
        ),
        (
            with_path(pathType="Exact"),
            ['spec.rules[0].http.paths[0].path: Invalid value: "": must be an absolute path'],
        ),
        (
            with_path(pathType="Prefix", path="/a%2f/."),
            [
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a%2f/.\": must not contain '%2f'",
                "spec.rules[0].http.paths[0].path: Invalid value: \"/a%2f/.\": cannot end with '/.'",
            ],
        ),
        (
            with_path(pathType="Glob"),
            [
                'spec.rules[0].http.paths[0].pathType: Unsupported value: "Glob": supported values: "Exact", '
                '"ImplementationSpecific", "Prefix"'
            ],
        ),
    ],
)
def test_a_new_ingress_is_refused_for_exactly_what_is_wrong_with_it(obj: Json, errors: list[str]) -> None:
    assert refusals(INGRESSES, obj) == errors


def test_the_class_annotation_and_the_class_name_must_not_contradict_each_other() -> None:
    obj = ingress(defaultBackend=SERVICE, ingressClassName="new")
    obj["metadata"] = {"annotations": {"kubernetes.io/ingress.class": "old"}}
    why = "must match `ingressClassName` when both are specified"
    assert refusals(INGRESSES, obj) == [f'annotations.kubernetes.io/ingress.class: Invalid value: "old": {why}']
    assert update_refusals(INGRESSES, obj, obj) == []


def test_a_secret_name_that_was_stored_under_older_rules_may_stay() -> None:
    broken = ingress(defaultBackend=SERVICE, tls=[{"secretName": "Not_A_Name"}])
    assert len(refusals(INGRESSES, broken)) == 1
    assert update_refusals(INGRESSES, broken, broken) == []
    assert len(update_refusals(INGRESSES, broken, ingress(defaultBackend=SERVICE))) == 1


def test_rules_of_a_wildcard_host_that_were_stored_under_older_rules_may_stay() -> None:
    rule: Json = {"host": "*.foo.com", "http": {"paths": [{"path": "/"}]}}
    broken = ingress(rules=[rule])
    assert len(refusals(INGRESSES, broken)) == 1
    assert update_refusals(INGRESSES, broken, broken) == []


def test_a_new_spec_is_a_new_generation_and_new_labels_are_none() -> None:
    old = decoded(INGRESSES, ingress(defaultBackend=SERVICE))
    INGRESSES.strategy.prepare_for_create(old)
    labelled = decoded(INGRESSES, {**ingress(defaultBackend=SERVICE), "metadata": {"labels": {"a": "b"}}})
    labelled["metadata"]["generation"] = 1
    INGRESSES.strategy.prepare_for_update(labelled, old)
    changed = decoded(INGRESSES, ingress(defaultBackend=SERVICE, ingressClassName="c"))
    INGRESSES.strategy.prepare_for_update(changed, old)
    assert (labelled["metadata"]["generation"], changed["metadata"]["generation"]) == (1, 2)


def test_the_status_takes_addresses_and_host_names_and_nothing_else() -> None:
    strategy = IngressStatusStrategy()
    old = decoded(INGRESSES, ingress(defaultBackend=SERVICE))
    old["metadata"]["resourceVersion"] = "1"
    new = {**old, "status": {"loadBalancer": {"ingress": [{"ip": "01.2.3.4"}, {"hostname": "1.2.3.4"}]}}}
    assert list(map(str, strategy.validate_update(new, old))) == [
        'status.loadBalancer.ingress[0].ip: Invalid value: "01.2.3.4": must not have leading 0s',
        'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
    ]
    assert next(map(str, strategy.validate_update(new, new))).startswith("status.loadBalancer.ingress[1]")
    assert list(strategy.warnings_on_update(new, new)) == [
        'status.loadBalancer.ingress[0]: non-standard IP address "01.2.3.4" is invalid: use "1.2.3.4"'
    ]


@pytest.mark.parametrize(
    ("hosts", "shown"),
    [([], "*"), (["a"], "a"), (["a", "b", "c"], "a,b,c"), (["a", "b", "c", "d", "e"], "a,b,c + 2 more...")],
)
def test_a_table_shows_three_hosts(hosts: list[str], shown: str) -> None:
    obj = ingress(rules=[{"host": host} for host in hosts])
    column = next(each for each in INGRESSES.columns if each.name == "Hosts")
    assert column.cell(decoded(INGRESSES, obj)) == shown


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        ({"controller": "a.io/b"}, []),
        ({}, ["spec.controller: Required value"]),
        ({"controller": "a.io/ b"}, ["spec.controller: Invalid value"]),
        ({"controller": "a.io/" + "b" * 250}, ["spec.controller: Too long: may not be more than 250 bytes"]),
        (
            {"controller": "a.io/b", "parameters": {"kind": "K", "name": "n", "namespace": "x"}},
            ["spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"],
        ),
        (
            {"controller": "a.io/b", "parameters": {"kind": "K", "name": "n", "scope": "Namespace", "namespace": "X"}},
            ["spec.parameters.namespace: Invalid value"],
        ),
    ],
)
def test_a_class_names_its_controller_and_its_parameters(spec: Json, errors: list[str]) -> None:
    found = refusals(INGRESS_CLASSES, {"spec": spec})
    assert [error[: len(wanted)] for error, wanted in zip(found, errors, strict=True)] == errors


def test_the_controller_of_a_class_never_changes() -> None:
    found = update_refusals(INGRESS_CLASSES, {"spec": {"controller": "a.io/c"}}, {"spec": {"controller": "a.io/b"}})
    assert found == ['spec.controller: Invalid value: "a.io/c": field is immutable']


def test_a_table_says_which_class_is_the_default_one() -> None:
    obj = {"metadata": {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}, "spec": {}}
    assert INGRESS_CLASSES.columns[0].cell(decoded(INGRESS_CLASSES, obj)) == "x (default)"
