//! Kontig for Python. What the package's Python calls: cells of a space, their runs, and tables of
//! them. `_kontig.pyi` has the types.

mod arrow;
mod space;

use crate::arrow::Table;
use crate::space::Space;
use kontig_error::Error;
use kontig_lab::cell::{Cell, version};
use kontig_results::RunResult;
use kontig_tables::{Facts, Files, Format, Rows, TABLES};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

/// A wrong request is a `ValueError`, a failure a `RuntimeError`.
fn raised(e: &Error) -> PyErr {
    match e {
        Error::Asked(_) => PyValueError::new_err(e.to_string()),
        Error::Failed(_) => PyRuntimeError::new_err(e.to_string()),
    }
}

fn foreign(e: &serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("no bytes that kontig made: {e}"))
}

/// Tables of runs, each run once.
#[pyclass(frozen, module = "kontig")]
struct Tables(kontig_tables::Tables);

impl Tables {
    fn table(&self, name: &str) -> PyResult<Table> {
        let at = TABLES.iter().position(|table| table.name == name);
        let at = at.ok_or_else(|| PyRuntimeError::new_err(format!("there is no table {name}")))?;
        Ok(Table { table: TABLES[at], batches: self.0.batches[at].clone() })
    }

    fn write(&self, py: Python<'_>, dir: PathBuf, format: Format) -> PyResult<()> {
        py.detach(|| {
            let mut files = Files::create(&dir, format)?;
            self.0.pass_on(&mut files)?;
            files.finish().map(drop)
        })
        .map_err(|e| raised(&e))
    }
}

/// Python's methods of tables, with one that gets each table by its name.
macro_rules! methods {
    ($($table:ident),*) => {
        #[pymethods]
        impl Tables {
            $(
                #[getter]
                fn $table(&self) -> PyResult<Table> {
                    self.table(stringify!($table))
                }
            )*

            fn write_csv(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
                self.write(py, directory, Format::Csv)
            }

            fn write_parquet(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
                self.write(py, directory, Format::Parquet)
            }
        }
    };
}

methods!(runs, settings, figures, rounds, percentiles, series, counters);

/// The cells of a space in JSON, each once, in the order of an export, and notes about it.
#[pyfunction]
fn cells<'py>(py: Python<'py>, space: &str) -> PyResult<(Vec<Bound<'py, PyBytes>>, Vec<String>)> {
    let space: Space = serde_json::from_str(space).map_err(|e| foreign(&e))?;
    let ordered = || {
        let (cells, notes) = space.cells()?;
        let with_facts = cells.into_iter().map(|cell| {
            let (plan, identity) = cell.plan()?;
            Ok((Facts::new(&plan, identity, &version()), cell))
        });
        let mut all = with_facts.collect::<Result<Vec<_>, Error>>()?;
        all.sort_by(|(a, _), (b, _)| a.place().cmp(&b.place()));
        all.dedup_by(|(next, _), (kept, _)| next.identity == kept.identity);
        Ok((all.into_iter().map(|(_, cell)| cell).collect::<Vec<_>>(), notes))
    };
    let (cells, notes) = py.detach(ordered).map_err(|e| raised(&e))?;
    let bytes = |cell: &Cell| Ok(PyBytes::new(py, &serde_json::to_vec(cell).map_err(|e| foreign(&e))?));
    Ok((cells.iter().map(bytes).collect::<PyResult<_>>()?, notes))
}

/// Carries out a cell's run, while other threads of the interpreter go on.
#[pyfunction]
fn run_cell<'py>(py: Python<'py>, cell: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
    let cell: Cell = serde_json::from_slice(cell).map_err(|e| foreign(&e))?;
    let run = py.detach(|| cell.run()).map_err(|e| raised(&e))?;
    // No table has its events, which may be ten times the rest.
    let run = RunResult { events: Vec::new(), ..run };
    Ok(PyBytes::new(py, &serde_json::to_vec(&run).map_err(|e| foreign(&e))?))
}

/// Runs on their way into tables. Each is forgotten as soon as its rows are there: the runs of a
/// large sweep need not fit in memory.
#[pyclass(frozen, module = "kontig")]
struct Gathering(Mutex<Rows<kontig_tables::Tables>>);

#[pymethods]
impl Gathering {
    #[new]
    fn new() -> Gathering {
        Gathering(Mutex::new(Rows::new(kontig_tables::Tables::default())))
    }

    /// Adds a cell's run. Cells come in the order in which `cells` has them.
    fn add(&self, py: Python<'_>, cell: &[u8], run: &[u8]) -> PyResult<()> {
        let cell: Cell = serde_json::from_slice(cell).map_err(|e| foreign(&e))?;
        let run: RunResult = serde_json::from_slice(run).map_err(|e| foreign(&e))?;
        py.detach(|| {
            let (plan, identity) = cell.plan()?;
            let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            rows.add(&Facts::new(&plan, identity, &version()), &run)
        })
        .map_err(|e| raised(&e))
    }

    /// The tables of all runs added.
    fn tables(&self) -> PyResult<Tables> {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let rows = std::mem::replace(&mut *rows, Rows::new(kontig_tables::Tables::default()));
        rows.finish().map(|(tables, _)| Tables(tables)).map_err(|e| raised(&e))
    }
}

#[pymodule]
fn _kontig(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", version())?;
    module.add_class::<Table>()?;
    module.add_class::<Tables>()?;
    module.add_function(wrap_pyfunction!(cells, module)?)?;
    module.add_class::<Gathering>()?;
    module.add_function(wrap_pyfunction!(run_cell, module)?)
}
