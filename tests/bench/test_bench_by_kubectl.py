"""Objects of the test bench as kubectl writes them."""

from __future__ import annotations

import pytest

from pilothouse.testing import API

pytestmark = pytest.mark.asyncio(loop_scope="module")

TAKEN = {"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}


async def test_openapi_names_only_patches_that_are_taken(api: API) -> None:
    """By a strategic merge patch kubectl would know that it may send one, and `kubectl apply` would be refused."""
    paths = (await api.request("GET", "/openapi/v3/apis/testing.pilothouse.dev/v1alpha1")).json["paths"]
    patches = [operations["patch"] for operations in paths.values() if "patch" in operations]
    assert patches
    assert all({*patch["requestBody"]["content"]} == TAKEN for patch in patches)
