"""The public class of the builder: an API server of one group."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pilothouse.builder.extension_service import ExtensionService
from pilothouse.builder.kind import InvalidDeclaration, Kind, VersionOptions
from pilothouse.builder.resource import Resource
from pilothouse.machinery.versions import preference

if TYPE_CHECKING:
    from pilothouse.builder.controllers import Reconciler, Watched
    from pilothouse.testing.api import API, BlockingAPI
    from pilothouse.testing.home import Flag

R = TypeVar("R", bound=type[Resource])
C = TypeVar("C", bound="type[Reconciler[Any]]")


class APIServer:
    """An extension API server. Declare its resources, then `run` the server, or test it with `in_test`.

    `name` and `namespace` are those of its Service in a cluster.

    >>> from pilothouse.builder import APIServer, Resource
    >>> server = APIServer(group="wardle.example.com")
    >>> @server.resource(version="v1alpha1")
    ... class Flunder(Resource):
    ...     pass
    >>> with server.in_test() as api:
    ...     api.request("GET", "/apis/wardle.example.com/v1alpha1/flunders").json["kind"]
    'FlunderList'
    """

    def __init__(self, group: str, *, name: str = "", namespace: str = "") -> None:
        self.group = group
        self.name = name or f"{group.partition('.')[0]}-apiserver"
        self.namespace = namespace or group.partition(".")[0]
        self.controllers: dict[str, type[Reconciler[Any]]] = {}
        self._versions: dict[str, dict[str, tuple[type[Resource], VersionOptions]]] = {}
        """kind -> version -> (class, options)"""

    def resource(
        self,
        *,
        version: str,
        kind: str = "",
        plural: str = "",
        singular: str = "",
        short_names: Sequence[str] = (),
        categories: Sequence[str] = (),
        namespaced: bool = True,
        storage_version: bool = False,
        served: bool = True,
        deprecated: str | None = None,
        storage: object | None = None,
    ) -> Callable[[R], R]:
        """Serve the class as one version of a kind. The kind is the name of the class unless `kind` is given.

        With several versions, one version sets `storage_version` and the other classes define `convert_to` and
        `convert_from`. `deprecated` is the warning for clients of the version; an empty string selects the standard
        warning.
        `storage` is an object with the author's storage functions, for objects outside of the server's store.
        """

        options = VersionOptions(
            version,
            kind,
            plural,
            singular,
            short_names,
            categories,
            namespaced,
            storage_version,
            served,
            deprecated,
            storage,
        )

        def decorate(cls: R) -> R:
            self._declare(cls, replace(options, kind=kind or cls.__name__))
            return cls

        return decorate

    def _declare(self, cls: type[Resource], options: VersionOptions) -> None:
        """Add a version. Raises InvalidDeclaration for a duplicate version."""
        cls.kind, cls.api_version = options.kind, f"{self.group}/{options.version}"
        known = self._versions.setdefault(options.kind, {})
        if options.version in known:
            raise InvalidDeclaration(f"{options.kind} has a version {options.version} already")
        known[options.version] = (cls, options)

    def controller(
        self, resource: type[Resource], *, owns: Iterable[Watched] = (), watches: Iterable[Any] = (), workers: int = 1
    ) -> Callable[[C], C]:
        """Run the class, a Reconciler, as a controller of the resource while the server runs.

        An object is reconciled when it changes, or when an object changes that it `owns` as controller. `watches` has
        pairs
        of a resource and a function: a changed object of that resource reconciles the keys that the function returns.
        Raises InvalidDeclaration if another module has a controller of the same name.
        """

        def decorate(cls: C) -> C:
            known = self.controllers.get(cls.__name__)
            if known is not None and known.__module__ != cls.__module__:
                raise InvalidDeclaration(f"{known.__module__} has a controller {cls.__name__} already")
            cls.resource, cls.workers = resource, workers
            cls.owns, cls.watches = tuple(owns), tuple(watches)
            self.controllers[cls.__name__] = cls
            return cls

        return decorate

    @property
    def kinds(self) -> list[Kind]:
        """The declared kinds, each with its versions."""
        return [Kind(self.group, versions) for versions in self._versions.values()]

    @property
    def place(self) -> ExtensionService:
        """The server's group, served versions and Service."""
        served = {name for kind in self.kinds for name, (_, options) in kind.versions.items() if options.served}
        return ExtensionService(self.group, tuple(sorted(served, key=preference)), self.name, self.namespace)

    def run(self, arguments: Sequence[str] | None = None, *, standalone: bool = False) -> None:
        """Serve until a signal. The flags default to the command line. Exits with 1 if the server cannot start."""
        from pilothouse.builder.command import main

        code = main(self, sys.argv[1:] if arguments is None else arguments, standalone=standalone)
        if code:
            sys.exit(code)

    async def serve(self, arguments: Sequence[str], stop: asyncio.Event, ready: Callable[[Any], None]) -> None:
        """Serve in this event loop until `stop` is set. Raises StartFailed, FlagError, InvalidOptions."""
        from pilothouse.builder.command import parse_options
        from pilothouse.builder.running import serve

        await serve(self, parse_options(arguments, group=self.group), stop, ready)

    def in_test(self, **flags: Flag) -> AbstractContextManager[BlockingAPI]:
        """Run this server, registered in a whole API server of `pilothouse.testing` with `flags`.

        The block gets the whole server, and begins when this server's resources are available.
        """
        from pilothouse.builder.in_test import in_loop
        from pilothouse.testing.in_thread import InThread

        return InThread(in_loop(self, flags))

    def in_async_test(self, **flags: Flag) -> AbstractAsyncContextManager[API]:
        """Run the server as `in_test` does, in the event loop of the test."""
        from pilothouse.builder.in_test import in_loop

        return in_loop(self, flags)
