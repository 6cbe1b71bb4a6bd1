"""/statusz and /flagz: text pages about a server and its flags; objects on request. /debug/flags: the log verbosity.

Accept: application/json;as=Statusz;v=v1beta1;g=config.k8s.io   → the same data as an object
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping

from pilothouse.apiserver.endpoints.negotiation import Output, negotiate_output
from pilothouse.apiserver.endpoints.serializers.interface import Serializer
from pilothouse.apiserver.endpoints.serializers.json import JsonSerializer
from pilothouse.apiserver.endpoints.serializers.registry import JSON, YAML, Serializers, with_cbor
from pilothouse.apiserver.http import NO_SNIFFING, Handler, Request, Response, text
from pilothouse.apiserver.logs import v
from pilothouse.apiserver.server.features import CBOR_SERVING_AND_STORAGE, FeatureGates
from pilothouse.apiserver.server.mux import PathRecorderMux
from pilothouse.apiserver.server.version import version_info
from pilothouse.machinery.dataclass import dataclass
from pilothouse.machinery.gofmt import quote
from pilothouse.machinery.names import GroupVersionKind
from pilothouse.machinery.objects import Json

_COMPONENT = "apiserver"
_GROUP, _VERSIONS, _DEPRECATED = "config.k8s.io", ("v1alpha1", "v1beta1"), "v1alpha1"
_UNIX_DATE = "%a %b %e %H:%M:%S UTC %Y"
_DELIMITERS = (":", ": ", "=", " ")
_HEADER = (
    "\n{} {}\nWarning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
    "and is for debugging purposes only.\n"
)
_SERVING_FOLDERS = {"/apis", "/api", "/openid", "/openapi", "/.well-known"}


class _Text(JsonSerializer):
    """Placeholder serializer: the endpoint writes the text itself."""

    media_type = "text/plain"
    stream_media_type = ""


_SERIALIZERS: Serializers = (JSON, YAML, _Text())


@dataclass(frozen=True, slots=True)
class ZPage:
    """One page. `fields` are the fields of the object; `lines` are the lines of the text. The delimiter of the text
    varies, so that clients do not parse it."""

    kind: str
    fields: Callable[[], Json]
    lines: Callable[[Json, str], Iterable[str]]
    serializers: Serializers

    server_version = ""

    def allows(self, serializer: Serializer, target: GroupVersionKind | None) -> bool:
        if serializer.media_type == "text/plain" or target is None:
            return serializer.media_type == "text/plain" and target is None
        return (target.group, target.kind) == (_GROUP, self.kind) and target.version in _VERSIONS

    async def __call__(self, request: Request) -> Response:
        if not request.header(b"accept").strip():
            return self._text()
        request.spoken = self.serializers
        output = negotiate_output(request, self.serializers, self)
        return self._text() if output.convert is None else self._object(output, output.convert)

    def _text(self) -> Response:
        lines = self.lines(self.fields(), random.choice(_DELIMITERS))
        return text(200, _HEADER.format(_COMPONENT, self.kind.lower()) + "".join(f"{line}\n" for line in lines))

    def _object(self, output: Output, kind: GroupVersionKind) -> Response:
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": {"name": _COMPONENT}, **self.fields()}
        content_type = f"{output.serializer.media_type};g={kind.group};v={kind.version};as={kind.kind}"
        body = output.serializer.encode(obj, pretty=output.pretty)
        response = Response(200, body, [(b"content-type", content_type.encode())])
        if kind.version == _DEPRECATED:
            what = f"This version of the {kind.kind.lower()} endpoint is deprecated. Please use a newer version."
            response.with_header(b"warning", f'299 - "{what}"'.encode())
        return response


def install_zpages(
    mux: PathRecorderMux, flags: Mapping[str, str], listed_paths: Callable[[], list[str]], features: FeatureGates
) -> None:
    """Install the pages. /flagz exists only if flags are given."""
    serializers = with_cbor(_SERIALIZERS) if features.enabled(CBOR_SERVING_AND_STORAGE) else _SERIALIZERS
    if flags and features.enabled("ComponentFlagz"):

        def lines(fields: Json, delimiter: str) -> Iterable[str]:
            return (f"{name}{delimiter}{value}" for name, value in sorted(fields["flags"].items()))

        mux.handle("/flagz", ZPage("Flagz", lambda: {"flags": dict(sorted(flags.items()))}, lines, serializers))
    if features.enabled("ComponentStatusz"):
        mux.handle("/statusz", _statusz(listed_paths, serializers, version_info(features)))


def _statusz(listed_paths: Callable[[], list[str]], serializers: Serializers, version: Mapping[str, str]) -> Handler:
    started, began = time.time(), time.monotonic()

    def fields() -> Json:
        return {
            "startTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "uptimeSeconds": int(time.monotonic() - began),
            "goVersion": version["goVersion"],
            "binaryVersion": version["gitVersion"].removeprefix("v"),
            "emulationVersion": f"{version['emulationMajor']}.{version['emulationMinor']}",
            "paths": _folders(listed_paths()),
        }

    def lines(shown: Json, delimiter: str) -> Iterable[str]:
        minutes, seconds = divmod(shown["uptimeSeconds"], 60)
        yield ""
        yield f"Started{delimiter} {time.strftime(_UNIX_DATE, time.gmtime(started))}"
        yield f"Up{delimiter} {minutes // 60} hr {minutes % 60:02} min {seconds:02} sec"
        yield f"Go version{delimiter} {shown['goVersion']}"
        yield f"Binary version{delimiter} {shown['binaryVersion']}"
        yield f"Emulation version{delimiter} {shown['emulationVersion']}"
        yield f"Paths{delimiter} {' '.join(shown['paths'])}"

    return ZPage("Statusz", fields, lines, serializers)


def _folders(paths: Iterable[str]) -> list[str]:
    """Return the first segments of the debug paths."""
    folders = {f"/{path.split('/')[1]}" for path in paths if path.strip("/")}
    return sorted(folders - _SERVING_FOLDERS)


_MAX_BODY = 1024
_MOST = 2**32
_INDEX = b"""<html>
<head>
<title>/debug/flags/</title>
</head>
<body>
/debug/flags/<br>
<br>
flags:<br>
<table>
<tr>v<br>
</table>
<br>
full flags configurable<br>
</body>
</html>
"""


def install_debug_flags(mux: PathRecorderMux) -> None:
    """Serve /debug/flags: PUT /debug/flags/v sets the log verbosity, the only flag that can change at run time."""
    mux.handle("/debug/flags", _index, listed=False)
    mux.handle_prefix("/debug/flags/", _index, listed=False)
    mux.handle("/debug/flags/v", _verbosity, listed=False)


async def _index(request: Request) -> Response:
    return Response(200, _INDEX, [(b"content-type", b"text/html; charset=utf-8")])


async def _verbosity(request: Request) -> Response:
    if request.method != "PUT":
        return _plain(406, "unsupported http method")
    asked = (await request.read_body(_MAX_BODY)).decode("utf-8", "replace")
    if not asked.isascii() or not asked.isdigit():
        return _plain(400, f"strconv.ParseUint: parsing {quote(asked)}: invalid syntax")
    if int(asked) >= _MOST:
        return _plain(400, f"strconv.ParseUint: parsing {quote(asked)}: value out of range")
    logging.getLogger().setLevel(v(int(asked)))
    return _plain(200, f"successfully set klog.logging.verbosity to {asked}")


def _plain(status: int, body: str) -> Response:
    return Response(status, f"{body}\n".encode(), [(b"content-type", b"text/plain"), NO_SNIFFING])
