"""How do we write a model down ourselves? A checked header, then raw arrays.

    magic (8 bytes)   version (uint32)   length of the header (uint64)
    header            JSON: what the model is, and every array's type, shape and place
    arrays            little-endian, C order, each at a multiple of 64 bytes
    digest            SHA-256 of all bytes before it

A reader needs no pickle and runs nothing that a file says. Every size is compared with
the file's length before memory is asked for.
"""

import hashlib
import json
import math
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from maxmargin import __version__
from maxmargin.errors import ModelFormatError
from maxmargin.interop.files import (
    Content,
    PathLike,
    Source,
    read_content,
    write_atomically,
)
from maxmargin.interop.native_models import (
    Model,
    model_of_parts,
    parts_of_model,
)

COLUMNS = "columns"  # of the data, where the model takes some of them only
MAGIC = b"\x89MAXM\r\n\x1a"  # damaged by whoever takes it for text
VERSION = 1
START = struct.Struct("<8sIQ")
DIGEST_BYTES = 32
ALIGNMENT = 64
LONGEST_HEADER = 1 << 20
MOST_ARRAYS = 1000
MOST_DIMENSIONS = 3
NUMBERS = frozenset(
    {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"}
    | {"<f2", "<f4", "<f8"}
)
TEXT = re.compile(r"<U[1-9][0-9]{0,6}")
LAST_CHARACTER = 0x10FFFF  # of Unicode


@dataclass(frozen=True)
class Saved:
    """A model, and what its owner wants to remember with it."""

    model: Model
    notes: dict[str, Any] = field(default_factory=dict)  # what JSON can hold
    arrays: dict[str, Any] = field(default_factory=dict)


def save(path: PathLike, model: Model) -> None:
    """Write a model in our own form, all of it, atomically."""
    save_with_notes(path, Saved(model))


def load(source: Source) -> Model:
    """Read a model in our own form; ModelFormatError where the file is damaged."""
    content = read_content(source)
    saved = load_with_notes(content)
    refuse_scaling(saved, content)
    return saved.model


def refuse_scaling(saved: Saved, content: Content) -> None:
    """A model of scaled or chosen features must not meet others."""
    if COLUMNS in saved.arrays:
        content.fail(
            "the model was fitted by `maxmargin fit` on the features that occur in its "
            "data, and does not choose them itself: use `maxmargin apply`."
        )
    if "scaling" in saved.notes:
        content.fail(
            "the model was fitted on features that `maxmargin fit` scaled, and does "
            "not scale them itself: use `maxmargin apply`, or fit with --no-scale."
        )


def is_native(data: bytes) -> bool:
    """Whether a file begins like one of ours."""
    return data[: len(MAGIC)] == MAGIC


# Writing.


def save_with_notes(path: PathLike, saved: Saved) -> None:
    """Write a model with its owner's notes and arrays."""
    write_atomically(path, native_bytes(saved))


def native_bytes(saved: Saved) -> Iterator[bytes]:
    """The parts of the file."""
    kind, facts, arrays = parts_of_model(saved.model)
    named = {f"model.{name}": array for name, array in arrays.items()}
    named |= {f"notes.{name}": array for name, array in saved.arrays.items()}
    raw = {name: _as_raw(name, array) for name, array in named.items()}
    places, offset = [], 0
    for name, (array, is_object) in raw.items():
        place = {
            "name": name,
            "dtype": array.dtype.str,
            "shape": list(array.shape),
            "offset": offset,
        }
        places.append(place | ({"object": True} if is_object else {}))
        offset += array.nbytes + _padding(array.nbytes)
    header = json.dumps(
        {
            "writer": f"maxmargin {__version__}",
            "kind": kind,
            "model": facts,
            "notes": saved.notes,
            "arrays": places,
        },
        allow_nan=False,
    ).encode("utf-8")
    header += b" " * _padding(START.size + len(header))
    if len(header) > LONGEST_HEADER:
        raise ModelFormatError(
            f"the parameters take {len(header)} bytes, where {LONGEST_HEADER} are the "
            "most that a file may hold."
        )
    yield from _with_digest(header, [array for array, _ in raw.values()])


def _with_digest(header: bytes, arrays: list[Any]) -> Iterator[bytes]:
    digest = hashlib.sha256()
    parts = [START.pack(MAGIC, VERSION, len(header)), header]
    for array in arrays:
        parts += [array.tobytes(), b"\0" * _padding(array.nbytes)]
    for part in parts:
        digest.update(part)
        yield part
    yield digest.digest()


def _padding(n: int) -> int:
    return -n % ALIGNMENT


def _as_raw(name: str, array: Any) -> tuple[Any, bool]:
    """Little-endian and contiguous; objects become text, if that is what they are."""
    array = np.asarray(array)
    is_object = array.dtype == object
    if is_object:
        if not all(isinstance(item, str) for item in array.flat):
            _refuse_type(name, "objects that are not all text")
        text = array.astype(str)
        if not (text.astype(object) == array).all():
            _refuse_type(name, "text that ends in a null character")
        array = text
    if array.dtype.kind not in "biufU":
        _refuse_type(name, str(array.dtype))
    raw = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    if raw.dtype.kind != "U" and raw.dtype.str not in NUMBERS:
        _refuse_type(name, str(array.dtype))
    return raw, is_object


def _refuse_type(name: str, found: str) -> NoReturn:
    raise ModelFormatError(
        f"{name.partition('.')[2]} holds {found}, which cannot be saved: use numbers, "
        "booleans or text."
    )


# Reading.


def load_with_notes(source: Source) -> Saved:
    """Read a model with its owner's notes and arrays, and check everything."""
    content = read_content(source)
    header, begin = _read_start(content)
    kind, facts = (
        _get(content, header, "kind", str),
        _get(content, header, "model", dict),
    )
    notes = _get(content, header, "notes", dict)
    arrays = _read_arrays(content, _get(content, header, "arrays", list), begin)
    of_model, of_notes = ({}, {})  # type: tuple[dict[str, Any], dict[str, Any]]
    for name, array in arrays.items():
        whose, _, rest = name.partition(".")
        (of_model if whose == "model" else of_notes)[rest] = array
    model = model_of_parts(kind, facts, of_model, content.path)
    return Saved(model, notes, of_notes)


def _read_start(content: Content) -> tuple[dict[str, Any], int]:
    """The header, and where the arrays begin; the digest is checked first."""
    data = content.data
    if not is_native(data):
        content.fail("this is not a model file of maxmargin.")
    if len(data) < START.size + DIGEST_BYTES:
        content.fail("the file is cut off.")
    _, version, length = START.unpack_from(data)
    if version > VERSION:
        content.fail(
            f"the file has version {version} of the format, and this maxmargin "
            f"({__version__}) knows up to {VERSION}: install a newer one."
        )
    if version < 1:
        content.fail("there is no version 0 of the format.")
    body = memoryview(data)[:-DIGEST_BYTES]
    if hashlib.sha256(body).digest() != data[-DIGEST_BYTES:]:
        content.fail("the digest does not match: the file is damaged or cut off.")
    if length > LONGEST_HEADER or START.size + length > len(body):
        content.fail("the header is longer than the file, or than any may be.")
    text = data[START.size : START.size + length]
    return _read_json(content, text), START.size + length


def _read_json(content: Content, text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(
            text.decode("utf-8"),
            object_pairs_hook=_without_duplicates,
            parse_constant=_refuse_constant,
        )
    except (ValueError, RecursionError) as error:
        content.fail(f"the header cannot be read ({str(error)[:200]}).")
    if not isinstance(found, dict):
        content.fail("the header must be a JSON object.")
    return found


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _get(content: Content, where: Any, key: str, kind: type) -> Any:
    value = where.get(key) if isinstance(where, dict) else None
    if type(value) is not kind:
        content.fail(f"the header lacks {key!r}, or it is no {kind.__name__}.")
    return value


def _read_arrays(content: Content, places: list[Any], begin: int) -> dict[str, Any]:
    if len(places) > MOST_ARRAYS:
        content.fail(f"more than {MOST_ARRAYS} arrays.")
    end, found, offset = len(content.data) - DIGEST_BYTES, {}, begin
    for place in places:
        name = _get(content, place, "name", str)
        if name in found or offset - begin != _get(content, place, "offset", int):
            content.fail(f"the array {name[:80]!r} is there twice, or out of place.")
        array = _read_array(content, place, offset, end)
        found[name] = array
        n_bytes = _bytes_of(content, place)
        offset += n_bytes + _padding(n_bytes)
    if offset != end:
        content.fail(f"{end - offset} bytes are left over after the last array.")
    return found


def _bytes_of(content: Content, place: Any) -> int:
    """In whole numbers of any size: nothing wraps around."""
    shape = _get(content, place, "shape", list)
    if len(shape) > MOST_DIMENSIONS or any(type(n) is not int or n < 0 for n in shape):
        content.fail("the shape of an array must be up to three whole numbers.")
    return math.prod(shape) * _dtype_of(content, place).itemsize


def _dtype_of(content: Content, place: Any) -> np.dtype[Any]:
    word = _get(content, place, "dtype", str)
    if word not in NUMBERS and not TEXT.fullmatch(word):
        content.fail(f"arrays of type {word[:80]!r} are not allowed.")
    return np.dtype(word)


def _read_array(content: Content, place: Any, offset: int, end: int) -> Any:
    dtype, n_bytes = _dtype_of(content, place), _bytes_of(content, place)
    if n_bytes > end - offset:
        content.fail(f"the array {place['name'][:80]!r} ends beyond the file.")
    raw = content.data[offset : offset + n_bytes]
    if dtype.kind == "b" and raw.strip(b"\0\1"):
        content.fail("an array of booleans holds something else.")
    if dtype.kind == "U":
        codes = np.frombuffer(raw, dtype="<u4")
        if codes.max(initial=0) > LAST_CHARACTER:
            content.fail("an array of text holds what is no character.")
    try:
        array = np.frombuffer(raw, dtype=dtype).reshape(place["shape"]).copy()
    except ValueError:  # no bytes, and a shape beyond all bounds
        content.fail(f"no array can have the shape {place['shape']}.")
    array = array.astype(dtype.newbyteorder("="), copy=False)
    return array.astype(object) if place.get("object") is True else array
