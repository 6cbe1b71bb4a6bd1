"""--runtime-config: the more exact rule wins."""

from __future__ import annotations

import pytest

from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.resource_config import parse_runtime_config
from pilothouse.machinery.names import GroupVersion, GroupVersionResource


@pytest.mark.parametrize(
    ("settings", "version", "enabled"),
    [
        ({}, "apps/v1", True),
        ({}, "apps/v1beta1", False),
        ({}, "apps/v1alpha1", False),
        ({"api/beta": "true"}, "apps/v1beta1", True),
        ({"api/beta": "true"}, "apps/v1alpha1", False),
        ({"api/all": "true"}, "apps/v1alpha1", True),
        ({"api/all": "false", "api/ga": "true"}, "apps/v1", True),
        ({"api/all": "false", "api/ga": "true"}, "apps/v1beta1", False),
        ({"api/ga": "false", "apps/v1": ""}, "apps/v1", True),
        ({"api/all": "true", "apps/v1": "false"}, "apps/v1", False),
        ({"v1": "false"}, "v1", False),
        ({"api/v1": "0"}, "v1", False),
        ({"api/legacy": "true"}, "v1", True),
    ],
)
def test_a_version_is_served_when(settings: dict[str, str], version: str, enabled: bool) -> None:
    config = parse_runtime_config(settings)
    assert config.problems == ()
    assert config.version_enabled(GroupVersion.parse(version)) is enabled


def test_one_resource_can_differ_from_its_version() -> None:
    config = parse_runtime_config({"apps/v1/deployments": "false", "apps/v1beta1/statefulsets": "true"})
    assert not config.resource_enabled(GroupVersionResource("apps", "v1", "deployments"))
    assert config.resource_enabled(GroupVersionResource("apps", "v1", "daemonsets"))
    assert config.resource_enabled(GroupVersionResource("apps", "v1beta1", "statefulsets"))
    assert not config.version_enabled(GroupVersion("apps", "v1beta1"))
    assert config.any_resource_enabled(GroupVersion("apps", "v1beta1"))
    assert not config.any_resource_enabled(GroupVersion("apps", "v1beta2"))


def test_feature_gates_have_upstreams_defaults() -> None:
    gates = FeatureGates({"WatchList": False})
    assert gates.enabled("StorageVersionHash")
    assert not gates.enabled("CBORServingAndStorage")
    assert not gates.enabled("WatchList")
    with pytest.raises(KeyError):
        gates.enabled("NoSuchGate")
