"""Tables that stay where they are: Parquet, Arrow and CSV files, Arrow data sets and queries, read in batches of rows.

A table is read as often as it is needed and never held as a whole. Errors name the source, never a cell: what a reader
says of a cell it cannot parse is not passed on.
"""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from consenso.errors import InputError
from consenso.tables.delimited import import_polars
from consenso.tables.parquet import parquet_column
from consenso.tables.queried_files import find_queried_files
from consenso.tables.table import Table, require_records, require_width

#: Numbers in a batch, so that a few of them fit in any memory; with half as many a fit takes a tenth more time.
BATCH_NUMBERS = 1 << 20
#: Numbers of a table that is read whole where it may be: 128 megabytes.
IN_MEMORY = 1 << 24
SCANS = {
    ".parquet": "scan_parquet",
    ".pq": "scan_parquet",
    ".arrow": "scan_ipc",
    ".ipc": "scan_ipc",
    ".csv": "scan_csv",
}
#: Kinds of files that have no types of their own: an Arrow data set gives them its own.
WITHOUT_TYPES = ("csv", "json")


@dataclass(frozen=True, kw_only=True)
class Frames:
    """Batches of rows as Polars frames; every pass gives the same batches."""

    source: str
    scan: Callable[[], Any]  # a new LazyFrame
    kinds: Mapping[str, bool]  # columns, and whether they are numbers
    rows: int
    length: int  # rows in a batch; the last has fewer
    files: tuple[Path, ...] = ()
    opened: str = ""  # the fingerprint of the files when they were opened
    in_memory: bool = False
    #: Polars decodes the next batch by itself. A thread that waits for it costs a twentieth of a pass.
    reads_ahead: ClassVar[bool] = True

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.kinds)

    @property
    def keeps_places(self) -> bool:
        """Whether a row is the same one by its number in every pass; a query may give its rows in any order."""
        return self.in_memory or bool(self.files)

    @property
    def count(self) -> int:
        """How many batches there are."""
        return -(-self.rows // self.length)

    def __iter__(self) -> Iterator[Any]:
        with _Quiet(self.source):
            seen = 0
            for frame in self.scan().collect_batches(chunk_size=self.length, maintain_order=True):
                seen += frame.height
                if frame.height != self.length and seen < self.rows:
                    raise InputError(f"{self.source}: it changed while it was read; read it again.")
                yield frame

    def frame(self, place: int) -> Any:
        with _Quiet(self.source):
            return self.scan().slice(place * self.length, self.length).collect()

    def column(self, name: str) -> Any:
        """One column of all rows, in memory."""
        with _Quiet(self.source):
            return self.scan().select(name).collect()[name]

    def table(self, place: int) -> Table:
        """The batch at a place as columns, for a schema."""
        return self._table(self.frame(place), place)

    def tables(self) -> Iterator[Table]:
        """All batches as columns, in their order."""
        return (self._table(frame, place) for place, frame in enumerate(self))

    def _table(self, frame: Any, place: int) -> Table:
        columns = {series.name: parquet_column(Path(self.source), series) for series in frame.get_columns()}
        return Table(source=self.source, columns=columns, rows=frame.height, first=place * self.length)

    def fingerprint(self) -> str:
        """Of the files, which must be as they were opened. A query has none: its rows may come in any order."""
        now = fingerprint_files(self.files)
        if now != self.opened:
            raise InputError(f"{self.source}: it changed while it was read; put it back as it was, and resume.")
        return now


def is_stored(given: Any) -> bool:
    """Whether this is a table that `open_frames` reads: paths, a pattern of paths, a data set, or a query."""
    if isinstance(given, list | tuple):
        return bool(given) and all(isinstance(each, str | Path) for each in given)
    return isinstance(given, str | Path) or _kind_of(given) in _OPENERS


def open_frames(given: Any, *, as_text: bool = False) -> Frames:
    """Open files by their paths or a pattern, or what another library has opened, and count its rows.

    as_text: cells of CSV files stay text, since "01" and "1" may be two categories.
    """
    if isinstance(given, str | Path):
        return _open_files(str(given), find_files(str(given)), as_text=as_text)
    if isinstance(given, list | tuple):
        files = tuple(path for each in given for path in find_files(str(each)))
        return _open_files(", ".join(map(str, given)), files, as_text=as_text)
    return _OPENERS[_kind_of(given)](given)


def _kind_of(given: Any) -> tuple[str, str]:
    """The package and the name of the class, so that none of the packages is imported."""
    kinds = type(given).__mro__
    names = [(each.__module__.partition(".")[0], each.__name__) for each in kinds]
    return next((name for name in names if name in _OPENERS), names[0])


def find_files(pattern: str, suffixes: Collection[str] = tuple(SCANS)) -> tuple[Path, ...]:
    """The files of a path, a folder or a pattern, in the order of their names. suffixes: those of a folder."""
    path = Path(pattern)
    if path.is_dir():
        found = sorted(each for each in path.iterdir() if each.suffix in suffixes)
    else:
        found = sorted(map(Path, glob.glob(pattern, recursive=True)))
    if not found:
        raise InputError(f"{pattern}: no such file; check the path, or the pattern, of the table.")
    return tuple(found)


def _open_files(source: str, files: tuple[Path, ...], *, as_text: bool) -> Frames:
    polars = import_polars(files[0])
    kinds = {path.suffix for path in files}
    if len(kinds) > 1 or not kinds <= set(SCANS):
        raise InputError(
            f"{source}: a table that is read in batches is made of .parquet, .arrow or .csv files, all of one kind "
            f"(libsvm files: open_libsvm, with their public number of features); found {', '.join(sorted(kinds))}."
        )
    name = SCANS[kinds.pop()]
    options: dict[str, Any] = {"infer_schema": not as_text} if name == "scan_csv" else {}
    _require_one_schema(files, name, options)
    # Workers of a cluster have folders of their own that they work in.
    whole = [path.resolve() for path in files]
    return _count(source, lambda: getattr(polars, name)(whole, **options), tuple(whole))


def _require_one_schema(files: tuple[Path, ...], scan: str, options: Mapping[str, Any]) -> None:
    """Refuse files with other columns or types than the first one has."""
    polars, schemas = import_polars(files[0]), []
    for path in files:
        with _Quiet(str(path)):
            schemas.append(dict(getattr(polars, scan)(path, **options).collect_schema()))
    for path, schema in zip(files, schemas, strict=True):
        if schema != schemas[0]:
            raise InputError(f"{path}: its columns or their types are not those of {files[0]}; make them equal.")


def _open_query(query: Any) -> Frames:
    return _count("the LazyFrame", lambda: query, ())


def _open_arrow_table(table: Any) -> Frames:
    frame = import_polars(Path("table")).from_arrow(table)
    return replace(_count("the Arrow table", frame.lazy, ()), in_memory=True)


def _open_dataset(dataset: Any) -> Frames:
    """An Arrow data set streams its batches in the order of its files."""
    polars, source = import_polars(Path("data set")), "the Arrow data set"
    with _Quiet(source):
        _check_fragments(dataset)
        rows, empty = int(dataset.count_rows()), polars.from_arrow(dataset.schema.empty_table())
    kinds = _find_kinds(source, empty.schema, rows)
    files = tuple(Path(path).resolve() for path in getattr(dataset, "files", ()) if Path(path).exists())
    length = _length(kinds)

    def read() -> Any:
        # Reads no further ahead than what is read ahead anyway.
        return dataset.scanner(batch_size=length, batch_readahead=1, fragment_readahead=1).to_reader()

    return _Stream(
        source=source,
        scan=read,
        kinds=kinds,
        rows=rows,
        length=length,
        files=files,
        opened=fingerprint_files(files),
    )


def _check_fragments(dataset: Any) -> None:
    """Refuse files whose columns or types are not those of the data set, which would read text as numbers, say."""
    from pyarrow.dataset import get_partition_keys

    for fragment in dataset.get_fragments():
        if getattr(getattr(fragment, "format", None), "default_extname", "") in WITHOUT_TYPES:
            continue
        folders, own = get_partition_keys(fragment.partition_expression), fragment.physical_schema
        kinds = dict(zip(own.names, own.types, strict=True))
        if any(field.name not in folders and kinds.get(field.name) != field.type for field in dataset.schema):
            name = getattr(fragment, "path", "a part")
            raise InputError(f"{name}: its columns or their types are not those of the data set; make them equal.")


def _open_relation(relation: Any) -> Frames:
    """DuckDB streams Arrow batches, which Polars reads as they come."""
    words = ("INT", "FLOAT", "DOUBLE", "DECIMAL", "BOOL")
    kinds = {
        name: any(word in str(kind) for word in words)
        for name, kind in zip(relation.columns, relation.types, strict=True)
    }
    source = "the DuckDB relation"
    require_width(source, len(kinds))
    with _Quiet(source):
        for files in find_queried_files(relation.sql_query()):
            _require_one_schema(files, "scan_parquet", {})  # DuckDB would cast text to numbers, say
        ((rows,),) = relation.aggregate("count(*)").fetchall()
    length = _length(kinds)
    return _Stream(
        source=source, scan=lambda: relation.to_arrow_reader(length), kinds=kinds, rows=int(rows), length=length
    )


@dataclass(frozen=True, kw_only=True)
class _Stream(Frames):
    """Arrow batches of any length, which belong to this process."""

    reads_ahead: ClassVar[bool] = False

    def __iter__(self) -> Iterator[Any]:
        polars = import_polars(Path("query"))
        with _Quiet(self.source):
            held = None
            for batch in self.scan():
                frame = polars.from_arrow(batch)
                held = frame if held is None else polars.concat([held, frame])
                while held.height >= self.length:
                    yield held[: self.length]
                    held = held[self.length :]
            if held is not None and held.height:
                yield held

    def column(self, name: str) -> Any:
        """One column of all rows, in memory."""
        parts = [frame[name] for frame in self]
        return import_polars(Path("query")).concat(parts)

    def frame(self, place: int) -> Any:
        """Refuse: workers have not opened it."""
        raise InputError(f"{self.source}: the workers of a cluster cannot read it; write it to Parquet files.")


def fingerprint_files(files: tuple[Path, ...]) -> str:
    """Changes when a file is written again; empty without files."""
    told = hashlib.sha256()
    for path in files:
        try:
            state = path.stat()
        except OSError:
            raise InputError(f"{path}: it is gone since the run began; put it back and resume.") from None
        told.update(f"{path}:{state.st_size}:{state.st_mtime_ns};".encode())
    return told.hexdigest() if files else ""


def _count(source: str, scan: Callable[[], Any], files: tuple[Path, ...]) -> Frames:
    polars, opened = import_polars(Path(source)), fingerprint_files(files)
    # Polars reads as many row groups ahead as it has room for, and by default much room; batches are read ahead anyway.
    os.environ.setdefault("POLARS_ROW_GROUP_PREFETCH_SIZE", "1")
    with _Quiet(source):
        schema = scan().collect_schema()
        rows = int(scan().select(polars.len()).collect().item())
    kinds = _find_kinds(source, schema, rows)
    return Frames(source=source, scan=scan, kinds=kinds, rows=rows, length=_length(kinds), files=files, opened=opened)


def _find_kinds(source: str, schema: Any, rows: int) -> dict[str, bool]:
    """Which columns are numbers; refuse a table without records."""
    polars = import_polars(Path(source))
    require_width(source, len(schema))
    require_records(source, rows)
    return {name: kind.is_numeric() or kind == polars.Boolean for name, kind in schema.items()}


def _length(columns: Mapping[str, bool]) -> int:
    return max(1, BATCH_NUMBERS // max(1, len(columns)))


class _Quiet:
    """Errors of a reader, without what they say of cells."""

    def __init__(self, source: str) -> None:
        self._source = source

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, InputError | GeneratorExit):
            return
        module = type(error).__module__
        if module.startswith(("polars", "duckdb", "_duckdb", "pyarrow")) or isinstance(error, OSError):
            raise InputError(
                f"{self._source}: it cannot be read ({type(error).__name__}); check that its files are complete and "
                "that every cell has the type of its column."
            ) from None


# By the package and the class of what is given.
_OPENERS: dict[tuple[str, str], Callable[[Any], Frames]] = {
    ("polars", "LazyFrame"): _open_query,
    ("pyarrow", "Dataset"): _open_dataset,
    ("pyarrow", "Table"): _open_arrow_table,
    ("duckdb", "DuckDBPyRelation"): _open_relation,
    ("_duckdb", "DuckDBPyRelation"): _open_relation,
}
