from __future__ import annotations

import dataclasses
import json
import logging
import pickle
import struct
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from consenso.algorithms import discover
from consenso.arrays import Array
from consenso.engine.codec import (
    ENVELOPE_SIZE,
    VERSION,
    MessageEnvelope,
    MessageError,
    RecordSchema,
    decode,
    encode,
    pack,
    unpack,
)
from consenso.errors import InputError
from consenso.federation.message_schemas import HubMessageSchemas, PeerMessageSchemas
from consenso.testing.laws import settings_of

RUN = "ab" * 32


@dataclass(frozen=True)
class Message:
    z: Array
    counts: Array
    flags: Array
    clip: float
    steps: int
    late: bool


def message(size: int = 3, **changes) -> Message:
    made = Message(
        z=np.linspace(-1, 1, size),
        counts=np.arange(4).reshape(2, 2),
        flags=np.array([True, False]),
        clip=0.5,
        steps=7,
        late=True,
    )
    return dataclasses.replace(made, **changes)


def same(one, other) -> bool:
    return all(
        np.asarray(getattr(one, each.name)).tobytes() == np.asarray(getattr(other, each.name)).tobytes()
        and type(getattr(one, each.name)) is type(getattr(other, each.name))
        for each in dataclasses.fields(one)
    )


def test_a_record_comes_back_bit_for_bit():
    sent = message()
    assert same(decode(Message, encode(sent), RecordSchema.of(sent)), sent)
    assert len(encode(sent)) == RecordSchema.of(sent).size


@given(
    arrays.arrays(
        np.float64, arrays.array_shapes(max_dims=3), elements=st.floats(allow_nan=False, allow_infinity=False)
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**63), 2**63 - 1),
    st.booleans(),
)
def test_any_finite_record_comes_back_bit_for_bit(z, clip, steps, late):
    sent = message(z=z, clip=clip, steps=steps, late=late)
    assert same(decode(Message, encode(sent), RecordSchema.of(sent)), sent)


def test_single_precision_and_empty_arrays_keep_their_type():
    sent = message(z=np.empty((0, 3), dtype=np.float32))
    back = decode(Message, encode(sent), RecordSchema.of(sent))
    assert back.z.dtype == np.float32
    assert back.z.shape == (0, 3)


def test_what_came_may_be_written_to_and_does_not_keep_the_message_alive():
    sent = message()
    back = decode(Message, encode(sent), RecordSchema.of(sent))
    back.z[0] = 5.0
    assert back.z.base is None or not isinstance(back.z.base, bytes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"z": np.zeros(4)},
        {"z": np.zeros((3, 1))},
        {"z": np.zeros(3, dtype=np.float32)},
        {"z": np.zeros(3, dtype=np.int64)},
        {"clip": 1},
        {"steps": 1.0},
        {"late": 1},
        {"flags": np.zeros(2)},
    ],
)
def test_another_shape_or_type_is_refused(wrong):
    with pytest.raises(MessageError, match=r"fields, types or shapes|bytes came where"):
        decode(Message, encode(message(**wrong)), RecordSchema.of(message()))


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(value):
    for wrong in (message(z=np.array([0.0, value, 0.0])), message(clip=value)):
        with pytest.raises(MessageError, match="not finite"):
            decode(Message, encode(wrong), RecordSchema.of(wrong))
        assert same(decode(Message, encode(wrong)), wrong)  # from the own disk it is read as it was written


def test_a_flag_is_true_or_false():
    sent = message()
    blob = bytearray(encode(sent))
    blob[-1] = 7
    with pytest.raises(MessageError, match="neither true nor false"):
        decode(Message, bytes(blob), RecordSchema.of(sent))


@pytest.mark.parametrize("cut", [0, 3, 8, 9, 40, -1])
def test_a_message_that_broke_off_is_refused(cut):
    sent = message()
    with pytest.raises(MessageError):
        decode(Message, encode(sent)[:cut], RecordSchema.of(sent))


def test_a_message_that_is_too_long_is_refused_before_it_is_read():
    sent = message()
    with pytest.raises(MessageError, match="bytes came where at most"):
        decode(Message, encode(sent) + bytes(1000), RecordSchema.of(sent))


def test_another_version_is_refused():
    blob = bytearray(encode(message()))
    blob[4] = VERSION + 1
    with pytest.raises(MessageError, match=f"format {VERSION + 1}"):
        decode(Message, bytes(blob), RecordSchema.of(message()))


def test_pickle_is_never_loaded():
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    schema = RecordSchema.of(message())
    for blob in (pickle.dumps(Bomb()), encode(message())[:9] + pickle.dumps(Bomb())):
        with pytest.raises(MessageError):
            decode(Message, blob, schema)
    with pytest.raises(InputError, match="arrays of numbers and numbers"):
        encode(message(clip=Bomb()))
    with pytest.raises(InputError, match="arrays of numbers and numbers"):
        encode(message(z=np.array([Bomb()], dtype=object)))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused(blob):
    for content in (blob, encode(message())[:9] + blob):
        with pytest.raises(MessageError):
            decode(Message, content, RecordSchema.of(message()))
    for content in (blob, pack(envelope())[:9] + blob):
        with pytest.raises(MessageError):
            unpack(content, run=RUN, sender="ash", recipient="server", limit=500)


@given(st.integers(0, 200), st.integers(0, 255))
def test_a_changed_byte_never_gives_another_record(place, value):
    sent = message()
    blob = bytearray(encode(sent))
    place %= len(blob)
    blob[place] = value
    try:
        back = decode(Message, bytes(blob), RecordSchema.of(sent))
    except MessageError:
        return
    head = len(RecordSchema.of(sent).head) + 9
    assert place >= head or bytes(blob) == encode(sent)
    assert isinstance(back, Message)


def test_a_record_on_the_own_disk_must_have_its_fields():
    @dataclass(frozen=True)
    class Other:
        y: Array

    with pytest.raises(MessageError, match="fields"):
        decode(Other, encode(message()))


# --- envelopes --------------------------------------------------------------------------------------------------------


def envelope(**changes) -> MessageEnvelope:
    told = {"kind": "answer", "run": RUN, "sender": "ash", "recipient": "server", "round": 3, "stage": "step"}
    return MessageEnvelope(**(told | {"body": b"content"} | changes))


def opened(blob: bytes, **changes) -> MessageEnvelope:
    return unpack(blob, **({"run": RUN, "sender": "ash", "recipient": "server", "limit": 100} | changes))


def test_an_envelope_comes_back():
    assert opened(pack(envelope())) == envelope()
    assert opened(pack(envelope(sender="clínica é")), sender="clínica é").sender == "clínica é"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sender": "birch"}, "another sender"),
        ({"recipient": "birch"}, "somebody else"),
        ({"run": "cd" * 32}, "another study, version or run"),
        ({"run": "short"}, "the kind or the run"),
        ({"kind": "gossip"}, "the kind or the run"),
        ({"round": -2}, "number of a round"),
        ({"round": True}, "number of a round"),
        ({"round": 2**70}, "number of a round"),
        ({"counted": 1.5}, "number of a round"),
        ({"stage": "x" * 65}, "short printable"),
        ({"stage": "a\nb"}, "short printable"),
        ({"body": bytes(101)}, "at most 100"),
        ({"body": bytes(100 + ENVELOPE_SIZE)}, "at most"),
    ],
)
def test_an_envelope_that_is_not_due_is_refused(changes, reason):
    with pytest.raises(MessageError, match=reason):
        opened(pack(envelope(**changes)))


@pytest.mark.parametrize("head", [b"", b"[]", b"{}", b'{"kind": 1}', b"[" * 3000, b"\xff\xfe"])
def test_a_head_that_is_no_head_is_refused(head):
    blob = struct.pack("<4sBI", b"CNSe", VERSION, len(head)) + head
    with pytest.raises(MessageError):
        opened(blob, limit=10_000)


def test_an_unknown_field_is_refused():
    told = json.loads(pack(envelope())[9:-7]) | {"more": 1}
    head = json.dumps(told).encode()
    with pytest.raises(MessageError, match="other fields"):
        opened(struct.pack("<4sBI", b"CNSe", VERSION, len(head)) + head)


def test_refusals_quote_nothing_of_the_message(caplog):
    secret = "4111-1111"
    caplog.set_level(logging.DEBUG)
    for changes in ({"sender": secret}, {"recipient": secret}, {"stage": secret + "\n"}, {"kind": secret}):
        with pytest.raises(MessageError) as refused:
            opened(pack(envelope(**changes)))
        assert secret not in str(refused.value)
    with pytest.raises(MessageError) as refused:
        decode(Message, encode(message(z=np.array([1.25, np.nan, 3.5]))), RecordSchema.of(message()))
    assert "1.25" not in str(refused.value)
    assert not caplog.records


# --- schemas of real messages -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(discover()))
def test_every_message_of_every_algorithm_has_a_schema_from_public_facts(name):
    for made in settings_of(discover()[name].example()):
        rounds = made.rounds
        if made.shape == "hub":
            forms = [HubMessageSchemas(made).at(round_) for round_ in (0, rounds - 1)]
            assert all(form.up.schema.size <= HubMessageSchemas(made).largest() for form in forms)
        else:
            assert PeerMessageSchemas(made).at(rounds - 1).said.size <= PeerMessageSchemas(made).largest()


def test_a_rehearsal_answers_for_rounds_in_any_order():
    made = next(settings_of(discover()["PreconditionedFixedPoint"].example()))
    forward, backward = HubMessageSchemas(made), HubMessageSchemas(made)
    rounds = range(made.rounds)
    ahead = [forward.at(round_) for round_ in rounds]
    assert [backward.at(round_) for round_ in reversed(rounds)] == ahead[::-1]
    assert ahead[0].up != ahead[1].up  # a second moment, then gradients
