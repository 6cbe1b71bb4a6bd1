"""/version: the Kubernetes version that this server implements.

Clients derive features from major, minor and gitVersion, so these are upstream's. The build is ours: gitCommit names
the Pilothouse release, compiler and goVersion the Python version.
"""

from __future__ import annotations

import sys
from functools import cache

from pilothouse import __version__
from pilothouse.apiserver.endpoints.routes import get_route
from pilothouse.apiserver.http import Request, Response, raw_json
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.machinery.platform import machine
from pilothouse.machinery.release import GIT_VERSION, MAJOR, MINOR

_MEDIA_TYPES = ("application/json",)
_SYSTEMS = {"win32": "windows"}
_ARCHITECTURES = {"x86_64": "amd64", "AMD64": "amd64", "aarch64": "arm64", "ARM64": "arm64"}


@cache
def version_info() -> dict[str, str]:
    """Return the fields of upstream's version.Info, in order."""
    python = ".".join(map(str, sys.version_info[:3]))
    system, architecture = _SYSTEMS.get(sys.platform, sys.platform), _ARCHITECTURES.get(machine(), machine())
    return {
        "major": MAJOR,
        "minor": MINOR,
        "emulationMajor": MAJOR,
        "emulationMinor": MINOR,
        "minCompatibilityMajor": MAJOR,
        "minCompatibilityMinor": str(int(MINOR) - 1),
        "gitVersion": GIT_VERSION,
        "gitCommit": f"pilothouse-{__version__}",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{python}",
        "compiler": sys.implementation.name,
        "platform": f"{system}/{architecture}",
    }


def install_version(mux: PathRecorderMux) -> None:
    route = get_route(version, _MEDIA_TYPES, consumes=_MEDIA_TYPES)
    mux.handle("/version", route)
    mux.handle("/version/", route, listed=False)


async def version(request: Request) -> Response:
    return raw_json(200, version_info())
