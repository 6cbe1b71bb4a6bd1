"""What a test wants of its server: from the configuration, the command line and markers, outermost first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pilothouse.machinery.dataclass import dataclass

KUBECONFIG = "pilothouse_kubeconfig"
MARKER = (
    "pilothouse(crds, manifests, nodes, controllers, flags, webhooks): what the server of the test has. crds and"
    " manifests are lists of paths or objects; lists and flags add to those of the class, the module and the"
    " configuration."
)
_OPTIONS = {
    "crds": ("paths", "append", "A file or folder with CustomResourceDefinitions that every server has"),
    "manifests": ("paths", "append", "A file or folder with objects that every server has"),
    "nodes": ("string", "store", "How many simulated nodes there are"),
    "controllers": ("string", "store", "Which controllers run, as kube-controller-manager's --controllers"),
    "flags": ("linelist", "append", "name=value: a flag of `pilothouse serve`"),
    "webhooks": ("string", "store", "host:port to which webhook configurations are pointed; port 0 is a free one"),
}

Source: TypeAlias = "Path | Mapping[str, Any]"


@dataclass(frozen=True)
class Settings:
    """All that a server is made of. Tests with equal settings share a server."""

    crds: tuple[Source, ...] = ()
    manifests: tuple[Source, ...] = ()
    nodes: int = 0
    controllers: tuple[str, ...] = ()
    flags: Mapping[str, Any] | None = None
    webhooks: tuple[str, int] | None = None

    @property
    def key(self) -> str:
        said = [self.crds, self.manifests, self.nodes, self.controllers, self.flags, self.webhooks]
        return json.dumps(said, default=str, sort_keys=True)

    @property
    def server_flags(self) -> dict[str, Any]:
        """The flags of the server, as keywords."""
        known: dict[str, Any] = {"simulated_nodes": self.nodes} if self.nodes else {}
        if self.controllers:
            known["controllers"] = self.controllers
        return known | {name.replace("-", "_"): value for name, value in (self.flags or {}).items()}

    def with_more(self, said: Mapping[str, Any], folders: tuple[Path, ...]) -> Settings:
        """Return these with what somebody further inside says: lists and flags add up, the rest replaces.

        Relative paths are looked for in the folders, in order. Raises ValueError for what nobody knows, and
        FileNotFoundError.
        """
        if unknown := sorted(set(said) - set(_OPTIONS)):
            raise ValueError(f"unknown option {', '.join(unknown)}; there are {', '.join(_OPTIONS)}")
        given = {name: value for name, value in said.items() if value is not None}
        for name in ("crds", "manifests"):
            if name in given:
                found = tuple(_source(name, each, folders) for each in _listed(given[name]))
                given[name] = (*getattr(self, name), *found)
        if "controllers" in given:
            given["controllers"] = _controllers(given["controllers"])
        if "flags" in given:
            given["flags"] = {**(self.flags or {}), **given["flags"]}
        return replace(self, **given)


def add_options(parser: pytest.Parser) -> None:
    """Add the options to the command line and to the configuration: --pilothouse-crds is pilothouse_crds."""
    group = parser.getgroup("pilothouse", "a Kubernetes API server for tests")
    for name, (kind, action, text) in _OPTIONS.items():
        flag = f"--pilothouse-{name}"
        group.addoption(flag, dest=f"pilothouse_{name}", action=action, default=None, help=f"{text}.")
        parser.addini(f"pilothouse_{name}", f"{text}.", type=kind, default=None)  # type: ignore[arg-type]
    text = "Run the tests against the cluster of this kubeconfig, and skip those that only Pilothouse can run."
    group.addoption("--pilothouse-kubeconfig", dest=KUBECONFIG, default=None, metavar="FILE", help=text)


def settings_of_session(config: pytest.Config) -> Settings:
    """Return what the configuration and the command line say."""
    settings = Settings()
    places = ((config.getini, config.rootpath), (config.getoption, config.invocation_params.dir))
    for read, folder in places:
        said = {name: read(f"pilothouse_{name}") or None for name in _OPTIONS}
        settings = _checked(settings, _parsed(said), (folder,))
    return settings


def settings_of_item(item: pytest.Item) -> Settings:
    """Return what the test's markers say, from the outermost to its own, on top of what the session says."""
    settings = settings_of_session(item.config)
    for mark in reversed(list(item.iter_markers("pilothouse"))):
        if mark.args:
            pytest.fail("pytest.mark.pilothouse takes keywords only", pytrace=False)
        settings = _checked(settings, mark.kwargs, (item.path.parent, item.config.rootpath))
    return settings


def _checked(settings: Settings, said: Mapping[str, Any], folders: tuple[Path, ...]) -> Settings:
    try:
        return settings.with_more(said, folders)
    except (ValueError, FileNotFoundError) as error:
        problem = str(error)
    pytest.fail(f"pilothouse: {problem}", pytrace=False)


def _parsed(said: dict[str, Any]) -> dict[str, Any]:
    """Return texts as what they stand for."""
    if said["nodes"] is not None:
        said["nodes"] = int(said["nodes"])
    if said["flags"] is not None:
        said["flags"] = {name: value for name, _, value in (each.partition("=") for each in said["flags"])}
    if said["webhooks"] is not None:
        host, _, port = said["webhooks"].rpartition(":")
        said["webhooks"] = (host, int(port))
    return said


def _listed(given: Any) -> Iterator[Any]:
    return iter([given] if isinstance(given, (str, Path, Mapping)) else given)


def _controllers(given: Any) -> tuple[str, ...]:
    if isinstance(given, bool):
        return ("*",) if given else ("-*",)
    return tuple(given.split(",")) if isinstance(given, str) else tuple(given)


def _source(option: str, given: Any, folders: tuple[Path, ...]) -> Source:
    if isinstance(given, Mapping):
        return given
    places = [folder / str(given) for folder in dict.fromkeys(folders)]
    if found := next((place for place in places if place.exists()), None):
        return found
    raise FileNotFoundError(f"{option}: there is no {' nor '.join(map(str, places))}")
