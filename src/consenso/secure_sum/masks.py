"""The cryptography of the secure sum: X25519 agreement, HKDF-SHA256, ChaCha20 streams, ChaCha20-Poly1305 envelopes.

Every derived key names its purpose, the run, the occasion and the two parties, so that no stream is ever used twice.
"""

from __future__ import annotations

import hashlib
import hmac
from functools import cached_property

import numpy as np
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from consenso.engine.fixed_point import Words
from consenso.errors import TamperError
from consenso.secure_sum.sharing import Entropy

KEY_BYTES = 32
_NONCE_BYTES, _TAG_BYTES = 12, 16
ENVELOPE_BYTES = _NONCE_BYTES + _TAG_BYTES  # what an envelope adds to its content


class KeyPair:
    """A secret X25519 key of 32 bytes and its public half."""

    def __init__(self, secret: bytes) -> None:
        self.secret = secret
        self._private = X25519PrivateKey.from_private_bytes(secret)

    @cached_property
    def public(self) -> bytes:
        """The public half, 32 bytes."""
        return self._private.public_key().public_bytes_raw()

    @classmethod
    def draw(cls, entropy: Entropy) -> KeyPair:
        return cls(entropy(KEY_BYTES))

    def agree(self, public: bytes) -> bytes:
        """The secret that the owners of both keys can compute and nobody else."""
        try:
            return self._private.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:
            raise TamperError("secure sum: a public key is none of X25519; its owner must advertise another.") from None


def derive(secret: bytes, run: bytes, purpose: str, *context: bytes) -> bytes:
    """A key for one purpose. Parts of the context have fixed lengths, so that no two contexts read the same."""
    return expand(extract(secret, run), purpose, *context)


def extract(secret: bytes, run: bytes) -> bytes:
    """The first half of HKDF-SHA256, once for a secret from which many keys are derived."""
    return hmac.digest(run, secret, "sha256")


def expand(extracted: bytes, purpose: str, *context: bytes) -> bytes:
    """The second half, for keys of one hash's length."""
    info = b"consenso secure sum 1|" + purpose.encode() + b"|" + b"|".join(context)
    return hmac.digest(extracted, info + b"\1", "sha256")


def name(party: int) -> bytes:
    """A party as bytes of a context."""
    return party.to_bytes(8, "big")


class Blender:
    """Adds masks to a vector of words in place. Its buffers are reused: a round expands as many masks as parties."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self._zeros = bytes(8 * words.size)
        self._stream = bytearray(8 * words.size + _NONCE_BYTES)
        self._view = np.frombuffer(self._stream, dtype="<u8", count=words.size)

    def add(self, key: bytes, *, negative: bool = False) -> None:
        """Add the key's stream of uniform words, or take it away. A key has one stream: add it to one vector only."""
        Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor().update_into(self._zeros, self._stream)
        (np.subtract if negative else np.add)(self.words, self._view, out=self.words)


def seal(key: bytes, content: bytes, context: bytes, entropy: Entropy) -> bytes:
    """An envelope that only who has the key can open, and only in the same context."""
    nonce = entropy(_NONCE_BYTES)
    return nonce + ChaCha20Poly1305(key).encrypt(nonce, content, context)


def unseal(key: bytes, envelope: bytes, context: bytes) -> bytes:
    """The content of an envelope; TamperError where it was changed or belongs elsewhere."""
    try:
        return ChaCha20Poly1305(key).decrypt(envelope[:_NONCE_BYTES], envelope[_NONCE_BYTES:], context)
    except InvalidTag:
        raise TamperError(
            "secure sum: an envelope does not open; it was changed on its way, or belongs to another round."
        ) from None


def commit(seed: bytes, context: bytes) -> bytes:
    """A hash that fixes a seed of full entropy without telling it."""
    return hashlib.sha256(b"consenso secure sum 1|commitment|" + context + seed).digest()
