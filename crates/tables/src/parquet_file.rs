//! Parquet files, written a batch at a time: each batch is a row group. The columns are flat and of
//! four kinds, so the library's own half for Arrow, which knows every type, is left out: it would
//! be a tenth of the program.

use crate::column::{Kind, Table};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use parquet::basic::{LogicalType, Repetition, Type as Stored};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::sync::Arc;

pub(crate) struct ParquetFile {
    table: &'static Table,
    writer: SerializedFileWriter<File>,
}

impl ParquetFile {
    pub(crate) fn create(file: File, table: &'static Table) -> Result<ParquetFile, ParquetError> {
        let created_by = format!("kontig version {}", env!("CARGO_PKG_VERSION"));
        let properties = WriterProperties::builder().set_created_by(created_by).build();
        let writer = SerializedFileWriter::new(file, Arc::new(schema(table)?), Arc::new(properties))?;
        Ok(ParquetFile { table, writer })
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (column, values) in self.table.columns.iter().zip(batch.columns()) {
            // A column that may lack values says of each row whether it has one.
            let has = |row| i16::from(values.is_valid(row));
            let levels: Option<Vec<i16>> = column.is_nullable().then(|| (0..values.len()).map(has).collect());
            let mut writer = group.next_column()?.expect("the schema has all columns of the table");
            write_values(&mut writer, column.kind, values, levels.as_deref())?;
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<(), ParquetError> {
        self.writer.into_inner().map(drop)
    }
}

fn schema(table: &Table) -> Result<Type, ParquetError> {
    let fields = table.columns.iter().map(|column| {
        let (stored, meaning) = match column.kind {
            Kind::Text => (Stored::BYTE_ARRAY, Some(LogicalType::String)),
            Kind::Whole => (Stored::INT64, Some(LogicalType::integer(64, false))),
            Kind::Number => (Stored::DOUBLE, None),
            Kind::Flag => (Stored::BOOLEAN, None),
        };
        let repetition = if column.is_nullable() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        let field = Type::primitive_type_builder(column.name, stored);
        field.with_logical_type(meaning).with_repetition(repetition).build().map(Arc::new)
    });
    Type::group_type_builder(table.name).with_fields(fields.collect::<Result<_, _>>()?).build()
}

/// Writes the values that a column has; the levels say which rows have one.
fn write_values(
    writer: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    values: &dyn Array,
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    match kind {
        Kind::Text => {
            let values: Vec<_> = values.as_string::<i32>().iter().flatten().map(ByteArray::from).collect();
            writer.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
        }
        Kind::Whole => {
            let values = values.as_primitive::<UInt64Type>().iter().flatten();
            // The bits are stored, and the schema says that they have no sign.
            let values: Vec<_> = values.map(u64::cast_signed).collect();
            writer.typed::<Int64Type>().write_batch(&values, levels, None)?;
        }
        Kind::Number => {
            let values: Vec<_> = values.as_primitive::<Float64Type>().iter().flatten().collect();
            writer.typed::<DoubleType>().write_batch(&values, levels, None)?;
        }
        Kind::Flag => {
            let values: Vec<_> = values.as_boolean().iter().flatten().collect();
            writer.typed::<BoolType>().write_batch(&values, levels, None)?;
        }
    }
    Ok(())
}
