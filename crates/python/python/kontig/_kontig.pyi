from os import PathLike

class Table:
    """A table of results in Arrow's memory, for every library that takes the Arrow PyCapsule interface:
    pyarrow.table(t), polars.DataFrame(t), duckdb.from_arrow(t)."""

    @property
    def name(self) -> str: ...
    @property
    def column_names(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Tables:
    """The tables of runs, each run once. docs/experimenter/tables.md describes every column."""

    @property
    def runs(self) -> Table: ...
    @property
    def settings(self) -> Table: ...
    @property
    def figures(self) -> Table: ...
    @property
    def rounds(self) -> Table: ...
    @property
    def percentiles(self) -> Table: ...
    @property
    def series(self) -> Table: ...
    @property
    def counters(self) -> Table: ...
    def write_csv(self, directory: str | PathLike[str]) -> None:
        """Writes the files of `kontig export --csv`. The directory must not exist."""

    def write_parquet(self, directory: str | PathLike[str]) -> None:
        """Writes the files of `kontig export --parquet`. The directory must not exist."""

def cells(space: str) -> tuple[list[bytes], list[str]]:
    """The cells of a space in JSON, each once, in the order of an export, and notes about it."""

def run_cell(cell: bytes) -> bytes:
    """Carries out a cell's run, without holding the interpreter."""

class Gathering:
    """Runs on their way into tables."""

    def add(self, cell: bytes, run: bytes) -> None:
        """Adds a cell's run. Cells come in the order in which `cells` has them."""

    def tables(self) -> Tables:
        """The tables of all runs added."""
