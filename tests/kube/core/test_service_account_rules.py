"""Service accounts name their secrets, and nothing more about them."""

from __future__ import annotations

from rules import decoded

from pilothouse.kube.core.serviceaccounts import ENFORCE_MOUNTABLE_SECRETS, SERVICE_ACCOUNTS
from pilothouse.machinery.objects import Json


def test_references_to_secrets_are_reduced_to_names() -> None:
    made = decoded(SERVICE_ACCOUNTS, {"secrets": [{"name": "s", "namespace": "elsewhere"}, {"kind": "Secret"}]})
    SERVICE_ACCOUNTS.strategy.prepare_for_create(made)
    assert made["secrets"] == [{"name": "s"}, {}]


def test_deprecated_annotation_yields_one_warning() -> None:
    annotated: Json = {"metadata": {"annotations": {ENFORCE_MOUNTABLE_SECRETS: "true"}}}
    strategy = SERVICE_ACCOUNTS.strategy
    assert len(list(strategy.warnings_on_create(annotated))) == 1
    assert len(list(strategy.warnings_on_update(annotated, {"metadata": {}}))) == 1
    assert list(strategy.warnings_on_update(annotated, annotated)) == []
