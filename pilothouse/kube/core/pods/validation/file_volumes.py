"""Volumes with files from the API: secret, configMap, downwardAPI and projected, including certificates."""

from __future__ import annotations

from pilothouse.kube.certificates.validation import LONGEST, LONGEST_OF_KUBERNETES, SHORTEST
from pilothouse.kube.core.pods.validation.environment import (
    VOLUME_FIELDS,
    validate_field_reference,
    validate_resource_reference,
)
from pilothouse.kube.validation.domains import (
    cluster_trust_bundle_name_problems,
    is_kubernetes_signer_name,
    user_annotations,
    validate_signer_name,
)
from pilothouse.kube.validation.fields import local_non_reserved_path, non_empty, one_of, validate_token_expiration
from pilothouse.kube.validation.internal_structs import ANY, TEXT, struct
from pilothouse.machinery.field import Errors, Path, forbidden, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_selector

_MAX_MODE = 0o777
_BAD_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def validate_mode(mode: int | None, path: Path) -> Errors:
    if mode is not None and not 0 <= mode <= _MAX_MODE:
        yield invalid(path, mode, _BAD_MODE)


def validate_secret(source: Json, path: Path) -> Errors:
    yield from _validate_keyed(source, "secretName", path)


def validate_config_map(source: Json, path: Path) -> Errors:
    yield from _validate_keyed(source, "name", path)


def _validate_keyed(source: Json, name_field: str, path: Path) -> Errors:
    yield from non_empty(source.get(name_field), path.child(name_field))
    yield from validate_mode(source.get("defaultMode"), path.child("defaultMode"))
    for position, item in enumerate(source.get("items") or ()):
        yield from validate_key_to_path(item, path.child("items").index(position))


def validate_key_to_path(item: Json, path: Path) -> Errors:
    yield from non_empty(item.get("key"), path.child("key"))
    yield from non_empty(item.get("path"), path.child("path"))
    yield from local_non_reserved_path(item.get("path") or "", path.child("path"))
    yield from validate_mode(item.get("mode"), path.child("mode"))


def validate_downward_api(source: Json, path: Path) -> Errors:
    yield from validate_mode(source.get("defaultMode"), path.child("defaultMode"))
    for file in source.get("items") or ():
        yield from validate_downward_file(file, path)


def validate_downward_file(file: Json, path: Path) -> Errors:
    """Validate a file. Like upstream, report errors at the volume's path instead of the file's path."""
    yield from non_empty(file.get("path"), path.child("path"))
    yield from local_non_reserved_path(file.get("path") or "", path.child("path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from validate_field_reference(field, VOLUME_FIELDS, path.child("fieldRef"))
        if resource is not None:
            yield invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from validate_resource_reference(resource, path.child("resourceFieldRef"), of_volume=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from validate_mode(file.get("mode"), path.child("mode"))


def validate_projected(source: Json, path: Path, *, allow_any_token_path: bool = False) -> Errors:
    yield from validate_mode(source.get("defaultMode"), path.child("defaultMode"))
    taken: set[str] = set()
    for position, projection in enumerate(source.get("sources") or ()):
        at = path.child("sources").index(position)
        for kind in ("secret", "configMap"):
            if (keyed := projection.get(kind)) is not None:
                source_path = at.child(kind)
                yield from non_empty(keyed.get("name"), source_path.child("name"))
                for position, item in enumerate(keyed.get("items") or ()):
                    yield from validate_key_to_path(item, source_path.child("items").index(position))
                    yield from _claim(item.get("path"), keyed.get("name") or "", path, taken)
        if (downward := projection.get("downwardAPI")) is not None:
            for file in downward.get("items") or ():
                yield from validate_downward_file(file, at.child("downwardAPI"))
                yield from _claim(file.get("path"), file.get("path") or "", path, taken)
        if (token := projection.get("serviceAccountToken")) is not None:
            life, file = token.get("expirationSeconds") or 0, token.get("path")
            yield from validate_token_expiration(life, at.child("serviceAccountToken").child("expirationSeconds"))
            if not file:
                yield required(path.child("path"))
            elif not allow_any_token_path:
                yield from local_non_reserved_path(file, path.child("path"))
        if (bundle := projection.get("clusterTrustBundle")) is not None:
            yield from validate_trust_bundle_projection(bundle, at.child("clusterTrustBundle"))
            yield from _claim(bundle.get("path"), bundle.get("path") or "", path, taken)
        if (certificate := projection.get("podCertificate")) is not None:
            source_path = at.child("podCertificate")
            yield from validate_pod_certificate_projection(certificate, source_path)
            files = {name: certificate[name] for name in CERTIFICATE_PATHS if certificate.get(name)}
            for name, file in files.items():
                yield from local_non_reserved_path(file, source_path.child(name))
                yield from _claim(file, file, path, taken)
            if not files:
                yield required(
                    source_path, "specify at least one of credentialBundlePath, keyPath, and certificateChainPath"
                )
        if len(projection) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")


def _claim(file: str | None, printed: str, volume: Path, taken: set[str]) -> Errors:
    if not file:
        return
    if file in taken:
        yield invalid(volume, printed, "conflicting duplicate paths")
    taken.add(file)


CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")

_printed = struct(Name=ANY, SignerName=ANY, LabelSelector=ANY, Optional=ANY, Path=TEXT)
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def validate_trust_bundle_projection(source: Json, path: Path) -> Errors:
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        yield invalid(path, _printed(source), "only one of name and signerName may be used")
    elif name is not None:
        selector = source.get("labelSelector")
        if not name:
            yield required(path.child("name"), "must be a valid object name")
        signer_name = name.rpartition(":")[0].replace(":", "/")
        for problem in cluster_trust_bundle_name_problems(signer_name, name, False):
            yield invalid(path.child("name"), name, f"not a valid clustertrustbundlename: {problem}")
        if selector is not None:
            yield invalid(path.child("labelSelector"), selector, "labelSelector must be unset if name is specified")
    elif signer is not None:
        if not signer:
            yield required(path.child("signerName"), "must be a valid signer name")
        yield from validate_signer_name(signer, path.child("signerName"))
        yield from validate_label_selector(source.get("labelSelector"), path.child("labelSelector"))
    else:
        yield required(path, "either name or signerName must be specified")
    if not source.get("path"):
        yield required(path.child("path"))
    yield from local_non_reserved_path(source.get("path") or "", path.child("path"))


def validate_pod_certificate_projection(source: Json, path: Path) -> Errors:
    """Validate everything except the paths, which must be unique in the volume."""
    signer = source.get("signerName") or ""
    yield from validate_signer_name(signer, path.child("signerName"))
    if (annotations := source.get("userAnnotations")) is not None:
        yield from user_annotations(annotations, path.child("userAnnotations"))
    yield from one_of(source.get("keyType") or "", path.child("keyType"), _KEY_TYPES, plain=True)
    seconds, where = source.get("maxExpirationSeconds"), path.child("maxExpirationSeconds")
    if seconds is None:
        return
    if seconds < SHORTEST:
        yield invalid(where, seconds, f"if provided, maxExpirationSeconds must be >= {SHORTEST}")
    longest = LONGEST_OF_KUBERNETES if is_kubernetes_signer_name(signer) else LONGEST
    if seconds > longest:
        yield invalid(where, seconds, f"if provided, maxExpirationSeconds must be <= {longest}")
