"""Why a data directory can not be used."""

from __future__ import annotations


class DataDirError(Exception):
    """The message names the directory."""


class DataDirInUse(DataDirError):
    """Another process has the directory."""


class DataDirUnsafe(DataDirError):
    """Somebody else can change what is in it."""
