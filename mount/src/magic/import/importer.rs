//! Lines into mutations, mutations into the table in batches.

use super::report::ImportReport;
use crate::magic::access::carry_on;
use crate::magic::forms::{self, BadHeader, Decoder, Incoming, IncomingCell, LineSink};
use crate::magic::node::{ImportForm, ImportMode, TableHandle};
use crate::magic::scan::known_families;
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::Error;
use cellfs::cell::CellType;
use cellfs::client::{
    Delete, DeleteMarker, LoadKind, LoadSummary, Mutation, Put, PutCell, Table, TableLoad, WriteTime,
};
use cellfs::schema::{ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use std::sync::Arc;

/// Mutations of one batch at most.
const BATCH_MUTATIONS: usize = 4096;
/// Bytes of keys and values of one batch, about.
const BATCH_BYTES: usize = 4 << 20;
/// Cells of one mutation at most: a row longer than this comes in several, each atomic.
const MUTATION_CELLS: usize = 4096;

/// A load knows a line as the stream's place above its number in the stream.
const STREAM_SHIFT: u32 = 40;
const LINE_MASK: u64 = (1 << STREAM_SHIFT) - 1;

/// Writes a stream of one form into a table. Line by line: good lines are kept, bad ones counted and named. As a whole: nothing is there before
/// [`Importer::finish`], and nothing at all if a line was bad.
pub struct Importer {
    decoder: Box<dyn Decoder>,
    lines: LinesIntoBatches,
}

impl Importer {
    /// An import into `table`.
    pub fn new(table: Arc<dyn Table>, mode: ImportMode, form: ImportForm) -> Importer {
        let descriptor = table.descriptor();
        Importer {
            decoder: forms::decoder(form, Arc::new(descriptor.column_types())),
            lines: LinesIntoBatches {
                table: TableHandle(table),
                descriptor,
                batch: Vec::new(),
                batch_lines: Vec::new(),
                batch_bytes: 0,
                written_rows: Vec::new(),
                last_row: Bytes::new(),
                report: ImportReport::default(),
                failure: None,
                mode,
                load: None,
                stream: 0,
            },
        }
    }

    /// Takes the next piece of the stream and writes the lines that are whole. An error ends the import: nothing after it is written.
    ///
    /// # Errors
    /// EINVAL for a header that says nothing; what the store says when it takes no more writes.
    pub fn push(&mut self, data: &[u8]) -> FsResult<()> {
        self.lines.check()?;
        let pushed = self.decoder.push(data, &mut self.lines);
        self.settle(pushed)
    }

    /// The stream ends and another one of the same import begins, whose lines are counted anew.
    ///
    /// # Errors
    /// As [`Importer::push`].
    pub fn next_stream(&mut self, form: ImportForm) -> FsResult<()> {
        self.end_stream()?;
        self.decoder = forms::decoder(form, Arc::new(self.lines.descriptor.column_types()));
        self.lines.stream += 1;
        Ok(())
    }

    /// The stream ends: a last line without newline is written too. What comes after it in a whole import is one more, which adds to what is there
    /// then; after a refused one nothing comes.
    ///
    /// # Errors
    /// As [`Importer::push`].
    pub fn finish(&mut self) -> FsResult<()> {
        self.end_stream()?;
        if let ImportMode::Whole(kind) = self.lines.mode {
            self.lines.end_load(kind);
        }
        self.lines.check()
    }

    /// What was done so far; the time is for the caller to set.
    pub fn report(&mut self) -> &mut ImportReport {
        &mut self.lines.report
    }

    /// True if nothing is there before the end.
    pub fn is_whole(&self) -> bool {
        self.lines.mode != ImportMode::Lines
    }

    /// The rows written since this was last asked.
    pub fn take_written_rows(&mut self) -> Vec<Bytes> {
        std::mem::take(&mut self.lines.written_rows)
    }

    fn end_stream(&mut self) -> FsResult<()> {
        self.lines.check()?;
        let finished = self.decoder.finish(&mut self.lines);
        self.settle(finished)
    }

    fn settle(&mut self, outcome: Result<(), BadHeader>) -> FsResult<()> {
        self.lines.write();
        if let Err(BadHeader(reason)) = outcome {
            self.lines.failure.get_or_insert_with(|| FsError::new(libc::EINVAL, format!("nothing imported: {reason}")));
        }
        self.lines.check()
    }
}

/// The lines that one mutation of a batch came from; they follow each other.
#[derive(Clone, Copy)]
struct LineRange {
    first: u64,
    last: u64,
}

/// Collects lines into mutations and writes these in batches.
struct LinesIntoBatches {
    table: TableHandle,
    descriptor: Arc<TableDescriptor>,
    batch: Vec<Mutation>,
    batch_lines: Vec<LineRange>,
    batch_bytes: usize,
    written_rows: Vec<Bytes>,
    last_row: Bytes,
    report: ImportReport,
    /// The store takes no more, or the header was no good.
    failure: Option<FsError>,
    mode: ImportMode,
    /// Of a whole import, once there is something to load.
    load: Option<Box<dyn TableLoad>>,
    /// Counts the streams of the import.
    stream: u64,
}

impl LineSink for LinesIntoBatches {
    fn record(&mut self, line: u64, record: Incoming) {
        if self.failure.is_some() {
            return;
        }
        if let Some(reason) = record.cells.iter().find_map(|cell| self.unknown_family(cell)) {
            self.report.reject(self.stream, line, &reason);
            return;
        }
        self.batch_bytes += record.row.len();
        for cell in record.cells {
            self.batch_bytes += cell.qualifier.len() + cell.value.len() + 64;
            self.add(line, &record.row, cell);
        }
        if self.batch.len() >= BATCH_MUTATIONS || self.batch_bytes >= BATCH_BYTES {
            self.write();
        }
    }

    fn reject(&mut self, line: u64, reason: String) {
        self.report.reject(self.stream, line, &reason);
    }
}

impl LinesIntoBatches {
    fn check(&self) -> FsResult<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    fn unknown_family(&self, cell: &IncomingCell) -> Option<String> {
        if cell.family != ROW_ATTRIBUTES_FAMILY && self.descriptor.families.contains_key(&cell.family) {
            return None;
        }
        let known = known_families(&self.descriptor);
        Some(format!("no family {}; the table has: {known}", cell.family.escape_ascii()))
    }

    /// Adds a cell to the last mutation if that is of the same row and kind and its line the one before, else in a new one.
    fn add(&mut self, line: u64, row: &Bytes, cell: IncomingCell) {
        let put = cell.cell_type == CellType::Put;
        let joins = match (self.batch.last(), self.batch_lines.last()) {
            (Some(mutation), Some(lines)) => {
                let same_kind = match mutation {
                    Mutation::Put(last) => put && last.cells.len() < MUTATION_CELLS,
                    Mutation::Delete(last) => !put && last.markers.len() < MUTATION_CELLS,
                    _ => false,
                };
                same_kind && mutation.row() == row && line <= lines.last + 1
            }
            _ => false,
        };
        if !joins {
            self.batch.push(match put {
                true => Mutation::Put(Put::new(row.clone())),
                false => Mutation::Delete(Delete::row(row.clone())),
            });
            self.batch_lines.push(LineRange { first: line, last: line });
        }
        if let Some(lines) = self.batch_lines.last_mut() {
            lines.last = line;
        }
        let time = cell.timestamp.map_or(WriteTime::AfterNewest, WriteTime::At);
        let IncomingCell { family, qualifier, value, .. } = cell;
        match self.batch.last_mut() {
            Some(Mutation::Put(last)) => last.cells.push(PutCell { family, qualifier, time, value, tags: Vec::new() }),
            Some(Mutation::Delete(last)) => last.markers.push(match cell.cell_type {
                CellType::DeleteColumn => DeleteMarker::Column { family, qualifier, time },
                CellType::DeleteFamily => DeleteMarker::Family { family, time },
                CellType::DeleteFamilyVersion => DeleteMarker::FamilyVersion { family, time },
                _ => DeleteMarker::Version { family, qualifier, time },
            }),
            _ => {}
        }
    }

    fn fail(&mut self, line: u64, mut error: FsError) {
        error.reason = format!("the import stopped at line {line}: {}", error.reason);
        self.failure.get_or_insert(error);
    }

    /// Writes the batch. A mutation that can never succeed costs its lines; anything else ends the import.
    fn write(&mut self) {
        if self.batch.is_empty() || self.failure.is_some() {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let lines = std::mem::take(&mut self.batch_lines);
        self.batch_bytes = 0;
        if let ImportMode::Whole(kind) = self.mode {
            self.add_to_load(kind, batch, &lines);
            return;
        }
        let facts: Vec<(Bytes, u64)> =
            batch.iter().map(|mutation| (mutation.row().clone(), cells_of(mutation))).collect();
        for mutation in &mut batch {
            if let Mutation::Put(put) = mutation
                && let Err(error) = carry_on(&self.table, &put.row, &mut put.cells)
            {
                self.fail(lines.first().map_or(0, |lines| lines.first), error);
                return;
            }
        }
        let results = self.table.0.batch(batch);
        for ((result, lines), (row, cells)) in results.into_iter().zip(lines).zip(facts) {
            match result {
                Ok(_) => {
                    self.report.cells += cells;
                    if row != self.last_row {
                        self.report.rows += 1;
                        self.written_rows.push(row.clone());
                        self.last_row = row;
                    }
                }
                Err(error) if costs_its_line(&error) => {
                    let reason = error.to_string();
                    (lines.first..=lines.last).for_each(|line| self.report.reject(self.stream, line, &reason));
                }
                Err(error) => self.fail(lines.first, error.into()),
            }
        }
    }
}

impl LinesIntoBatches {
    /// Gives mutations to the load. Once a line is refused nothing will come of it, and the rest is only read to name what else is bad.
    fn add_to_load(&mut self, kind: LoadKind, batch: Vec<Mutation>, lines: &[LineRange]) {
        for (mut mutation, lines) in batch.into_iter().zip(lines) {
            if self.report.rejected > 0 {
                self.load = None;
                return;
            }
            let added = match (&mut mutation, kind) {
                // What replaces everything follows nothing.
                (Mutation::Put(put), LoadKind::Add | LoadKind::New) => carry_on(&self.table, &put.row, &mut put.cells),
                _ => Ok(()),
            };
            let added = added.map_err(Refusal::Import).and_then(|()| {
                let line = self.stream << STREAM_SHIFT | lines.first;
                let load = self.loading(kind)?;
                load.add(line, &mutation).map_err(|error| match costs_its_line(&error) {
                    true => Refusal::Line(error.to_string()),
                    false => Refusal::Import(error.into()),
                })
            });
            match added {
                Ok(()) => {}
                Err(Refusal::Line(reason)) => {
                    (lines.first..=lines.last).for_each(|line| self.report.reject(self.stream, line, &reason));
                }
                Err(Refusal::Import(error)) => {
                    self.load = None;
                    return self.fail(lines.first, error);
                }
            }
        }
    }

    fn loading(&mut self, kind: LoadKind) -> Result<&mut Box<dyn TableLoad>, Refusal> {
        let load = match self.load.take() {
            Some(load) => load,
            None => self.table.0.load(kind).map_err(|error| Refusal::Import(error.into()))?,
        };
        Ok(self.load.insert(load))
    }

    /// Makes everything visible, unless a line was refused.
    fn end_load(&mut self, kind: LoadKind) {
        if self.report.rejected == 0 {
            let report = &mut self.report;
            let finished = match self.load.take() {
                Some(load) => {
                    load.finish(&mut |line, reason| report.reject(line >> STREAM_SHIFT, line & LINE_MASK, reason))
                }
                // A table is emptied by a stream without rows.
                None if kind == LoadKind::Replace => {
                    self.table.0.load(kind).and_then(|load| load.finish(&mut |_, _| {}))
                }
                None => Ok(LoadSummary::default()),
            };
            match finished {
                Ok(summary) if summary.refused == 0 => {
                    self.report.rows += summary.rows;
                    self.report.cells += summary.cells;
                }
                Ok(_) => {}
                Err(error) => {
                    let mut error = FsError::from(error);
                    error.reason = format!("nothing imported: {}", error.reason);
                    self.failure.get_or_insert(error);
                }
            }
        }
        self.load = None;
        // What comes now comes to what has just been installed.
        if kind == LoadKind::Replace {
            self.mode = ImportMode::Whole(LoadKind::Add);
        }
    }
}

/// Why a mutation was not taken.
enum Refusal {
    /// Its lines are no good.
    Line(String),
    /// The import cannot go on.
    Import(FsError),
}

fn cells_of(mutation: &Mutation) -> u64 {
    match mutation {
        Mutation::Put(put) => put.cells.len() as u64,
        Mutation::Delete(delete) => delete.markers.len() as u64,
        _ => 0,
    }
}

/// Errors of the request itself; all others concern the table or the store.
fn costs_its_line(error: &Error) -> bool {
    matches!(
        error,
        Error::InvalidArgument(_)
            | Error::NoSuchColumnFamily { .. }
            | Error::CellTooLarge { .. }
            | Error::NotALong { .. }
    )
}
