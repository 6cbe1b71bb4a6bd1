"""OpenSSL features missing from `ssl`: completing handshakes with unverified client certificates, naming the accepted
CAs, and disabling the session cache.

Only documented functions are called, in the library that `ssl` uses, and only on contexts that this library reported on
creation. Nothing depends on Python's object layout. If the library is unreachable (some builds link it statically),
`server_context` returns an ordinary context.
"""

from __future__ import annotations

import _ssl
import ctypes
import logging
import ssl
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

log = logging.getLogger(__name__)

_SSL_CTX: Final = 1  # CRYPTO_EX_INDEX_SSL_CTX
_SET_SESSION_CACHE_MODE: Final = 44  # SSL_CTRL_SET_SESS_CACHE_MODE
_CACHE_OFF: Final = 0  # SSL_SESS_CACHE_OFF
_Pointer = ctypes.c_void_p
_New = ctypes.CFUNCTYPE(None, _Pointer, _Pointer, _Pointer, ctypes.c_int, ctypes.c_long, _Pointer)
_Verify = ctypes.CFUNCTYPE(ctypes.c_int, _Pointer, _Pointer)
_FUNCTIONS: Final[dict[str, tuple[Any, list[Any]]]] = {
    "CRYPTO_get_ex_new_index": (ctypes.c_int, [ctypes.c_int, ctypes.c_long, _Pointer, _New, _Pointer, _Pointer]),
    "ERR_pop_to_mark": (ctypes.c_int, []),
    "ERR_set_mark": (ctypes.c_int, []),
    "SSL_CTX_ctrl": (ctypes.c_long, [_Pointer, ctypes.c_int, ctypes.c_long, _Pointer]),
    "SSL_CTX_set_cert_verify_callback": (None, [_Pointer, _Verify, _Pointer]),
    "SSL_CTX_set_client_CA_list": (None, [_Pointer, _Pointer]),
    "SSL_add_file_cert_subjects_to_stack": (ctypes.c_int, [_Pointer, ctypes.c_char_p]),
    "SSL_load_client_CA_file": (_Pointer, [ctypes.c_char_p]),
    "X509_verify_cert": (ctypes.c_int, [_Pointer]),
}


class _ThreadState(threading.local):
    """Context and handshake of the current thread: OpenSSL invokes callbacks in the calling thread."""

    made: int | None = None  # the last created SSL_CTX
    handshaking: LenientConnection | None = None


_here = _ThreadState()


class LenientConnection(ssl.SSLObject):
    verified = False
    """Whether the client presented a verified certificate; False for a missing or unverified certificate."""

    def do_handshake(self) -> None:
        _here.handshaking = self
        try:
            super().do_handshake()
        finally:
            _here.handshaking = None


def server_context() -> tuple[ssl.SSLContext, CertificateRequests | None]:
    """Return a new context, and its extended certificate settings if available."""
    library = _library()
    _here.made = None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made, _here.made = _here.made, None
    return context, None if library is None or made is None else CertificateRequests(library, context, made)


class CertificateRequests:
    """Configures client certificate requests; valid as long as the context lives."""

    def __init__(self, library: _Library, context: ssl.SSLContext, pointer: int) -> None:
        self._functions, self._verify = library.functions, library.verify
        self._context = context
        self._pointer = pointer

    def keep_no_sessions(self) -> None:
        """Disable the session cache: each TLS 1.2 session would keep the client's certificates in memory."""
        self._functions.SSL_CTX_ctrl(self._pointer, _SET_SESSION_CACHE_MODE, _CACHE_OFF, None)

    def go_on_unverified(self) -> None:
        """Complete handshakes with any certificate; the connection's `verified` has the outcome."""
        self._context.sslobject_class = LenientConnection
        self._functions.SSL_CTX_set_cert_verify_callback(self._pointer, self._verify, None)

    def name_authorities(self, files: Iterable[Path]) -> None:
        """Send the names of the accepted CAs to clients. Raises ValueError for a file without certificates."""
        first, *others = (str(file).encode() for file in files)
        names = self._functions.SSL_load_client_CA_file(first)
        if names is None:
            raise ValueError(f"{first.decode()}: no certificates")
        # The context takes ownership of the list.
        self._functions.SSL_CTX_set_client_CA_list(self._pointer, names)
        for other in others:
            if not self._functions.SSL_add_file_cert_subjects_to_stack(names, other):
                raise ValueError(f"{other.decode()}: no certificates")


class _Library:
    def __init__(self) -> None:
        """Raises AttributeError, OSError or TypeError if the library is unreachable."""
        self.functions = ctypes.CDLL(_ssl.__file__)
        for name, (returned, taken) in _FUNCTIONS.items():
            function = getattr(self.functions, name)
            function.restype, function.argtypes = returned, taken
        self.verify = _Verify(self._on_verify)
        self._note_context = _New(_on_new_context)
        self.functions.CRYPTO_get_ex_new_index(_SSL_CTX, 0, None, self._note_context, None, None)

    def _on_verify(self, chain: int, _: int | None) -> int:
        """Verify the chain, and clear verification errors from OpenSSL's queue. An exception fails the handshake."""
        connection = _here.handshaking
        assert connection is not None
        self.functions.ERR_set_mark()
        connection.verified = self.functions.X509_verify_cert(chain) == 1
        self.functions.ERR_pop_to_mark()
        return 1


def _on_new_context(context: int, *_: object) -> None:
    _here.made = context


@cache
def _library() -> _Library | None:
    """Return OpenSSL's functions, loaded once: OpenSSL keeps references to the callbacks."""
    try:
        return _Library()
    except (AttributeError, OSError, TypeError) as error:
        log.info("Client certificates that do not verify will fail in the handshake: %s", error)
        return None
