"""Projected volumes: files of several sources in one directory, where no two may claim the same path."""

from __future__ import annotations

from pilothouse.kube.core.pods.validation.file_volumes import (
    validate_downward_file,
    validate_key_to_path,
    validate_mode,
)
from pilothouse.kube.core.pods.validation.projected_certificates import (
    CERTIFICATE_PATHS,
    validate_pod_certificate_projection,
    validate_trust_bundle_projection,
)
from pilothouse.kube.validation.fields import local_non_reserved_path, non_empty
from pilothouse.kube.validation.token_expirations import validate_token_expiration
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json


def validate_projected(source: Json, path: Path, *, allow_any_token_path: bool = False) -> Errors:
    yield from validate_mode(source.get("defaultMode"), path.child("defaultMode"))
    taken: set[str] = set()
    for position, projection in enumerate(source.get("sources") or ()):
        at = path.child("sources").index(position)
        for kind in ("secret", "configMap"):
            if (keyed := projection.get(kind)) is not None:
                yield from _validate_keyed(keyed, at.child(kind), path, taken)
        if (downward := projection.get("downwardAPI")) is not None:
            yield from _validate_downward(downward, at.child("downwardAPI"), path, taken)
        if (token := projection.get("serviceAccountToken")) is not None:
            yield from _validate_token(token, at.child("serviceAccountToken"), path, any_path=allow_any_token_path)
        yield from _validate_certificates(projection, at, path, taken)
        if len(projection) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")


def _validate_keyed(source: Json, path: Path, volume: Path, taken: set[str]) -> Errors:
    yield from non_empty(source.get("name"), path.child("name"))
    for position, item in enumerate(source.get("items") or ()):
        yield from validate_key_to_path(item, path.child("items").index(position))
        yield from _claim(item.get("path"), source.get("name") or "", volume, taken)


def _validate_downward(source: Json, path: Path, volume: Path, taken: set[str]) -> Errors:
    for file in source.get("items") or ():
        yield from validate_downward_file(file, path)
        yield from _claim(file.get("path"), file.get("path") or "", volume, taken)


def _validate_certificates(projection: Json, path: Path, volume: Path, taken: set[str]) -> Errors:
    if (bundle := projection.get("clusterTrustBundle")) is not None:
        yield from validate_trust_bundle_projection(bundle, path.child("clusterTrustBundle"))
        yield from _claim(bundle.get("path"), bundle.get("path") or "", volume, taken)
    if (certificate := projection.get("podCertificate")) is not None:
        at = path.child("podCertificate")
        yield from validate_pod_certificate_projection(certificate, at)
        files = {name: certificate[name] for name in CERTIFICATE_PATHS if certificate.get(name)}
        for name, file in files.items():
            yield from local_non_reserved_path(file, at.child(name))
            yield from _claim(file, file, volume, taken)
        if not files:
            yield required(at, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath")


def _claim(file: str | None, shown: str, volume: Path, taken: set[str]) -> Errors:
    if not file:
        return
    if file in taken:
        yield invalid(volume, shown, "conflicting duplicate paths")
    taken.add(file)


def _validate_token(token: Json, path: Path, volume: Path, *, any_path: bool) -> Errors:
    life, file = token.get("expirationSeconds") or 0, token.get("path")
    yield from validate_token_expiration(life, path.child("expirationSeconds"))
    if not file:
        yield required(volume.child("path"))
    elif not any_path:
        yield from local_non_reserved_path(file, volume.child("path"))
