"""The public face of the builder: an API server of one group, declared resource by resource."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from pilothouse.builder.kind import InvalidDeclaration, Kind, VersionOptions
from pilothouse.builder.place import Place
from pilothouse.builder.resource import Resource
from pilothouse.machinery.kube_versions import preference

if TYPE_CHECKING:
    from pilothouse.builder.controllers import Reconciler, Watched
    from pilothouse.testing.api import API, BlockingAPI
    from pilothouse.testing.flags import Flag

R = TypeVar("R", bound=type[Resource])
C = TypeVar("C", bound="type[Reconciler[Any]]")


class APIServer:
    """An extension API server. Declare its resources, then `run` it, or try it with `in_test`.

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
        """By kind and version."""

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
        """Serve the class as one version of a kind, which is called like the class unless `kind` is given.

        Of several versions, one has `storage_version` and the others `convert_to` and `convert_from`. `deprecated` is
        the warning that clients of the version get, empty for the usual one. `storage` is an object with the author's
        own functions, where the objects are not to live in the server's store.
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
        """Raises InvalidDeclaration for a version that the kind has already."""
        cls.kind, cls.api_version = options.kind, f"{self.group}/{options.version}"
        known = self._versions.setdefault(options.kind, {})
        if options.version in known:
            raise InvalidDeclaration(f"{options.kind} has a version {options.version} already")
        known[options.version] = (cls, options)

    def controller(
        self, resource: type[Resource], *, owns: Iterable[Watched] = (), watches: Iterable[Any] = (), workers: int = 1
    ) -> Callable[[C], C]:
        """Run the class, a Reconciler, as a controller of the resource for as long as the server runs.

        It reconciles an object when that changes, or one that it `owns` as its controller, or, for each pair in
        `watches` of a resource and a function, when an object of that resource changes for which the function finds it.
        """

        def decorate(cls: C) -> C:
            cls.resource, cls.workers = resource, workers
            cls.owns, cls.watches = tuple(owns), tuple(watches)
            self.controllers[cls.__name__] = cls
            return cls

        return decorate

    @property
    def kinds(self) -> list[Kind]:
        """Return the kinds that are declared, each with its versions."""
        return [Kind(self.group, versions) for versions in self._versions.values()]

    @property
    def place(self) -> Place:
        """Return where the server stands in a cluster: its group and versions, and its Service."""
        served = {name for kind in self.kinds for name, (_, options) in kind.versions.items() if options.served}
        return Place(self.group, tuple(sorted(served, key=preference)), self.name, self.namespace)

    def run(self, arguments: Sequence[str] | None = None, *, standalone: bool = False) -> None:
        """Serve until a signal comes; the flags are those of the command line. Exits with 1 when it cannot start."""
        from pilothouse.builder.command import main

        code = main(self, sys.argv[1:] if arguments is None else arguments, standalone=standalone)
        if code:
            sys.exit(code)

    async def serve(self, arguments: Sequence[str], stop: asyncio.Event, ready: Callable[[Any], None]) -> None:
        """Serve in this event loop until `stop` is set. Raises StartFailed, and what wrong flags raise."""
        from pilothouse.builder.options import parse_options
        from pilothouse.builder.running import serve

        await serve(self, parse_options(arguments, group=self.group), stop, ready)

    def in_test(self, **flags: Flag) -> AbstractContextManager[BlockingAPI]:
        """Run this server registered behind a whole API server of `pilothouse.testing`, which takes `flags`.

        The block is given the whole server, and begins when it can be asked for this server's resources.
        """
        from pilothouse.builder.in_test import in_loop
        from pilothouse.testing.in_thread import InThread

        return InThread(in_loop(self, flags))

    def in_async_test(self, **flags: Flag) -> AbstractAsyncContextManager[API]:
        """As `in_test`, in the event loop of the test."""
        from pilothouse.builder.in_test import in_loop

        return in_loop(self, flags)
