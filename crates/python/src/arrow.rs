//! Tables for Python, handed over by the Arrow PyCapsule interface: without a copy, and without
//! pyarrow.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::ffi::FFI_ArrowSchema;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

/// A table of results in Arrow's memory.
#[pyclass(frozen, module = "kontig")]
pub(crate) struct Table {
    pub(crate) table: &'static kontig_tables::Table,
    pub(crate) batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    #[getter]
    fn name(&self) -> &'static str {
        self.table.name
    }

    #[getter]
    fn column_names(&self) -> Vec<&'static str> {
        self.table.columns.iter().map(|column| column.name).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __repr__(&self) -> String {
        format!("<kontig.Table {}: {} rows>", self.table.name, self.__len__())
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&self.table.arrow());
        let schema = schema.map_err(|e| PyRuntimeError::new_err(e.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The interface lets a table ignore the schema that is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::new(self.table.arrow()));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}
