"""A misspelt field is read as missing and nobody notices, so every literal key has to be a field of a published type.

The source of the built-in groups is read. A literal is a key where an object or a path is asked for it, and wherever
it is written in camelCase, as the tables of fields are.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pilothouse.kube
from pilothouse.machinery.generated import definitions

NO_FIELDS = {
    "as upstream spells these fields in the paths of its errors": (
        "attachedRequired cephFS downwarAPI initiatorname nodeSwapStatus persistentDisk persistentvolumesource rollback"
        " storageOS targetportal uID"
    ),
    "words inside messages": "imagePullSecret ipFamily outOfRange",
    "metrics in the annotations of autoscaling/v1, whose types are not published": (
        "currentAverageUtilization currentAverageValue currentValue metricName metricSelector targetAverageUtilization"
        " targetAverageValue targetValue"
    ),
    "an annotation of nodes that holds an object": "podController podSignature preferAvoidPods",
    "configuration of admission plugins": (
        "allowTTL burst cacheSize clusterDefaultNodeSelector defaultAllow defaults denyTTL exemptions imagePolicy"
        " kubeConfigFile podNodeSelectorPluginConfig qps retryBackoff runtimeClasses usernames whitelist"
    ),
    "checks of pod security and its exemptions": (
        "hostNamespaces hostPathVolumes hostPorts hostProbesAndHostLifecycle restrictedVolumes runtimeClass"
        " windowsHostProcess"
    ),
    "files of ABAC policies": "nonResourcePath",
    "options in query strings": "insecureSkipTLSVerifyBackend limitBytes sinceSeconds sinceTime stream tailLines",
    "operation ids": "getServiceAccountIssuerOpenIDConfiguration getServiceAccountIssuerOpenIDKeyset",
    "claims and headers of tokens, and key sets": (
        "aud crv exp iat iss jti kid kty nbf node pod serviceaccount sub warnafter"
    ),
    "groups of the pattern of image references": "algorithm hex tag",
    "fields of another Kubernetes version": (
        "bindMountOptions defaultUser evictionResponders healthStatus nodeAllocatableResources partitionTypeAttribute"
        " skipNodeOperations storageHealth volumeHealth"
    ),
    "aggregated discovery and range allocations, which are not published": "range responseKind",
}
"""Literals that are keys or look like them and are no published fields, by why."""

_BY_METHOD = {"get": 1, "pop": 1, "setdefault": 1, "child": None}
"""How many of a method's arguments are keys: None for all."""
_BY_FUNCTION = {"root", "part", "text", "number", "items", "carry_over"}
_KEY, _CAMEL_CASE = re.compile("[a-z][a-zA-Z0-9]*"), re.compile("[a-z]+[A-Z][a-zA-Z0-9]*")


def test_every_literal_key_is_a_field_of_a_published_type() -> None:
    fields = {field for definition in definitions().values() for field in definition.get("properties", ())}
    unknown = _literal_keys() - fields
    excused = {word for words in NO_FIELDS.values() for word in words.split()}
    assert unknown - excused == set(), "misspelt, or no field"
    assert excused - unknown == set(), "no longer in need of an excuse"


def _literal_keys() -> set[str]:
    folder = Path(pilothouse.kube.__file__).parent
    return {key for path in folder.rglob("*.py") for node in ast.walk(ast.parse(path.read_text())) for key in _of(node)}


def _of(node: ast.AST) -> Iterator[str]:
    for key in _asked_for(node):
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and _KEY.fullmatch(key.value):
            yield key.value
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and _CAMEL_CASE.fullmatch(node.value):
        yield node.value


def _asked_for(node: ast.AST) -> list[ast.expr]:
    match node:
        case ast.Subscript(slice=key):
            return [key]
        case ast.Call(func=ast.Attribute(attr=method), args=args) if method in _BY_METHOD:
            return args[: _BY_METHOD[method]]
        case ast.Call(func=ast.Name(id=function), args=args) if function in _BY_FUNCTION:
            return args
    return []
