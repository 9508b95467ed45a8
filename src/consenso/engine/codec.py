"""Messages and states as bytes: frozen dataclasses of arrays and numbers, and the envelopes that carry them.

A record is written as a head that lists its fields, their types and shapes, and the raw numbers. There is no pickle and
nothing in the bytes chooses code. A message from outside is read against a `RecordSchema`, which the reader makes from
public facts alone: its head must be the expected one byte for byte, its length the expected one, its numbers finite.
Whatever differs is refused with a `MessageError`, whose reason never quotes the message.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from consenso.errors import InputError
from consenso.errors import MessageError as MessageError  # for whoever reads messages

R = TypeVar("R")

VERSION = 1
LARGEST_HEAD = 4096  # bytes; heads of real messages have a few hundred

_RECORD, _ENVELOPE = b"CNSr", b"CNSe"
_PREFIX = struct.Struct("<4sBI")  # what it is, version, length of the head
_ARRAYS: dict[str, np.dtype[Any]] = {
    "f8": np.dtype("<f8"),
    "f4": np.dtype("<f4"),
    "i8": np.dtype("<i8"),
    "b1": np.dtype("|b1"),
}
_NUMBERS: dict[str, np.dtype[Any]] = {"float": np.dtype("<f8"), "int": np.dtype("<i8"), "bool": np.dtype("|b1")}
_TYPES = _ARRAYS | _NUMBERS
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,64}", re.ASCII)
_HEX = re.compile(r"[0-9a-f]{64}")

EnvelopeKind = Literal["ask", "answer", "refusal", "end", "said", "later", "token", "item", "done"]


@dataclass(frozen=True, kw_only=True)
class Field:
    """One entry of a record: an array type (f8, f4, i8, b1) with its shape, or a number (float, int, bool)."""

    name: str
    kind: str
    shape: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return math.prod(self.shape) * _TYPES[self.kind].itemsize


@dataclass(frozen=True, kw_only=True)
class RecordSchema:
    """What a record must look like."""

    record: str
    fields: tuple[Field, ...]

    @classmethod
    def of(cls, record: object) -> RecordSchema:
        """The schema of a record at hand."""
        return cls.of_values(type(record).__name__, _values(record))

    @classmethod
    def of_values(cls, record: str, values: Mapping[str, Any]) -> RecordSchema:
        """The schema of named values."""
        return cls(record=record, fields=tuple(_field(name, value) for name, value in values.items()))

    @cached_property
    def head(self) -> bytes:
        """The one text that describes the fields."""
        listed = [[each.name, each.kind, list(each.shape)] for each in self.fields]
        return json.dumps({"fields": listed, "record": self.record}, separators=(",", ":")).encode()

    @cached_property
    def size(self) -> int:
        """Bytes of every record with this schema: they all have the same."""
        return _PREFIX.size + len(self.head) + sum(each.size for each in self.fields)


def encode(record: object) -> bytes:
    """A record as bytes."""
    return encode_values(type(record).__name__, _values(record))


def decode(kind: type[R], blob: bytes, schema: RecordSchema | None = None) -> R:
    """The record that `encode` wrote.

    With a schema, for what comes from outside: nothing else than the schema is accepted, and finite numbers only.
    Without one, for what this process wrote to its own disk: the fields must be those of the record.
    """
    values = decode_values(blob, _read_own_schema(kind, blob) if schema is None else schema, finite=schema is not None)
    return kind(**values)


def encode_values(record: str, values: Mapping[str, Any]) -> bytes:
    """Named values as the bytes of a record."""
    schema = RecordSchema.of_values(record, values)
    numbers = [np.ascontiguousarray(values[each.name], dtype=_TYPES[each.kind]).tobytes() for each in schema.fields]
    return b"".join([_PREFIX.pack(_RECORD, VERSION, len(schema.head)), schema.head, *numbers])


def decode_values(blob: bytes, schema: RecordSchema, *, finite: bool = True) -> dict[str, Any]:
    """The named values of a record, which must have the schema."""
    head, start = _head(blob, _RECORD, schema.size)
    if head != schema.head:
        raise MessageError(f"{schema.record}: the fields, types or shapes are not those that public facts ask for.")
    if len(blob) != schema.size:
        raise MessageError(f"{schema.record}: {schema.size} bytes are due and {len(blob)} came.")
    values: dict[str, Any] = {}
    for each in schema.fields:
        count = math.prod(each.shape)
        # A copy: the numbers must not keep the message alive, and may be written to.
        array = np.frombuffer(blob, dtype=_TYPES[each.kind], count=count, offset=start).astype(_native(each.kind))
        start += each.size
        if finite and each.kind in ("f8", "f4", "float") and not np.isfinite(array).all():
            raise MessageError(f"{schema.record}: a number in {each.name!r} is not finite.")
        if each.kind in ("b1", "bool") and array.view(np.uint8).max(initial=0) > 1:
            raise MessageError(f"{schema.record}: a flag in {each.name!r} is neither true nor false.")
        values[each.name] = array[0].item() if each.kind in _NUMBERS else array.reshape(each.shape)
    return values


def _values(record: object) -> dict[str, Any]:
    return {each.name: getattr(record, each.name) for each in dataclasses.fields(record)}  # type: ignore[arg-type]


def _field(name: str, value: Any) -> Field:
    if isinstance(value, np.ndarray):
        kind = {"f": f"f{value.dtype.itemsize}", "i": "i8", "b": "b1"}.get(value.dtype.kind, "")
        if kind in _ARRAYS:
            return Field(name=name, kind=kind, shape=value.shape)
    elif isinstance(value, bool | np.bool_):
        return Field(name=name, kind="bool")
    elif isinstance(value, int | np.integer):
        return Field(name=name, kind="int")
    elif isinstance(value, float | np.floating):
        return Field(name=name, kind="float")
    kind = str(value.dtype) if isinstance(value, np.ndarray) else type(value).__name__
    raise InputError(f"encode({name!r}): a record holds arrays of numbers and numbers, not {kind}; convert it.")


def _native(kind: str) -> np.dtype[Any]:
    return _TYPES[kind].newbyteorder("=")


def _head(blob: bytes, what: bytes, limit: int) -> tuple[bytes, int]:
    """The head of a frame and where its content starts."""
    if len(blob) > limit:
        raise MessageError(f"a message of {len(blob)} bytes came where at most {limit} are due.")
    if len(blob) < _PREFIX.size:
        raise MessageError("a message broke off before its head.")
    found, version, length = _PREFIX.unpack_from(blob)
    if found != what:
        raise MessageError("the bytes are not a message of this library, or one of another kind than is due.")
    if version != VERSION:
        raise MessageError(f"the message has format {version} and this version reads {VERSION}; use the same version.")
    if length > max(LARGEST_HEAD, limit) or _PREFIX.size + length > len(blob):
        raise MessageError("the head of a message is longer than it may be.")
    start = _PREFIX.size + length
    return blob[_PREFIX.size : start], start


def _read_own_schema(kind: type[Any], blob: bytes) -> RecordSchema:
    """The schema that a record on the own disk states."""
    head, _ = _head(blob, _RECORD, len(blob))
    names = [each.name for each in dataclasses.fields(kind)]
    try:
        told = json.loads(head)
        fields = tuple(Field(name=name, kind=which, shape=tuple(shape)) for name, which, shape in told["fields"])
        record = str(told["record"])
    except (ValueError, TypeError, KeyError) as error:
        raise MessageError(f"{kind.__name__}: the head of a record cannot be read.") from error
    if [each.name for each in fields] != names or any(each.kind not in _TYPES for each in fields):
        raise MessageError(f"{kind.__name__}: a record has the fields {names}, and others were stored.")
    return RecordSchema(record=record, fields=fields)


# --- envelopes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MessageEnvelope:
    """What every message says of itself: its run, who sends it to whom, and the round that it belongs to.

    run: hash of study, code version and label, 64 hexadecimal digits. stage: which part of a round. counted: to a
    party, the last round of its own that entered a sum; -1 for none.
    """

    kind: EnvelopeKind
    run: str
    sender: str
    recipient: str
    round: int = 0
    stage: str = ""
    counted: int = -1
    body: bytes = b""


_TEXTS = ("kind", "run", "sender", "recipient", "stage")
_WHOLE = ("round", "counted")
# What an envelope adds to its body at most, with names of 64 characters that JSON escapes.
ENVELOPE_SIZE = _PREFIX.size + 2048


def pack(envelope: MessageEnvelope) -> bytes:
    """An envelope as bytes."""
    told = {name: getattr(envelope, name) for name in (*_TEXTS, *_WHOLE)}
    head = json.dumps(told, sort_keys=True, separators=(",", ":")).encode()
    return _PREFIX.pack(_ENVELOPE, VERSION, len(head)) + head + envelope.body


def unpack(blob: bytes, *, run: str, recipient: str, sender: str, limit: int) -> MessageEnvelope:
    """The envelope that came over the line of `sender`; refused unless it says so itself, and is for this run.

    `limit` is the most that its body may have, in bytes.
    """
    head, start = _head(blob, _ENVELOPE, limit + ENVELOPE_SIZE)
    if len(blob) - start > limit:
        raise MessageError(f"a message with {len(blob) - start} bytes of content came where at most {limit} are due.")
    try:
        told = json.loads(head)
    except (ValueError, RecursionError) as error:
        raise MessageError("the head of an envelope cannot be read.") from error
    _check_header(told)
    envelope = MessageEnvelope(**told, body=blob[start:])
    if envelope.run != run:
        raise MessageError("the message belongs to another study, version or run than the one accepted here.")
    if envelope.sender != sender:
        raise MessageError("the message names another sender than the one on whose line it came.")
    if envelope.recipient != recipient:
        raise MessageError("the message is for somebody else.")
    return envelope


def _check_header(told: Any) -> None:
    if not isinstance(told, dict) or set(told) != {*_TEXTS, *_WHOLE}:
        raise MessageError("an envelope has other fields than it should.")
    if not all(isinstance(told[name], str) and (_NAME.fullmatch(told[name]) or not told[name]) for name in _TEXTS):
        raise MessageError("a name on an envelope is not a short printable text.")
    if told["kind"] not in get_args(EnvelopeKind) or not _HEX.fullmatch(told["run"]):
        raise MessageError("the kind or the run of an envelope is not one that there is.")
    for name in _WHOLE:
        value = told[name]
        if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value < 1 << 62:
            raise MessageError(f"the {name} of an envelope is not a number of a round.")
