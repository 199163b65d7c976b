//! Sheets: the rows of one table, gathered column by column until they are a batch.

use crate::column::{Kind, Table};
use arrow_array::builder::{BooleanBuilder, Float64Builder, StringBuilder, UInt64Builder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use std::sync::Arc;

/// A value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell<'a> {
    Text(&'a str),
    Whole(u64),
    Number(f64),
    Flag(bool),
    Null,
}

impl<'a> Cell<'a> {
    /// A text; nothing if it is empty.
    pub(crate) fn some(text: &'a str) -> Cell<'a> {
        if text.is_empty() { Cell::Null } else { Cell::Text(text) }
    }

    pub(crate) fn number(value: Option<f64>) -> Cell<'a> {
        value.map_or(Cell::Null, Cell::Number)
    }

    pub(crate) fn whole(value: Option<u64>) -> Cell<'a> {
        value.map_or(Cell::Null, Cell::Whole)
    }
}

enum Builder {
    Text(StringBuilder),
    Whole(UInt64Builder),
    Number(Float64Builder),
    Flag(BooleanBuilder),
}

impl Builder {
    fn new(kind: Kind) -> Builder {
        match kind {
            Kind::Text => Builder::Text(StringBuilder::new()),
            Kind::Whole => Builder::Whole(UInt64Builder::new()),
            Kind::Number => Builder::Number(Float64Builder::new()),
            Kind::Flag => Builder::Flag(BooleanBuilder::new()),
        }
    }

    /// Appends a cell. Returns whether it is of the column's kind.
    fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (Builder::Text(b), Cell::Text(value)) => b.append_value(value),
            (Builder::Text(b), Cell::Null) => b.append_null(),
            (Builder::Whole(b), Cell::Whole(value)) => b.append_value(value),
            (Builder::Whole(b), Cell::Null) => b.append_null(),
            (Builder::Number(b), Cell::Number(value)) => b.append_value(value),
            (Builder::Number(b), Cell::Null) => b.append_null(),
            (Builder::Flag(b), Cell::Flag(value)) => b.append_value(value),
            (Builder::Flag(b), Cell::Null) => b.append_null(),
            _ => return false,
        }
        true
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Builder::Text(b) => Arc::new(b.finish()),
            Builder::Whole(b) => Arc::new(b.finish()),
            Builder::Number(b) => Arc::new(b.finish()),
            Builder::Flag(b) => Arc::new(b.finish()),
        }
    }
}

/// The rows of a table that no batch has yet.
pub(crate) struct Sheet {
    table: &'static Table,
    schema: SchemaRef,
    columns: Vec<Builder>,
    pub(crate) rows: usize,
}

impl Sheet {
    pub(crate) fn new(table: &'static Table) -> Sheet {
        let columns = table.columns.iter().map(|column| Builder::new(column.kind)).collect();
        Sheet { table, schema: Arc::new(table.arrow()), columns, rows: 0 }
    }

    /// Adds a row of cells.
    ///
    /// # Panics
    /// If its cells are not the table's columns.
    pub(crate) fn push<const N: usize>(&mut self, row: [Cell<'_>; N]) {
        assert_eq!(N, self.columns.len(), "a row of {}", self.table.name);
        for ((builder, column), cell) in self.columns.iter_mut().zip(self.table.columns).zip(row) {
            let fits = !matches!(cell, Cell::Null) || column.is_nullable();
            assert!(fits && builder.push(cell), "{}.{} cannot be {cell:?}", self.table.name, column.name);
        }
        self.rows += 1;
    }

    /// Its rows as a batch, after which it is empty.
    pub(crate) fn batch(&mut self) -> RecordBatch {
        self.rows = 0;
        let columns = self.columns.iter_mut().map(Builder::finish).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), columns).expect("every row had all columns")
    }
}
