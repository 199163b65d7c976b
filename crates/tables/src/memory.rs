//! Tables in memory, as lists of Arrow's batches.

use crate::rows::Sink;
use crate::schema::TABLES;
use arrow_array::RecordBatch;
use kontig_error::Error;

/// The batches of each table, in the order of [`TABLES`].
#[derive(Clone, Default)]
pub struct Tables {
    pub batches: [Vec<RecordBatch>; TABLES.len()],
}

impl Sink for Tables {
    fn take(&mut self, table: usize, batch: RecordBatch) -> Result<(), Error> {
        self.batches[table].push(batch);
        Ok(())
    }
}

impl Tables {
    /// Hands everything to another sink.
    ///
    /// # Errors
    /// If that fails.
    pub fn pass_on(&self, sink: &mut impl Sink) -> Result<(), Error> {
        let batches =
            self.batches.iter().enumerate().flat_map(|(table, of)| of.iter().map(move |batch| (table, batch)));
        batches.into_iter().try_for_each(|(table, batch)| sink.take(table, batch.clone()))
    }
}
