//! Tables and their columns, declared once: Arrow's schema and the page of the documentation come
//! from here.

use arrow_schema::{DataType, Field, Schema};
use kontig_text::markdown::{self, Align};

/// A table of results.
pub struct Table {
    /// The name of its file, without an ending.
    pub name: &'static str,
    /// The meaning of a row, as `A row is …` goes on.
    pub row: &'static str,
    pub columns: &'static [Column],
}

/// A column of a table.
#[derive(Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
    /// Empty if the values have none.
    pub unit: &'static str,
    pub meaning: &'static str,
    /// When there is no value; empty if there always is one.
    pub null: &'static str,
}

/// The values that a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    /// A whole number from 0 to 2⁶⁴ − 1.
    Whole,
    Number,
    Flag,
}

impl Kind {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Whole => "whole",
            Kind::Number => "number",
            Kind::Flag => "flag",
        }
    }

    const fn arrow(self) -> DataType {
        match self {
            Kind::Text => DataType::Utf8,
            Kind::Whole => DataType::UInt64,
            Kind::Number => DataType::Float64,
            Kind::Flag => DataType::Boolean,
        }
    }
}

impl Column {
    pub(crate) const fn new(name: &'static str, kind: Kind, meaning: &'static str) -> Column {
        Column { name, kind, unit: "", meaning, null: "" }
    }

    pub(crate) const fn unit(self, unit: &'static str) -> Column {
        Column { unit, ..self }
    }

    pub(crate) const fn null(self, null: &'static str) -> Column {
        Column { null, ..self }
    }

    /// Whether rows may lack it.
    pub const fn is_nullable(&self) -> bool {
        !self.null.is_empty()
    }
}

impl Table {
    /// Its schema in Arrow's terms.
    pub fn arrow(&self) -> Schema {
        let field = |column: &Column| Field::new(column.name, column.kind.arrow(), column.is_nullable());
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>())
    }

    /// Its section of the documentation.
    pub fn markdown(&self) -> String {
        let row = |column: &Column| {
            let empty = if column.is_nullable() { column.null } else { "never" };
            let name = format!("`{}`", column.name);
            markdown::row([&name, column.kind.name(), column.unit, column.meaning, empty])
        };
        let head = markdown::head(["column", "type", "unit", "meaning", "empty"].map(|name| (name, Align::Left)));
        let rows: String = self.columns.iter().map(row).collect();
        format!("### `{}`\n\nA row is {}.\n\n{head}{rows}", self.name, self.row)
    }
}
