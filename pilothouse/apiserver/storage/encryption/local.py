"""Transformers with keys in the configuration: AES-CBC, AES-GCM, secretbox, identity."""

from __future__ import annotations

import os

from pilothouse.apiserver.storage.encryption.transformer import Plain
from pilothouse.apiserver.storage.errors import TransformFailed

_BLOCK = 16
_GCM_NONCE = 12
TOO_SHORT = "the stored data was shorter than the required size"
ENCRYPTED_PREFIX = b"k8s:enc:"


class Identity:
    """Stores values unencrypted, and rejects encrypted values."""

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        return value

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        if stored.startswith(ENCRYPTED_PREFIX):
            raise TransformFailed("identity transformer tried to read encrypted data")
        return Plain(stored)


class AesGcm:
    """AES-GCM: nonce and ciphertext, bound to the storage key."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(secret)

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        nonce = os.urandom(_GCM_NONCE)
        return nonce + self._cipher.encrypt(nonce, value, key)

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        from cryptography.exceptions import InvalidTag

        if len(stored) < _GCM_NONCE:
            raise TransformFailed(TOO_SHORT)
        try:
            return Plain(self._cipher.decrypt(stored[:_GCM_NONCE], stored[_GCM_NONCE:], key))
        except InvalidTag:
            raise TransformFailed("cipher: message authentication failed") from None


class AesCbc:
    """AES-CBC, for existing data: it does not detect tampering."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.algorithms import AES

        self._algorithm = AES(secret)

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        vector, missing = os.urandom(_BLOCK), _BLOCK - len(value) % _BLOCK
        encryptor = Cipher(self._algorithm, CBC(vector)).encryptor()
        return vector + encryptor.update(value + bytes([missing]) * missing) + encryptor.finalize()

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.modes import CBC

        if len(stored) < _BLOCK:
            raise TransformFailed(TOO_SHORT)
        vector, data = stored[:_BLOCK], stored[_BLOCK:]
        if not data or len(data) % _BLOCK:
            raise TransformFailed("the stored data is not a multiple of the block size")
        decryptor = Cipher(self._algorithm, CBC(vector)).decryptor()
        padded = decryptor.update(data) + decryptor.finalize()
        count = padded[-1]
        if not 0 < count <= len(padded):
            raise TransformFailed("invalid PKCS7 data (empty or not padded)")
        if padded[-count:] != bytes([count]) * count:
            raise TransformFailed("invalid padding on input")
        return Plain(padded[:-count])


class Secretbox:
    """NaCl's secretbox: XSalsa20 and Poly1305."""

    def __init__(self, secret: bytes) -> None:
        from nacl.secret import SecretBox

        self._box = SecretBox(secret)

    async def to_storage(self, value: bytes, key: bytes) -> bytes:
        return bytes(self._box.encrypt(value))

    async def from_storage(self, stored: bytes, key: bytes) -> Plain:
        from nacl.exceptions import CryptoError
        from nacl.secret import SecretBox

        if len(stored) < SecretBox.NONCE_SIZE:
            raise TransformFailed(TOO_SHORT)
        try:
            return Plain(self._box.decrypt(stored))
        except CryptoError:
            raise TransformFailed("output array was not large enough for encryption") from None
