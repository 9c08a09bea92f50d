"""Signatures of bundles: Ed25519, detached, one file for each bundle and key.

What is signed is the key and the content address of the bundle, which covers every array, the meta and, through
``vocab_digest``, the vocab; so a signature says "this is what belongs under this key".

File         lines ``toolc signature 1``, the key, the content address, the public key, the signature; hexadecimal.
Leaves out   making keys: ``openssl genpkey -algorithm ed25519``. Which keys to trust: the caller's list.
Invariants   nothing in the file is believed: the text that was signed is made again from what is being opened.
Source       RFC 8032, as the package cryptography has it, which is imported on use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import SignatureError, StoreError

HEAD = "toolc signature 1"
MAX_BYTES = 1024
_HEX = re.compile(r"[0-9a-f]{64}\Z")
_PUBLIC = "a PEM file, or 64 lower-case hexadecimal digits"
_HINT = "toolc reads Ed25519 keys as PEM, which `openssl genpkey -algorithm ed25519` writes"


@dataclass(frozen=True)
class PublicKey:
    """One that bundles may be signed by; ``hex``: its 32 bytes as 64 hexadecimal digits."""

    hex: str

    @staticmethod
    def read(source: str | os.PathLike[str]) -> PublicKey:
        """A public key: 64 hexadecimal digits, or a PEM file of the public or of the private key."""
        if not isinstance(source, (str, os.PathLike)):
            raise SignatureError("this is no public key", found=type(source).__name__, expected=_PUBLIC)
        if isinstance(source, str) and _HEX.match(source):
            return PublicKey(source)
        data = _file(source, _PUBLIC)
        modules = _cryptography()
        if b"PRIVATE KEY" in data:
            return PublicKey(SigningKey.read(source).public)
        try:
            key = modules.serialization.load_pem_public_key(data)
        except (ValueError, modules.UnsupportedAlgorithm) as error:
            raise SignatureError(
                "this is no public key", place=str(source), found=str(error)[:120], hint=_HINT
            ) from None
        if not isinstance(key, modules.Ed25519PublicKey):
            raise SignatureError("this key is of another kind", place=str(source), found=type(key).__name__, hint=_HINT)
        return PublicKey(key.public_bytes_raw().hex())


class SigningKey:
    """A private key."""

    def __init__(self, key: Any) -> None:
        self._key = key
        self.public: str = key.public_key().public_bytes_raw().hex()

    @staticmethod
    def read(source: str | os.PathLike[str]) -> SigningKey:
        """A private key from a PEM file without a password."""
        data, modules = _file(source, "a PEM file"), _cryptography()
        try:
            key = modules.serialization.load_pem_private_key(data, password=None)
        except (ValueError, TypeError, modules.UnsupportedAlgorithm) as error:
            raise SignatureError(
                "this is no private key", place=str(source), found=str(error)[:120], hint=_HINT
            ) from None
        if not isinstance(key, modules.Ed25519PrivateKey):
            raise SignatureError("this key is of another kind", place=str(source), found=type(key).__name__, hint=_HINT)
        return SigningKey(key)

    def sign(self, key: str, digest: str) -> bytes:
        """The signature file of the bundle with this content address under this key."""
        signature = self._key.sign(_text(key, digest)).hex()
        return "\n".join([HEAD, key, digest, self.public, signature, ""]).encode()


def signature_name(key: str, public: str) -> str:
    """The name of a signature file."""
    return f"{key}.{public}.sig"


def check_signature(place: str, data: bytes, key: str, digest: str, public: PublicKey) -> None:
    """Refuse a signature file that is not that of this bundle, under this key, by this public key.

    Raises:
        SignatureError: with the reason.
    """
    modules = _cryptography()
    lines = data.decode("ascii", "replace").split("\n")
    if len(lines) != 6 or lines[0] != HEAD or lines[5]:
        raise SignatureError("the signature file is damaged", place=place, found=repr(data[:40]), expected=HEAD)
    for name, found, wanted in zip(("key", "digest", "public key"), lines[1:4], (key, digest, public.hex)):
        if found != wanted:
            raise SignatureError(
                f"the signature is of another {name}",
                place=place,
                found=found[:64],
                expected=wanted,
                hint="the bundle or its signature was renamed, edited or replaced; sign the bundle again",
            )
    try:
        signature = bytes.fromhex(lines[4])
        modules.Ed25519PublicKey.from_public_bytes(bytes.fromhex(public.hex)).verify(signature, _text(key, digest))
    except (ValueError, modules.InvalidSignature):
        raise SignatureError(
            "the signature is not by the key that it names",
            place=place,
            expected=public.hex,
            hint="sign the bundle again",
        ) from None


def read_allowed(
    allow: Sequence[str | os.PathLike[str] | PublicKey] | str | os.PathLike[str] | PublicKey | None,
) -> tuple[PublicKey, ...] | None:
    """The allow-list as keys, one at least; one key alone is a list of one. None: no signature is asked for.

    Raises:
        SignatureError: what is listed is no key, or the list is empty, so that no bundle could pass.
    """
    if allow is None:
        return None
    if isinstance(allow, (str, os.PathLike, PublicKey)):
        allow = [allow] if allow else []
    if not isinstance(allow, Iterable):
        raise SignatureError(
            "this is no list of public keys", place="allow", found=type(allow).__name__, expected=_PUBLIC
        )
    keys = tuple(one if isinstance(one, PublicKey) else PublicKey.read(one) for one in allow)
    if not keys:
        raise SignatureError(
            "the list of allowed keys is empty, so no bundle is allowed",
            place="allow",
            found="no key",
            expected="the public key of a signer",
            hint="name one, or give no list (None) if bundles need no signature",
        )
    return keys


def _text(key: str, digest: str) -> bytes:
    return f"{HEAD}\n{key}\n{digest}\n".encode()


def _file(source: str | os.PathLike[str], expected: str) -> bytes:
    try:
        return Path(source).read_bytes()
    except OSError as error:
        found = error.strerror or str(error)
        raise SignatureError("cannot read this key", place=str(source), found=found, expected=expected) from None


class _Modules:
    """What is used of the package cryptography."""

    def __init__(self) -> None:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

        self.InvalidSignature, self.UnsupportedAlgorithm = InvalidSignature, UnsupportedAlgorithm
        self.serialization = serialization
        self.Ed25519PrivateKey, self.Ed25519PublicKey = Ed25519PrivateKey, Ed25519PublicKey


def _cryptography() -> Any:
    try:
        return _Modules()
    except ImportError:
        raise StoreError("signatures need the package cryptography", hint="pip install 'toolc[sign]'") from None
