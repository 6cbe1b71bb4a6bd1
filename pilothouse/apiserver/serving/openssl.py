"""Three things that OpenSSL can do for a server and Python's `ssl` does not offer: to go on with a handshake whose
client certificate does not verify, to name the CAs whose certificates are asked for, and to keep no sessions.

Only what OpenSSL documents is called, in the very library that `ssl` uses, and only on contexts that this library has
reported as its own when `ssl` made them: nothing is assumed about how Python lays out its objects. Where the library
cannot be reached (some Pythons have it linked in), `server_context` gives an ordinary context.
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
    """The context and the handshake that this thread is at: OpenSSL calls back in the thread that called it."""

    made: int | None = None  # the SSL_CTX that was made last
    handshaking: LenientConnection | None = None


_here = _ThreadState()


class LenientConnection(ssl.SSLObject):
    verified = False
    """Whether the client has shown a certificate that OpenSSL found good. It may also have shown one that is not."""

    def do_handshake(self) -> None:
        _here.handshaking = self
        try:
            super().do_handshake()
        finally:
            _here.handshaking = None


def server_context() -> tuple[ssl.SSLContext, CertificateRequests | None]:
    """A new context, and what can be asked of its clients beyond `ssl`, if anything."""
    library = _library()
    _here.made = None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made, _here.made = _here.made, None
    return context, None if library is None or made is None else CertificateRequests(library, context, made)


class CertificateRequests:
    """Sets how clients are asked for their certificates. To be used only as long as the context lives."""

    def __init__(self, library: _Library, context: ssl.SSLContext, pointer: int) -> None:
        self._functions, self._verify = library.functions, library.verify
        self._context = context
        self._pointer = pointer

    def keep_no_sessions(self) -> None:
        """Each TLS 1.2 session would stay in memory, with the certificates that its client has shown."""
        self._functions.SSL_CTX_ctrl(self._pointer, _SET_SESSION_CACHE_MODE, _CACHE_OFF, None)

    def go_on_unverified(self) -> None:
        """Finishes handshakes whatever the certificate is worth; the connection's `verified` tells."""
        self._context.sslobject_class = LenientConnection
        self._functions.SSL_CTX_set_cert_verify_callback(self._pointer, self._verify, None)

    def name_authorities(self, files: Iterable[Path]) -> None:
        """Says to clients whose certificates are wanted. Raises ValueError for a file without certificates."""
        first, *others = (str(file).encode() for file in files)
        names = self._functions.SSL_load_client_CA_file(first)
        if names is None:
            raise ValueError(f"{first.decode()}: no certificates")
        # From here on the list is the context's, which frees it.
        self._functions.SSL_CTX_set_client_CA_list(self._pointer, names)
        for other in others:
            if not self._functions.SSL_add_file_cert_subjects_to_stack(names, other):
                raise ValueError(f"{other.decode()}: no certificates")


class _Library:
    def __init__(self) -> None:
        """Raises AttributeError, OSError, TypeError where it cannot be reached."""
        self.functions = ctypes.CDLL(_ssl.__file__)
        for name, (returned, taken) in _FUNCTIONS.items():
            function = getattr(self.functions, name)
            function.restype, function.argtypes = returned, taken
        self.verify = _Verify(self._on_verify)
        self._note_context = _New(_on_new_context)
        self.functions.CRYPTO_get_ex_new_index(_SSL_CTX, 0, None, self._note_context, None, None)

    def _on_verify(self, chain: int, _: int | None) -> int:
        """An exception here makes the handshake fail. Why a certificate is not good is nobody else's error."""
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
    """Return OpenSSL's functions, made once and for ever: OpenSSL keeps the callbacks that it is given."""
    try:
        return _Library()
    except (AttributeError, OSError, TypeError) as error:
        log.info("Client certificates that do not verify will fail in the handshake: %s", error)
        return None
