//! Files: a directory with a CSV or Parquet file for each table, whole or not at all.

use crate::parquet_file::ParquetFile;
use crate::rows::Sink;
use crate::schema::TABLES;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use kontig_error::files::NewDirectory;
use kontig_error::{Error, Failed};
use std::fmt::Display;
use std::fs::File;
use std::path::{Path, PathBuf};

/// The format of a directory's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// RFC 4180 with a line of names: an empty field is no value.
    Csv,
    /// Without compression, as every reader knows it.
    Parquet,
}

impl Format {
    /// The ending of its files' names.
    pub const fn ending(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Parquet => "parquet",
        }
    }
}

enum Writer {
    Csv(Box<csv::Writer<File>>),
    Parquet(Box<ParquetFile>),
}

/// The files of a new directory.
pub struct Files {
    shown: PathBuf,
    dir: NewDirectory,
    format: Format,
    writers: Vec<Writer>,
}

impl Files {
    /// Makes the directory and its files.
    ///
    /// # Errors
    /// If there is something of that name, or it cannot be written.
    pub fn create(dir: &Path, format: Format) -> Result<Files, Error> {
        let mut files = Files {
            shown: dir.into(),
            dir: NewDirectory::create(dir)?,
            format,
            writers: Vec::with_capacity(TABLES.len()),
        };
        for (number, table) in TABLES.iter().enumerate() {
            let file = files.dir.file(&format!("{}.{}", table.name, format.ending()))?;
            let writer = match format {
                Format::Csv => {
                    let mut writer = csv::Writer::from_writer(file);
                    let names = table.columns.iter().map(|column| column.name);
                    writer.write_record(names).map_err(|e| files.failed(number, &e))?;
                    Writer::Csv(Box::new(writer))
                }
                Format::Parquet => {
                    let writer = ParquetFile::create(file, table).map_err(|e| files.failed(number, &e))?;
                    Writer::Parquet(Box::new(writer))
                }
            };
            files.writers.push(writer);
        }
        Ok(files)
    }

    fn failed(&self, table: usize, e: &dyn Display) -> Error {
        let path = self.shown.join(format!("{}.{}", TABLES[table].name, self.format.ending()));
        Failed::Write { path: path.display().to_string(), reason: e.to_string() }.into()
    }

    /// Ends the files, and gives the directory its name. Returns their format.
    ///
    /// # Errors
    /// If something cannot be written; nothing is left then.
    pub fn finish(mut self) -> Result<Format, Error> {
        for (number, writer) in std::mem::take(&mut self.writers).into_iter().enumerate() {
            match writer {
                Writer::Csv(mut writer) => writer.flush().map_err(|e| self.failed(number, &e))?,
                Writer::Parquet(writer) => writer.finish().map_err(|e| self.failed(number, &e))?,
            }
        }
        self.dir.finish().map(|()| self.format)
    }
}

impl Sink for Files {
    fn take(&mut self, table: usize, batch: RecordBatch) -> Result<(), Error> {
        let written = match &mut self.writers[table] {
            Writer::Csv(writer) => write_csv(writer, &batch).map_err(|e| e.to_string()),
            Writer::Parquet(writer) => writer.write(&batch).map_err(|e| e.to_string()),
        };
        written.map_err(|e| self.failed(table, &e))
    }
}

fn write_csv(writer: &mut csv::Writer<File>, batch: &RecordBatch) -> csv::Result<()> {
    let texts: Vec<_> = batch.columns().iter().map(|column| texts(column)).collect();
    for row in 0..batch.num_rows() {
        for text in &texts {
            writer.write_field(text(row))?;
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(())
}

/// A column's values as texts, by row. A number has as few digits as lead back to it.
fn texts(column: &dyn Array) -> Box<dyn Fn(usize) -> String + '_> {
    let text: Box<dyn Fn(usize) -> String> = match column.data_type() {
        DataType::UInt64 => {
            let column = column.as_primitive::<UInt64Type>();
            Box::new(|row| column.value(row).to_string())
        }
        DataType::Float64 => {
            let column = column.as_primitive::<Float64Type>();
            Box::new(|row| format!("{:?}", column.value(row)))
        }
        DataType::Boolean => {
            let column = column.as_boolean();
            Box::new(|row| column.value(row).to_string())
        }
        _ => {
            let column = column.as_string::<i32>();
            Box::new(|row| column.value(row).to_string())
        }
    };
    Box::new(move |row| if column.is_null(row) { String::new() } else { text(row) })
}
