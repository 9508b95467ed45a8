"""The bytes of a file, decompressed, or one sentence about what is wrong with it."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

from consenso.errors import InputError


def read_bytes(path: Path) -> bytes:
    """The content of a file; a name that ends in .gz is decompressed."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; check the path.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: a table is a file, and this is a folder; name one file.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions.") from None
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise InputError(f"{path}: not a complete gzip file; fetch it again, or drop .gz from its name.") from None


def read_text(path: Path) -> str:
    """The content of a file of UTF-8 text without its byte-order mark."""
    raw = read_bytes(path)
    if not raw.strip():
        raise InputError(f"{path}: the file is empty; check that it was written to the end.")
    if b"\0" in raw:
        line = raw.count(b"\n", 0, raw.index(b"\0")) + 1
        raise InputError(f"{path}, line {line}: a text file holds no zero bytes; save it as UTF-8 text.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: the text is not UTF-8; convert it, for example with iconv.") from None
