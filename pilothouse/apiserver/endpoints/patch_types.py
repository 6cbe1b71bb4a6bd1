"""The media types of patches."""

from __future__ import annotations

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
APPLY_CBOR_PATCH = "application/apply-patch+cbor"

APPLY_PATCHES = (APPLY_PATCH, APPLY_CBOR_PATCH)
ALL_PATCHES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)
SCHEMALESS_PATCHES = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
"""Patch types of kinds without merge rules for lists."""
