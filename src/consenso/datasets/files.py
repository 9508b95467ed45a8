"""Finding the files of a data set: a folder, $CONSENSO_DATA, the cache, a download; always checked by content."""

from __future__ import annotations

import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from consenso.datasets.description import File, Resource
from consenso.errors import InputError

TIMEOUT_SECONDS = 30.0
CHUNK = 1 << 20


def locate(resource: Resource, *, folder: str | Path | None = None) -> Path:
    """The path of a resource in one of its forms, downloaded into the cache when no folder has it.

    A `folder` that is passed is the only place that is searched.
    """
    found = find(resource, folder=folder)
    if found is not None:
        return found
    failures = []
    if folder is None:
        for form in resource.forms:
            if form.url is not None:
                try:
                    return _download(form, cache_folder())
                except (OSError, http.client.HTTPException) as error:
                    failures.append(f"the download from {form.url} failed ({_reason(error)})")
    raise InputError(_absent(resource, folder, failures))


def find(resource: Resource, *, folder: str | Path | None = None) -> Path | None:
    """The path of a resource that is on this machine with the right checksum, or None when it is not there."""
    for place in search_folders(folder):
        for form in resource.forms:
            path = place / form.name
            if path.is_file():
                verify(path, form)
                return path
    return None


def search_folders(folder: str | Path | None = None) -> tuple[Path, ...]:
    """Where files are looked for, in this order."""
    if folder is not None:
        return (Path(folder),)
    named = os.environ.get("CONSENSO_DATA")
    return (Path(named), cache_folder()) if named else (cache_folder(),)


def cache_folder() -> Path:
    """The folder for downloads: $CONSENSO_CACHE, else ~/.cache/consenso."""
    return Path(os.environ.get("CONSENSO_CACHE") or Path.home() / ".cache" / "consenso")


def verify(path: Path, form: File) -> None:
    """Refuse a file whose content is not the one that is known."""
    status = path.stat()
    digest = _digest(path, status.st_size, status.st_mtime_ns)
    if digest != form.sha256:
        raise InputError(
            f"{path}: its SHA-256 must be {form.sha256}, and it is {digest}; remove the file and fetch it again."
        )


@lru_cache(maxsize=256)
def _digest(path: Path, size: int, modified: int) -> str:
    """The SHA-256 of a file; size and time of change are part of the key, so a changed file is read again."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def _download(form: File, folder: Path) -> Path:
    """Fetch a file into a folder under a temporary name, and give it its name when the checksum is right."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=folder, prefix=f".{form.name}.")
    partial = Path(name)
    try:
        with (
            os.fdopen(handle, "wb") as out,
            urllib.request.urlopen(str(form.url), timeout=TIMEOUT_SECONDS) as answer,
        ):
            digest = hashlib.sha256()
            while chunk := answer.read(CHUNK):
                digest.update(chunk)
                out.write(chunk)
        if digest.hexdigest() != form.sha256:
            raise InputError(
                f"{form.url}: the SHA-256 of {form.name} must be {form.sha256}, and {digest.hexdigest()} was served; "
                "fetch the file elsewhere and set CONSENSO_DATA to its folder."
            )
        return partial.replace(folder / form.name)
    finally:
        partial.unlink(missing_ok=True)


def _reason(error: OSError | http.client.HTTPException) -> str:
    return str(error.reason if isinstance(error, urllib.error.URLError) else error) or type(error).__name__


def _absent(resource: Resource, folder: str | Path | None, failures: Iterable[str]) -> str:
    places = " and ".join(str(place) for place in search_folders(folder))
    told = "".join(f", {failure}" for failure in failures)
    ways = " or ".join(
        f"{form.name} (SHA-256 {form.sha256}{f', from {form.url}' if form.url else ''})" for form in resource.forms
    )
    return (
        f"{resource.forms[0].name}: the file is not in {places}{told}; put {ways} into a folder and set CONSENSO_DATA "
        "to it; consenso data describe tells where it comes from."
    )
