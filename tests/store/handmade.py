"""Small bundles with keys, made without the compiler; and what may be done to the files of a store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.runtime.handmade import bundle
from toolc.runtime import Bundle
from toolc.runtime.store.key import key_of
from toolc.runtime.store.signing import SigningKey


def keyed(number: int = 0, name: str = "brackets") -> Bundle:
    """A bundle that says it was compiled from spec `number`."""
    made = bundle("brackets")
    more = {"format": 1, "recipe": "00" * 16, "spec": {"kind": "grammar", "digest": f"{number:032x}", "name": name}}
    return replace(made, meta={**made.meta, **more})


def key(number: int = 0) -> str:
    return key_of(keyed(number).meta)


def new_signer(folder: Path, name: str) -> tuple[SigningKey, Path]:
    """A private key, and the PEM file of its public half."""
    private = Ed25519PrivateKey.generate()
    (folder / f"{name}.pem").write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    public = folder / f"{name}.pub"
    public.write_bytes(
        private.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    return SigningKey.read(folder / f"{name}.pem"), public
