"""Server settings of a test, from the configuration, the command line and markers; inner settings override."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.release import UnknownRelease, release_of

KUBECONFIG = "pilothouse_kubeconfig"
VERSIONS = "pilothouse_versions"
EXPLORE = "pilothouse_explore"
MATRIX = "_pilothouse_version"
"""Fixture with the version of the matrix; empty without a matrix."""
MARKER = (
    "pilothouse(crds, manifests, nodes, controllers, flags, webhooks, kubernetes_version): settings of the test's"
    " server. crds and manifests are lists of paths or objects; lists and flags add to those of the class, the module"
    " and the configuration."
)
CLUSTERS_MARKER = (
    "pilothouse_clusters(**groups): several clusters for the fixture pilothouse_clusters, with the settings of the"
    " marker pilothouse. Keywords are groups with the number of their clusters: hub=1, spokes=20."
)
_OPTIONS = {
    "crds": ("paths", "append", "File or folder of CustomResourceDefinitions to install in every server"),
    "manifests": ("paths", "append", "File or folder of objects to install in every server"),
    "nodes": ("string", "store", "Number of simulated nodes"),
    "controllers": ("string", "store", "Controllers to run, in the format of kube-controller-manager's --controllers"),
    "flags": ("linelist", "append", "name=value: a flag of `pilothouse serve`"),
    "webhooks": ("string", "store", "host:port for the URLs of webhook configurations; port 0 selects a free port"),
    "kubernetes_version": ("string", "store", "Kubernetes version of every server, such as 1.35"),
}

Source: TypeAlias = "Path | Mapping[str, Any]"


@dataclass(frozen=True)
class Settings:
    """All settings of a server. Tests with equal settings share a server."""

    crds: tuple[Source, ...] = ()
    manifests: tuple[Source, ...] = ()
    nodes: int = 0
    controllers: tuple[str, ...] = ()
    flags: Mapping[str, Any] | None = None
    webhooks: tuple[str, int] | None = None
    kubernetes_version: str = ""

    @property
    def key(self) -> str:
        values = [getattr(self, name) for name in _OPTIONS]
        return json.dumps(values, default=str, sort_keys=True)

    @property
    def server_flags(self) -> dict[str, Any]:
        """Flags of the server, as keywords."""
        flags: dict[str, Any] = {"simulated_nodes": self.nodes} if self.nodes else {}
        if self.controllers:
            flags["controllers"] = self.controllers
        if self.kubernetes_version:
            flags["kubernetes_version"] = self.kubernetes_version
        return flags | {name.replace("-", "_"): value for name, value in (self.flags or {}).items()}

    def with_more(self, overrides: Mapping[str, Any], folders: tuple[Path, ...]) -> Settings:
        """Return the settings with inner overrides. Lists and flags are merged, other values are replaced.

        Relative paths are searched in the folders, in order. Raises ValueError for unknown options, FileNotFoundError.
        """
        if unknown := sorted(set(overrides) - set(_OPTIONS)):
            raise ValueError(f"unknown option {', '.join(unknown)}; known options: {', '.join(_OPTIONS)}")
        given = {name: value for name, value in overrides.items() if value is not None}
        for name in ("crds", "manifests"):
            if name in given:
                sources = tuple(_source(name, item, folders) for item in _listed(given[name]))
                given[name] = (*getattr(self, name), *sources)
        if "controllers" in given:
            given["controllers"] = _controllers(given["controllers"])
        if "flags" in given:
            given["flags"] = {**(self.flags or {}), **given["flags"]}
        if "kubernetes_version" in given:
            given["kubernetes_version"] = release_of(given["kubernetes_version"]).name
        return replace(self, **given)


def add_options(parser: pytest.Parser) -> None:
    """Add the options to the command line and to the configuration: --pilothouse-crds is pilothouse_crds."""
    group = parser.getgroup("pilothouse", "a Kubernetes API server for tests")
    for name, (kind, action, text) in _OPTIONS.items():
        flag = f"--pilothouse-{name.replace('_', '-')}"
        group.addoption(flag, dest=f"pilothouse_{name}", action=action, default=None, help=f"{text}.")
        parser.addini(f"pilothouse_{name}", f"{text}.", type=kind, default=None)  # type: ignore[arg-type]
    text = "Run the tests against the cluster of this kubeconfig, and skip tests that need Pilothouse."
    group.addoption("--pilothouse-kubeconfig", dest=KUBECONFIG, default=None, metavar="FILE", help=text)
    text = "Run every test once for each of these Kubernetes versions, such as 1.35,1.36."
    group.addoption("--pilothouse-versions", dest=VERSIONS, default=None, metavar="VERSIONS", help=text)
    text = "Disturb the scenarios of the fixture pilothouse_explore; without the option they run once, undisturbed."
    group.addoption("--pilothouse-explore", dest=EXPLORE, action="store_true", default=False, help=text)
    parser.addini(VERSIONS, text, type="string", default="")


def versions_of_session(config: pytest.Config) -> list[str]:
    """Return the Kubernetes versions of the matrix. Raises pytest.UsageError for an unknown version."""
    text = config.getoption(VERSIONS) or config.getini(VERSIONS) or ""
    try:
        return [release_of(name).name for name in dict.fromkeys(filter(None, text.split(",")))]
    except UnknownRelease as error:
        raise pytest.UsageError(f"pilothouse: {error}") from None


def is_pinned(markers: Iterable[pytest.Mark]) -> bool:
    """Return whether a marker sets the Kubernetes version. Such tests are not part of the matrix."""
    return any(mark.name == "pilothouse" and mark.kwargs.get("kubernetes_version") for mark in markers)


def settings_of_session(config: pytest.Config, version: str = "") -> Settings:
    """Return the settings of the configuration and the command line. `version` is a version of the matrix."""
    settings = Settings()
    places = ((config.getini, config.rootpath), (config.getoption, config.invocation_params.dir))
    for read, folder in places:
        values = {name: read(f"pilothouse_{name}") or None for name in _OPTIONS}
        if values["nodes"] is not None:
            values["nodes"] = int(values["nodes"])
        if values["flags"] is not None:
            values["flags"] = {name: value for name, _, value in (item.partition("=") for item in values["flags"])}
        if values["webhooks"] is not None:
            host, _, port = values["webhooks"].rpartition(":")
            values["webhooks"] = (host, int(port))
        settings = _checked(settings, values, (folder,))
    return replace(settings, kubernetes_version=version) if version else settings


def groups_of_item(item: pytest.Item) -> dict[str, int]:
    """Return the groups of clusters of the innermost marker. Fails the test without a marker."""
    mark = item.get_closest_marker("pilothouse_clusters")
    if mark is None or mark.args or not mark.kwargs or not all(isinstance(n, int) for n in mark.kwargs.values()):
        pytest.fail("pilothouse: add @pytest.mark.pilothouse_clusters(hub=1, spokes=2) to the test", pytrace=False)
    return dict(mark.kwargs)


def settings_of_item(item: pytest.Item, version: str = "") -> Settings:
    """Return the settings of the session, with the test's markers applied from the outermost to the innermost.

    `version` is the Kubernetes version of the matrix.
    """
    settings = settings_of_session(item.config, version)
    for mark in reversed(list(item.iter_markers("pilothouse"))):
        if mark.args:
            pytest.fail("pytest.mark.pilothouse takes keywords only", pytrace=False)
        settings = _checked(settings, mark.kwargs, (item.path.parent, item.config.rootpath))
    return settings


def _checked(settings: Settings, overrides: Mapping[str, Any], folders: tuple[Path, ...]) -> Settings:
    try:
        return settings.with_more(overrides, folders)
    except (ValueError, FileNotFoundError) as error:
        problem = str(error)
    pytest.fail(f"pilothouse: {problem}", pytrace=False)


def _listed(given: Any) -> Iterator[Any]:
    return iter([given] if isinstance(given, (str, Path, Mapping)) else given)


def _controllers(given: Any) -> tuple[str, ...]:
    if isinstance(given, bool):
        return ("*",) if given else ("-*",)
    return tuple(given.split(",")) if isinstance(given, str) else tuple(given)


def _source(option: str, given: Any, folders: tuple[Path, ...]) -> Source:
    if isinstance(given, Mapping):
        return given
    candidates = [folder / str(given) for folder in dict.fromkeys(folders)]
    if source := next((candidate for candidate in candidates if candidate.exists()), None):
        return source
    raise FileNotFoundError(f"{option}: not found: {', '.join(map(str, candidates))}")
