"""Keys of service account tokens: which files hold some, what they are called, and how others are shown them."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from service_account_tokens import public_pem, write_key

from pilothouse.kube.serviceaccount.keys import SigningKey, VerifyingKeys, read_verifying_keys

RSA = rsa.generate_private_key(65537, 2048)
P256 = ec.generate_private_key(ec.SECP256R1())


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (RSA, "RS256"),
        (P256, "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ec.generate_private_key(ec.SECP521R1()), "ES512"),
    ],
)
def test_a_key_has_one_algorithm_and_verifies_as_others_are_shown_it(
    key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey, algorithm: str, tmp_path: Path
) -> None:
    signing = SigningKey(write_key(tmp_path / "key", key))
    assert signing.verifying.algorithm == algorithm
    shown = signing.verifying.jwk
    assert (shown["alg"], shown["use"], shown["kid"]) == (algorithm, "sig", signing.verifying.id)
    assert "d" not in shown
    token = jwt.PyJWS().encode(b"{}", signing.private, algorithm=algorithm)
    assert jwt.PyJWS().decode(token, jwt.PyJWK(shown).key, algorithms=[algorithm]) == b"{}"


def test_a_keys_id_is_the_hash_of_its_public_half(tmp_path: Path) -> None:
    der = P256.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    expected = urlsafe_b64encode(hashlib.sha256(der).digest()).rstrip(b"=").decode()
    assert SigningKey(write_key(tmp_path / "key", P256)).verifying.id == expected


def test_a_file_may_hold_several_keys_private_or_public(tmp_path: Path) -> None:
    file = write_key(tmp_path / "keys", RSA)
    file.write_bytes(file.read_bytes() + b"a remark\n" + public_pem(P256))
    assert [key.algorithm for key in read_verifying_keys(file)] == ["RS256", "ES256"]


def test_keys_are_found_by_their_ids_and_all_are_tried_for_none(tmp_path: Path) -> None:
    first, second = write_key(tmp_path / "a", RSA), write_key(tmp_path / "b", P256)
    keys = VerifyingKeys([first, second])
    assert keys.with_id(SigningKey(second).verifying.id) == [keys.all[1]]
    assert keys.with_id("") == keys.all
    assert keys.with_id("other") == []


def test_a_file_without_keys_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none").write_text("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    with pytest.raises(ValueError, match="does not contain any valid RSA or ECDSA public keys"):
        read_verifying_keys(tmp_path / "none")
    (tmp_path / "public").write_bytes(public_pem(P256))
    with pytest.raises(ValueError, match="does not contain a valid private key"):
        _ = SigningKey(tmp_path / "public").private


def test_other_curves_are_no_keys(tmp_path: Path) -> None:
    file = write_key(tmp_path / "key", ec.generate_private_key(ec.SECP256K1()))
    with pytest.raises(ValueError):
        read_verifying_keys(file)


async def test_a_file_that_has_changed_is_read_again_and_one_that_makes_no_sense_changes_nothing(
    tmp_path: Path,
) -> None:
    file = write_key(tmp_path / "key", RSA)
    signing, verifying = SigningKey(file, poll_seconds=0), VerifyingKeys([file], poll_seconds=0)

    async def algorithms() -> list[str]:
        await signing.load()
        await verifying.load()
        return [signing.verifying.algorithm, *(key.algorithm for key in verifying.all)]

    assert await algorithms() == ["RS256", "RS256"]
    write_key(file, P256)
    assert await algorithms() == ["ES256", "ES256"]
    file.write_text("half a key")
    assert await algorithms() == ["ES256", "ES256"]
    file.unlink()
    assert await algorithms() == ["ES256", "ES256"]
