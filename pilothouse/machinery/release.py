"""The Kubernetes release that this process implements.

A process implements one release. `choose` sets it before anything reads it; the first `current` without a choice
settles on DEFAULT. Read `current()` when the value is needed, never while a module is imported.
"""

from __future__ import annotations

from pilothouse.machinery.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Release:
    minor: int
    patch: int
    major: int = 1

    @property
    def name(self) -> str:
        """Major and minor version: `1.36`."""
        return f"{self.major}.{self.minor}"

    @property
    def git_version(self) -> str:
        """Version as /version reports it: `v1.36.4`."""
        return f"v{self.major}.{self.minor}.{self.patch}"

    @property
    def version(self) -> tuple[int, int]:
        """(major, minor), for comparisons."""
        return self.major, self.minor


RELEASES = {release.name: release for release in (Release(34, 11), Release(35, 8), Release(36, 4), Release(37, 0))}
"""Name -> release, oldest first."""

DEFAULT = "1.37"


class UnknownRelease(ValueError):
    """No release of this name exists here. The message lists the names."""


class ReleaseAlreadyChosen(RuntimeError):
    """Another release has been chosen or read in this process."""


def release_of(name: str) -> Release:
    """Return the release of a name. `1.35`, `v1.35` and its patch version `1.35.8` are names of 1.35.

    Raises UnknownRelease.
    """
    text = name.strip().removeprefix("v")
    for release in RELEASES.values():
        if text in (release.name, release.git_version.removeprefix("v")):
            return release
    raise UnknownRelease(f'Kubernetes version "{name}" is not available; choose one of {", ".join(RELEASES)}')


_chosen: Release | None = None


def current() -> Release:
    """Return the release of this process."""
    global _chosen
    if _chosen is None:
        _chosen = RELEASES[DEFAULT]
    return _chosen


def choose(name: str) -> Release:
    """Make a release the release of this process. Choosing the same release again is a no-op.

    Raises UnknownRelease, and ReleaseAlreadyChosen if another release has been chosen or read before.
    """
    global _chosen
    release = release_of(name)
    if _chosen is not None and _chosen != release:
        raise ReleaseAlreadyChosen(
            f"this process already implements Kubernetes {_chosen.name} and cannot switch to {release.name}; "
            "start another process"
        )
    _chosen = release
    return release
