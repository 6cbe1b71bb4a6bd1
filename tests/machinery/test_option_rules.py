"""The options of writes are refused as upstream does."""

from __future__ import annotations

import pytest

from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.options import (
    validate_create_options,
    validate_delete_options,
    validate_patch_options,
    validate_update_options,
)

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, []),
        ({"fieldManager": "me", "dryRun": ["All", "All"], "fieldValidation": "Strict"}, []),
        ({"dryRun": ["All", "Some"]}, ['dryRun: Unsupported value: ["All","Some"]: supported values: "All"']),
        ({"dryRun": [""]}, ['dryRun: Unsupported value: [""]: supported values: "All"']),
        (
            {"fieldValidation": "Loud", "fieldManager": "m" * 129},
            [
                "fieldManager: Too long: may not be more than 128 bytes",
                'fieldValidation: Unsupported value: "Loud": supported values: "", "Ignore", "Strict", "Warn"',
            ],
        ),
    ],
)
def test_create_and_update_options_are_checked_alike(options: Json, expected: list[str]) -> None:
    assert list(map(str, validate_create_options(options))) == expected
    assert list(map(str, validate_update_options(options))) == expected


def test_apply_needs_a_manager_and_only_apply_may_force() -> None:
    assert list(map(str, validate_patch_options({}, APPLY))) == [
        "fieldManager: Required value: is required for apply patch"
    ]
    assert list(validate_patch_options({"force": True, "fieldManager": "me"}, APPLY)) == []
    assert list(map(str, validate_patch_options({"force": False}, MERGE))) == [
        "force: Forbidden: may not be specified for non-apply patch"
    ]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"propagationPolicy": "Orphan", "gracePeriodSeconds": 0}, []),
        (
            {"propagationPolicy": "Sideways"},
            [
                'propagationPolicy: Unsupported value: "Sideways": '
                'supported values: "Foreground", "Background", "Orphan", "nil"'
            ],
        ),
        (
            {"orphanDependents": False, "propagationPolicy": "Background"},
            [
                'propagationPolicy: Invalid value: "Background": '
                "orphanDependents and deletionPropagation cannot be both set"
            ],
        ),
    ],
)
def test_delete_options_that_contradict_each_other_are_refused(options: Json, expected: list[str]) -> None:
    assert list(map(str, validate_delete_options(options))) == expected
