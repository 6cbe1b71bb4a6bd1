"""/version: the Kubernetes version that this server implements.

Clients derive features from major, minor and gitVersion, so these are upstream's. The build is ours: gitCommit names
the Pilothouse release, compiler and goVersion the Python version.
"""

from __future__ import annotations

import sys

from pilothouse import __version__
from pilothouse.apiserver.endpoints.routes import get_route
from pilothouse.apiserver.http import Request, Response, raw_json
from pilothouse.apiserver.server.features import FeatureGates
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.machinery import release
from pilothouse.machinery.platform import machine

_MEDIA_TYPES = ("application/json",)
_SYSTEMS = {"win32": "windows"}
_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "ARM64": "arm64"}


def version_info(features: FeatureGates | None = None) -> dict[str, str]:
    """Return the fields of upstream's version.Info, in order, at the emulated version of the features."""
    python = ".".join(map(str, sys.version_info[:3]))
    system, architecture = _SYSTEMS.get(sys.platform, sys.platform), _ARCHITECTURES.get(machine(), machine())
    own = release.current()
    major, (emulated, oldest) = str(own.major), (features or FeatureGates()).versions
    return {
        "major": major,
        "minor": str(own.minor),
        "emulationMajor": major,
        "emulationMinor": str(emulated),
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(oldest),
        "gitVersion": own.git_version,
        "gitCommit": f"pilothouse-{__version__}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{python}",
        "compiler": sys.implementation.name,
        "platform": f"{system}/{architecture}",
    }


def install_version(mux: PathRecorderMux, features: FeatureGates) -> None:
    info = version_info(features)

    async def version(request: Request) -> Response:
        return raw_json(200, info)

    route = get_route(version, _MEDIA_TYPES, consumes=_MEDIA_TYPES)
    mux.handle("/version", route)
    mux.handle("/version/", route, listed=False)
