"""Values as they are stored, and what happens to those that somebody changed."""

from __future__ import annotations

import os
from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pilothouse.apiserver.storage.encryption.kms_provider import ExtendedNonceGcm
from pilothouse.apiserver.storage.encryption.local import AesCbc, AesGcm, Identity, Secretbox
from pilothouse.apiserver.storage.encryption.transformer import Plain, Prefixed, PrefixTransformers, Transformer
from pilothouse.apiserver.storage.errors import TransformFailed
from pilothouse.apiserver.tallies import REGISTRY

KEY = b"/registry/secrets/default/a"
Cipher: TypeAlias = type[AesGcm] | type[AesCbc] | type[Secretbox] | type[ExtendedNonceGcm]
CIPHERS: list[Cipher] = [AesGcm, AesCbc, Secretbox, ExtendedNonceGcm]
AUTHENTICATED = [AesGcm, Secretbox, ExtendedNonceGcm]


@pytest.mark.parametrize("cipher", CIPHERS)
@given(value=st.binary(max_size=200))
async def test_what_was_encrypted_can_be_read_again(cipher: Cipher, value: bytes) -> None:
    transformer = cipher(bytes(32))
    stored = await transformer.to_storage(value, KEY)
    assert (await transformer.from_storage(stored, KEY)) == Plain(value)
    assert len(value) < 8 or value not in stored


@pytest.mark.parametrize("cipher", CIPHERS)
async def test_the_same_value_is_never_stored_in_the_same_form_twice(cipher: Cipher) -> None:
    transformer = cipher(bytes(32))
    assert await transformer.to_storage(b"x", KEY) != await transformer.to_storage(b"x", KEY)


@pytest.mark.parametrize("cipher", AUTHENTICATED)
async def test_a_value_with_one_bit_changed_is_refused(cipher: Cipher) -> None:
    transformer = cipher(bytes(32))
    stored = bytearray(await transformer.to_storage(b"x" * 40, KEY))
    stored[-20] ^= 1
    with pytest.raises(TransformFailed):
        await transformer.from_storage(bytes(stored), KEY)


@pytest.mark.parametrize("cipher", [AesGcm, ExtendedNonceGcm])
async def test_a_value_that_was_moved_to_another_key_is_refused(cipher: Cipher) -> None:
    transformer = cipher(bytes(32))
    stored = await transformer.to_storage(b"x", KEY)
    with pytest.raises(TransformFailed):
        await transformer.from_storage(stored, KEY + b"b")


@pytest.mark.parametrize("cipher", CIPHERS)
async def test_another_secret_does_not_open_it(cipher: Cipher) -> None:
    stored = await cipher(os.urandom(32)).to_storage(b"x" * 100, KEY)
    try:
        read = await cipher(os.urandom(32)).from_storage(stored, KEY)
    except TransformFailed:
        return
    assert cipher is AesCbc  # which can not tell, and gives rubbish one time in 256
    assert read.value != b"x" * 100


@pytest.mark.parametrize("cipher", CIPHERS)
@pytest.mark.parametrize("stored", [b"", b"short"])
async def test_what_is_too_short_to_be_a_value_is_refused(cipher: Cipher, stored: bytes) -> None:
    with pytest.raises(TransformFailed, match="shorter than the required size"):
        await cipher(bytes(32)).from_storage(stored, KEY)


async def test_what_is_encrypted_is_never_taken_for_plain() -> None:
    with pytest.raises(TransformFailed, match="identity transformer tried to read encrypted data"):
        await Identity().from_storage(b"k8s:enc:aesgcm:v1:k:x", KEY)


def chain(*names: str) -> PrefixTransformers:
    ciphers: dict[str, Transformer] = {"old": AesGcm(bytes(32)), "new": AesGcm(bytes([1]) * 32), "": Identity()}
    return PrefixTransformers([Prefixed(f"{name}:".encode() if name else b"", ciphers[name]) for name in names])


async def test_the_first_of_several_writes_and_what_the_others_wrote_is_stale() -> None:
    stored = await chain("old").to_storage(b"x", KEY)
    assert await chain("old").from_storage(stored, KEY) == Plain(b"x")
    assert await chain("new", "old").from_storage(stored, KEY) == Plain(b"x", stale=True)


async def test_what_was_stored_before_anything_was_encrypted_is_read_and_stale() -> None:
    assert await chain("new", "").from_storage(b'{"kind":"Secret"}', KEY) == Plain(b'{"kind":"Secret"}', stale=True)


async def test_a_value_that_nobody_can_read_says_so() -> None:
    with pytest.raises(TransformFailed, match="no matching prefix found"):
        await chain("new").from_storage(b"other:x", KEY)


def transformed(kind: str, prefix: str, status: str = "OK") -> float:
    labels = {"resource": "secrets", "transformation_type": kind, "transformer_prefix": prefix, "status": status}
    return REGISTRY.get_sample_value("apiserver_storage_transformation_operations_total", labels) or 0.0


async def test_transformations_are_counted_by_resource_direction_and_prefix() -> None:
    counted = chain("new").counted_for("secrets")
    before = [transformed("to_storage", "new:"), transformed("from_storage", "new:")]
    failed = transformed("from_storage", "new:", "unknown-non-grpc")
    unknown = transformed("from_storage", "unknown", "unknown-non-grpc")
    stored = await counted.to_storage(b"x", KEY)
    await counted.from_storage(stored, KEY)
    assert [transformed("to_storage", "new:"), transformed("from_storage", "new:")] == [each + 1 for each in before]
    for unreadable in (stored[:-1], b"nobody's:x"):
        with pytest.raises(TransformFailed):
            await counted.from_storage(unreadable, KEY)
    assert transformed("from_storage", "new:", "unknown-non-grpc") == failed + 1
    assert transformed("from_storage", "unknown", "unknown-non-grpc") == unknown + 1
