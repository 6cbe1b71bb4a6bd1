"""--admission-control-config-file: what is configured of each admission plug-in, there or in files of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pilothouse.machinery.codec.yaml import parse_yaml
from pilothouse.machinery.codec.yaml_nodes import YamlError
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.objects import Json

_KIND = ("apiserver.config.k8s.io/v1", "AdmissionConfiguration")
_KINDS = (_KIND, ("apiserver.k8s.io/v1alpha1", "AdmissionConfiguration"))
_FIELDS = frozenset(("apiVersion", "kind", "plugins"))
_PLUGIN_FIELDS = frozenset(("name", "path", "configuration"))
_UNVERSIONED = {"podNodeSelectorPluginConfig": "PodNodeSelector", "imagePolicy": "ImagePolicyWebhook"}
"""Configurations from before there was a kind for them: the field by which they are known, and the plug-in."""


def admission_configurations(file: str) -> Mapping[str, Json]:
    """Return the configurations by the names of their plug-ins. Raises ValueError."""
    configuration = _read(Path(file))
    for field, plugin in _UNVERSIONED.items():
        if field in configuration and "kind" not in configuration:
            return {plugin: configuration}
    api_version, kind = configuration.get("apiVersion"), configuration.get("kind")
    if (api_version, kind) not in _KINDS:
        why = f"no kind {quote(str(kind or ''))} is registered for version {quote(str(api_version or ''))}"
        raise ValueError(f"{file}: {why}; expected {_KIND[1]} of {_KIND[0]}")
    _check_fields(configuration, _FIELDS, file)
    found: dict[str, Json] = {}
    for index, plugin in enumerate(configuration.get("plugins") or ()):
        where = f"{file}: plugins[{index}]"
        _check_fields(plugin, _PLUGIN_FIELDS, where)
        # Of several for one plug-in the first counts.
        found.setdefault(plugin.get("name") or "", _plugin(plugin, Path(file).parent, where))
    return found


def check_plugin_configuration(plugin: str, configuration: Json, kind: str, fields: Iterable[str]) -> None:
    """Raises ValueError where the configuration of a plug-in is not of its kind, or has more than its fields."""
    if (configuration.get("apiVersion"), configuration.get("kind")) != (_KIND[0], kind):
        raise ValueError(f"{plugin}: the configuration must be a {kind} of {_KIND[0]}")
    _check_fields(configuration, frozenset(("apiVersion", "kind", *fields)), plugin)


def _plugin(plugin: Json, folder: Path, where: str) -> Json:
    if plugin.get("configuration") is not None:
        if not isinstance(plugin["configuration"], dict):
            raise ValueError(f"{where}.configuration is no object")
        return dict(plugin["configuration"])
    return _read(folder / plugin["path"]) if plugin.get("path") else {}


def _check_fields(value: Any, fields: frozenset[str], where: str) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no object")
    unknown = sorted(set(value) - fields)
    if unknown:
        raise ValueError(f"{where}: strict decoding error: unknown field {quote(unknown[0])}")


def _read(file: Path) -> Json:
    try:
        parsed = parse_yaml(file.read_bytes())
    except YamlError as error:
        raise ValueError(f"{file}: {error}") from None
    except OSError as error:
        why = f"unable to read admission control configuration from {quote(str(file))} [{error.strerror}]"
        raise ValueError(why) from None
    if parsed.strict_error:
        raise ValueError(f"{file}: {parsed.strict_error}")
    if not isinstance(parsed.value, dict):
        raise ValueError(f"{file} is no object")
    return parsed.value
