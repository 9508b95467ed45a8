"""Finding, checking and downloading files, against a real server on this machine."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from consenso.datasets import load_adult, load_femnist
from consenso.datasets.description import File, Resource
from consenso.datasets.files import find, locate
from consenso.errors import InputError

CONTENT = b"one record\n"
SUM = hashlib.sha256(CONTENT).hexdigest()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Write nothing to standard error."""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CONSENSO_DATA", raising=False)
    monkeypatch.setenv("CONSENSO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address under which it is served."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    thread.join()
    server.server_close()


def resource(url: str | None = None) -> Resource:
    plain = File(name="set.txt", sha256=SUM, url=url)
    return Resource(forms=(File(name="set.txt.gz", sha256="0" * 64), plain))


def put(folder: Path, content: bytes = CONTENT) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "set.txt").write_bytes(content)
    return folder / "set.txt"


def test_order_of_places(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, named = put(tmp_path / "given"), put(tmp_path / "named")
    cached = put(cache)
    assert locate(resource()) == cached
    monkeypatch.setenv("CONSENSO_DATA", str(named.parent))
    assert locate(resource()) == named
    assert locate(resource(), folder=given.parent) == given
    named.unlink()
    assert locate(resource()) == cached


def test_a_folder_that_is_passed_is_the_only_place(tmp_path: Path, cache: Path) -> None:
    put(cache)
    with pytest.raises(InputError, match=r"set\.txt\.gz: the file is not in .*elsewhere"):
        locate(resource(), folder=tmp_path / "elsewhere")


def test_wrong_content_is_refused_and_a_corrected_file_is_read_again(cache: Path) -> None:
    path = put(cache, b"something else\n")
    with pytest.raises(InputError, match=f"its SHA-256 must be {SUM}"):
        locate(resource())
    put(cache)
    os.utime(path, ns=(1, 1))
    assert locate(resource()) == path


def test_download_goes_to_the_cache_once(cache: Path, served: tuple[Path, str]) -> None:
    folder, address = served
    source = put(folder)
    assert find(resource(address + "set.txt")) is None
    path = locate(resource(address + "set.txt"))
    assert path == cache / "set.txt"
    assert path.read_bytes() == CONTENT
    source.unlink()
    assert locate(resource(address + "set.txt")) == path


def test_download_with_wrong_content_leaves_nothing(cache: Path, served: tuple[Path, str]) -> None:
    folder, address = served
    put(folder, b"tampered\n")
    with pytest.raises(InputError, match=f"the SHA-256 of set.txt must be {SUM}"):
        locate(resource(address + "set.txt"))
    assert list(cache.iterdir()) == []


def test_absent_on_the_server_and_no_server(cache: Path, served: tuple[Path, str]) -> None:
    with pytest.raises(InputError, match="failed") as caught:
        locate(resource(served[1] + "set.txt"))
    assert "File not found" in str(caught.value)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/set.txt"
    with pytest.raises(InputError) as caught:
        locate(resource(url))
    told = str(caught.value)
    for part in ("set.txt", SUM, url, "CONSENSO_DATA", str(cache), "refused"):
        assert part in told
    assert "\n" not in told
    assert list(cache.iterdir()) == []


def test_loaders_say_how_to_get_a_file(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(InputError, match=r"adult\.data \(SHA-256 [0-9a-f]{64}, from https://archive\.ics\.uci\.edu"):
        load_adult(tmp_path)
    # FEMNIST is served nowhere in this form, so no network is asked.
    with pytest.raises(InputError, match=r"femnist_small\.npz.*CONSENSO_DATA"):
        load_femnist()
