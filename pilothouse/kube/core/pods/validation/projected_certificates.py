"""Projected volumes of certificates: those that a cluster trusts, and a pod's own."""

from __future__ import annotations

from pilothouse.kube.certificates.validation import LONGEST, LONGEST_OF_KUBERNETES, SHORTEST
from pilothouse.kube.validation.domains import user_annotations
from pilothouse.kube.validation.fields import local_non_reserved_path, one_of
from pilothouse.kube.validation.internal_structs import ANY, TEXT, struct
from pilothouse.kube.validation.signer_names import (
    cluster_trust_bundle_name_problems,
    is_kubernetes_signer_name,
    validate_signer_name,
)
from pilothouse.machinery.field import Errors, Path, invalid, required
from pilothouse.machinery.objects import Json
from pilothouse.machinery.validation.labels import validate_label_selector

CERTIFICATE_PATHS = ("credentialBundlePath", "keyPath", "certificateChainPath")

_printed = struct(Name=ANY, SignerName=ANY, LabelSelector=ANY, Optional=ANY, Path=TEXT)
_KEY_TYPES = ("RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519")


def validate_trust_bundle_projection(source: Json, path: Path) -> Errors:
    name, signer = source.get("name"), source.get("signerName")
    if name is not None and signer is not None:
        yield invalid(path, _printed(source), "only one of name and signerName may be used")
    elif name is not None:
        yield from _validate_named(name, source.get("labelSelector"), path)
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


def _validate_named(name: str, selector: Json | None, path: Path) -> Errors:
    if not name:
        yield required(path.child("name"), "must be a valid object name")
    signer = name.rpartition(":")[0].replace(":", "/")
    for problem in cluster_trust_bundle_name_problems(signer, name, False):
        yield invalid(path.child("name"), name, f"not a valid clustertrustbundlename: {problem}")
    if selector is not None:
        yield invalid(path.child("labelSelector"), selector, "labelSelector must be unset if name is specified")


def validate_pod_certificate_projection(source: Json, path: Path) -> Errors:
    """All but its paths, which no other source of the volume may have."""
    signer = source.get("signerName") or ""
    yield from validate_signer_name(signer, path.child("signerName"))
    if (annotations := source.get("userAnnotations")) is not None:
        yield from user_annotations(annotations, path.child("userAnnotations"))
    yield from one_of(source.get("keyType") or "", path.child("keyType"), _KEY_TYPES)
    seconds, where = source.get("maxExpirationSeconds"), path.child("maxExpirationSeconds")
    if seconds is None:
        return
    if seconds < SHORTEST:
        yield invalid(where, seconds, f"if provided, maxExpirationSeconds must be >= {SHORTEST}")
    longest = LONGEST_OF_KUBERNETES if is_kubernetes_signer_name(signer) else LONGEST
    if seconds > longest:
        yield invalid(where, seconds, f"if provided, maxExpirationSeconds must be <= {longest}")
