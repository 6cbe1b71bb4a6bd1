"""What a CustomResourceDefinition may say outside of its schemas."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from custom_resources import definition, version

from pilothouse.extensions.customresourcedefinitions.strategy import DefinitionStatusStrategy, DefinitionStrategy
from pilothouse.machinery.objects import Json

STRATEGY = DefinitionStrategy()


def prepared(obj: Json) -> Json:
    obj = deepcopy(obj)
    obj.setdefault("status", {})
    STRATEGY.default(obj)
    STRATEGY.prepare_for_create(obj)
    return obj


def errors(obj: Json) -> list[str]:
    return [str(error) for error in STRATEGY.validate(prepared(obj))]


def test_names_and_conversion_are_filled_in() -> None:
    spec = prepared(definition())["spec"]
    assert spec["names"] == {"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"}
    assert spec["conversion"] == {"strategy": "None"}


def test_new_definition_status_lists_only_the_storage_version() -> None:
    obj = definition() | {"status": {"conditions": [{"type": "Established", "status": "True"}]}}
    assert prepared(obj)["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }


def test_a_good_definition_has_no_errors() -> None:
    assert errors(definition()) == []


SCALE = {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}
COLUMN = {"name": "Size", "type": "integer", "jsonPath": ".spec.size"}
LABEL = "a DNS-1035 label must consist of"


@pytest.mark.parametrize(
    ("said", "field", "words"),
    [
        ({"group": "nodots"}, "spec.group", "should be a domain with at least one dot"),
        ({"scope": "Global"}, "spec.scope", 'supported values: "Cluster", "Namespaced"'),
        ({"scope": ""}, "spec.scope", "Required value"),
        ({"names": {"plural": "widgets", "kind": "a b"}}, "spec.names.kind", "may have mixed case"),
        ({"names": {"plural": "widgets", "kind": "W", "shortNames": ["A"]}}, "spec.names.shortNames[0]", LABEL),
        ({"names": {"plural": "widgets", "kind": "W", "listKind": "W"}}, "spec.names.listKind", "may not be the same"),
        ({"versions": [version("V1")]}, "spec.versions[0].name", LABEL),
        ({"versions": [version(storage=False)]}, "spec.versions", "exactly one version marked as storage version"),
        ({"versions": [version(), version()]}, "spec.versions", "must contain unique version names"),
        ({"conversion": {"strategy": "Webhook"}}, "spec.conversion.webhookClientConfig", "required when strategy"),
        ({"conversion": {"strategy": "Magic"}}, "spec.conversion.strategy", "Unsupported value"),
        ({"preserveUnknownFields": True}, "spec.preserveUnknownFields", "cannot set to true"),
        (
            {"versions": [version(subresources={"scale": SCALE | {"specReplicasPath": ".x"}})]},
            "spec.subresources.scale.specReplicasPath",
            "should be a json path under .spec",
        ),
        (
            {"versions": [version(additionalPrinterColumns=[COLUMN | {"type": "int"}])]},
            "spec.additionalPrinterColumns[0].type",
            "must be one of boolean,date,integer,number,string",
        ),
        (
            {"versions": [version(selectableFields=[{"jsonPath": ".spec"}])]},
            "spec.selectableFields[0].jsonPath",
            "must point to a field of type string, boolean or integer",
        ),
        (
            {"versions": [version(deprecationWarning="gone soon")]},
            "spec.versions[0].deprecationWarning",
            "can only be set for deprecated versions",
        ),
    ],
)
def test_a_bad_part_is_refused(said: dict[str, Any], field: str, words: str) -> None:
    found = errors(definition(**said) if "versions" not in said else definition(*said["versions"]))
    assert any(error.startswith(f"{field}: ") and words in error for error in found), found


def test_a_definition_is_named_after_its_plural_and_group() -> None:
    obj = definition()
    obj["metadata"]["name"] = "other.example.com"
    assert 'must be spec.names.plural+"."+spec.group' in errors(obj)[0]


@pytest.mark.parametrize(
    ("annotation", "refused"),
    [
        ("", True),
        ("maybe", True),
        ("unapproved, an experiment", False),
        ("https://a/b", False),
        ("https:b", True),
        ("//a/b", True),
        ("a/b", True),
    ],
)
def test_groups_of_the_community_need_an_approval(annotation: str, refused: bool) -> None:
    obj = definition(group="tools.k8s.io")
    obj["metadata"] = {"name": "widgets.tools.k8s.io", "annotations": {"api-approved.kubernetes.io": annotation}}
    assert bool(errors(obj)) is refused


def established(obj: Json) -> Json:
    out = prepared(obj)
    out["metadata"] |= {
        "generation": 1,
        "resourceVersion": "1",
        "uid": "u",
        "creationTimestamp": "2024-01-01T00:00:00Z",
    }
    out["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    return out


def test_kind_and_scope_are_fixed_once_a_definition_is_established() -> None:
    old = established(definition())
    new = deepcopy(old)
    new["spec"]["scope"] = "Cluster"
    new["spec"]["names"]["kind"] = "Gizmo"
    found = [str(error) for error in STRATEGY.validate_update(new, old)]
    assert 'spec.scope: Invalid value: "Cluster": field is immutable' in found
    assert 'spec.names.kind: Invalid value: "Gizmo": field is immutable' in found


def test_a_version_that_may_be_stored_must_stay() -> None:
    old = established(definition(version("v1beta1"), version("v1", storage=False)))
    new = deepcopy(old)
    new["spec"]["versions"] = [version("v1")]
    STRATEGY.prepare_for_update(new, old)
    assert new["status"]["storedVersions"] == ["v1beta1", "v1"]
    assert new["metadata"]["generation"] == 2
    (error,) = STRATEGY.validate_update(new, old)
    assert error.field == "status.storedVersions[0]"
    assert "was previously a storage version" in error.detail


def test_every_version_that_wants_to_be_stored_must_be_among_the_stored_ones() -> None:
    for second in ("v1", "v2"):
        found = errors(definition(version(), version(second)))
        why = f'status.storedVersions: Invalid value: ["v1"]: must have the storage version {second}'
        assert why in found


def test_the_status_can_be_written_alone() -> None:
    old = established(definition())
    new = deepcopy(old)
    new["spec"]["scope"], new["status"]["storedVersions"] = "Cluster", ["v1", "v9"]
    DefinitionStatusStrategy().prepare_for_update(new, old)
    assert (new["spec"]["scope"], new["status"]["storedVersions"]) == ("Namespaced", ["v1", "v9"])


def test_new_unrecognized_formats_are_warned_about() -> None:
    def with_format(name: str) -> Json:
        return prepared(
            definition(version(schema={"type": "object", "properties": {"a": {"type": "string", "format": name}}}))
        )

    assert list(STRATEGY.warnings_on_create(with_format("emial"))) == ['unrecognized format "emial"']
    assert list(STRATEGY.warnings_on_create(with_format("email"))) == []
    assert list(STRATEGY.warnings_on_update(with_format("emial"), with_format("emial"))) == []
