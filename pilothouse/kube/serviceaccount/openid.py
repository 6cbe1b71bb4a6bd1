"""OpenID discovery documents for external verifiers of service account tokens."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

import orjson

from pilothouse.apiserver.endpoints.routes import get_route
from pilothouse.apiserver.http import Handler, Request, Response
from pilothouse.apiserver.openapi.route import STRING, Route, RouteContainer
from pilothouse.apiserver.server.server import GenericAPIServer
from pilothouse.kube.config import ServiceAccountConfig
from pilothouse.kube.serviceaccount.keys import VerifyingKeys
from pilothouse.machinery.objects import Json

CONFIGURATION_PATH = "/.well-known/openid-configuration"
KEYS_PATH = "/openid/v1/jwks"

_JSON = "application/json"
_KEY_SET = "application/jwk-set+json"
_MAX_AGE = 3600


class OpenIDMetadata:
    """`address` returns host and port of this server, known once the server listens."""

    def __init__(self, config: ServiceAccountConfig, keys: VerifyingKeys, address: Callable[[], str]) -> None:
        self._issuer = config.issuers[0]
        self._jwks_uri = config.jwks_uri
        self._keys = keys
        self._address = address

    @property
    def configuration(self) -> Json:
        return {
            "issuer": self._issuer,
            "jwks_uri": self._jwks_uri or f"https://{self._address()}{KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in self._keys.all}),
        }

    @property
    def key_set(self) -> Json:
        return {"keys": [key.jwk for key in self._keys.all]}


def install_openid(server: GenericAPIServer, config: ServiceAccountConfig, address: Callable[[], str]) -> None:
    """Serve the documents of the first issuer, if the issuer is an https URL."""
    if not config.verifying_files or not is_openid_issuer(config.issuers[0]):
        return
    keys = VerifyingKeys(config.verifying_files)
    metadata = OpenIDMetadata(config, keys, address)
    _install(server, CONFIGURATION_PATH, _serve(keys, lambda: metadata.configuration, _JSON), _CONFIGURATION_ROUTE)
    _install(server, KEYS_PATH, _serve(keys, lambda: metadata.key_set, _KEY_SET), _KEYS_ROUTE)


def is_openid_issuer(issuer: str) -> bool:
    url = urlsplit(issuer)
    return url.scheme == "https" and not url.query and not url.fragment


def _install(server: GenericAPIServer, path: str, handler: Handler, route: Route) -> None:
    server.mux.handle(path, handler)
    server.mux.handle(f"{path}/", handler, listed=False)
    server.openapi.update(RouteContainer(path[1:], lambda: (route,)))


def _serve(keys: VerifyingKeys, document: Callable[[], Json], media_type: str) -> Handler:
    headers = [(b"content-type", media_type.encode()), (b"cache-control", f"public, max-age={_MAX_AGE}".encode())]

    async def serve(request: Request) -> Response:
        await keys.load()
        return Response(200, orjson.dumps(document()), [*headers])

    return get_route(serve, (media_type,))


def _route(path: str, operation: str, description: str, media_type: str) -> Route:
    return Route(
        method="get",
        path=f"{path}/",
        operation=operation,
        description=description,
        responses={200: STRING},
        produces=(media_type,),
        consumes=(),
    )


_CONFIGURATION_ROUTE = _route(
    CONFIGURATION_PATH,
    "getServiceAccountIssuerOpenIDConfiguration",
    "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'",
    _JSON,
)
_KEYS_ROUTE = _route(
    KEYS_PATH,
    "getServiceAccountIssuerOpenIDKeyset",
    "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)",
    _KEY_SET,
)
