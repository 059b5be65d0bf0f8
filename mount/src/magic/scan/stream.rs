//! An open form of a scan: rows are pulled from the engine as the reader reads.

use super::aggregate::{AggregateEncoder, Aggregation};
use super::parts::{ScanForm, ScanRequest};
use super::sample::SampleScanner;
use super::visible::{self, Visibility};
use crate::magic::access::Viewer;
use crate::magic::file::{MagicFile, MagicOpened, read_only};
use crate::magic::forms::{CellsEncoder, CsvEncoder, Encoder, JsonlEncoder, TsvEncoder, ValueForm};
use crate::magic::hooks::MountHooks;
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::{Buf, Bytes};
use cellfs::cell::Cell;
use cellfs::client::{Filter, ResultScanner, RowResult, Scan, Table};
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;

/// Cells of a row that are held at a time, so that a wide row costs no more memory than a narrow one.
const CELLS_AT_A_TIME: usize = 1000;

/// An open form. It is read from start to end; a read at 0 begins again, at a new point of time; gaps ahead are read over.
pub struct ScanFile {
    table: Arc<dyn Table>,
    hooks: Arc<dyn MountHooks>,
    scan: Scan,
    sample: Option<u64>,
    aggregation: Aggregation,
    form: ScanForm,
    /// tsv and csv: the columns.
    columns: Vec<(Bytes, Bytes)>,
    versions: ValueForm,
    viewer: Option<Arc<Mutex<Viewer>>>,
    run: Option<Run>,
}

/// One pass over the scan.
struct Run {
    scanner: Option<Box<dyn ResultScanner>>,
    encoder: Box<dyn Encoder>,
    /// The stream's bytes before `ready`.
    offset: u64,
    ready: Bytes,
    begun: bool,
}

impl ScanFile {
    /// Opens a form of `request`.
    ///
    /// # Errors
    /// ENOENT where the form needs columns that are not named.
    pub fn open(
        table: Arc<dyn Table>,
        hooks: Arc<dyn MountHooks>,
        viewer: Option<Viewer>,
        request: &ScanRequest,
        form: ScanForm,
    ) -> FsResult<ScanFile> {
        request.check_form(form)?;
        let columns = match form {
            ScanForm::Tsv | ScanForm::Csv => request.named_columns()?,
            _ => Vec::new(),
        };
        let mut scan = request.scan();
        // Some filters decide over whole rows.
        let whole = scan.filter.as_ref().is_some_and(Filter::has_filter_row);
        scan.batch = Some(CELLS_AT_A_TIME).filter(|_| !whole);
        let (sample, aggregation) = (request.sample(), request.aggregation(&table.descriptor()));
        let only_rows = match form {
            ScanForm::Keys | ScanForm::Count => true,
            ScanForm::Aggregate => aggregation.sum.is_none(),
            _ => false,
        };
        // A hidden cell may be the first of its row.
        if only_rows && !scan.raw && !hooks.hides_any(table.id()) {
            scan.first_cell_only = true;
        }
        // Row keys are no secret: who may list the table sees them. But which of them pass a filter may be.
        let viewer = viewer.filter(|_| !only_rows || scan.filter.is_some()).map(|viewer| Arc::new(Mutex::new(viewer)));
        let versions = if request.shows_versions() { ValueForm::Versions } else { ValueForm::Newest };
        Ok(ScanFile { table, hooks, scan, sample, aggregation, form, columns, versions, viewer, run: None })
    }

    fn start(&self) -> FsResult<Run> {
        let hooks = self.hooks.hides_any(self.table.id()).then(|| Arc::clone(&self.hooks));
        let types = Arc::new(self.table.descriptor().column_types());
        let encoder: Box<dyn Encoder> = match self.form {
            ScanForm::Keys => Box::new(KeysEncoder::default()),
            ScanForm::Count => Box::new(CountEncoder::default()),
            ScanForm::Aggregate => Box::new(AggregateEncoder::new(self.aggregation.clone())),
            ScanForm::Jsonl => Box::new(JsonlEncoder::new(self.versions, types)),
            ScanForm::Cells => Box::new(CellsEncoder),
            ScanForm::Tsv => Box::new(TsvEncoder::new(self.columns.clone(), &types)),
            ScanForm::Csv => Box::new(CsvEncoder::new(self.columns.clone(), &types)),
        };
        let visibility = Visibility { table: self.table.id(), hooks, viewer: self.viewer.clone() };
        let scanner: Option<Box<dyn ResultScanner>> = match (self.scan.limit, self.sample) {
            (Some(0), _) => None,
            (_, Some(rows)) => Some(Box::new(SampleScanner::open(&self.table, &self.scan, &visibility, rows)?)),
            _ => Some(visible::open(self.table.as_ref(), &self.scan, &visibility)?),
        };
        Ok(Run { scanner, encoder, offset: 0, ready: Bytes::new(), begun: false })
    }
}

impl Run {
    /// Makes at least `size` bytes ready, or all there are.
    fn fill(&mut self, size: usize) -> FsResult<()> {
        if self.ready.len() >= size {
            return Ok(());
        }
        let mut out = Vec::with_capacity(size + size / 4);
        out.extend_from_slice(&self.ready);
        if !self.begun {
            self.begun = true;
            self.encoder.begin(&mut out);
            if self.scanner.is_none() {
                self.encoder.end(&mut out);
            }
        }
        while out.len() < size {
            let Some(scanner) = &mut self.scanner else { break };
            match scanner.next()? {
                Some(RowResult { cells, partial }) => self.encoder.cells(&cells, partial, &mut out),
                None => {
                    self.scanner = None;
                    self.encoder.end(&mut out);
                }
            }
        }
        self.ready = out.into();
        Ok(())
    }

    fn skip(&mut self, bytes: usize) {
        self.ready.advance(bytes);
        self.offset += bytes as u64;
    }
}

impl MagicFile for ScanFile {
    fn read(&mut self, offset: u64, size: usize) -> FsResult<Bytes> {
        let again = offset == 0 && self.run.as_ref().is_some_and(|run| run.offset != 0);
        let mut run = match self.run.take() {
            Some(run) if !again => run,
            _ => self.start()?,
        };
        if offset < run.offset {
            self.run = Some(run);
            return Err(FsError::new(libc::ESPIPE, "a scan is a stream: read from start to end, or again from 0"));
        }
        while run.offset < offset {
            let gap = usize::try_from(offset - run.offset).unwrap_or(usize::MAX).min(1 << 20);
            run.fill(gap)?;
            let step = gap.min(run.ready.len());
            if step == 0 {
                break;
            }
            run.skip(step);
        }
        if run.offset < offset {
            self.run = Some(run);
            return Ok(Bytes::new());
        }
        run.fill(size)?;
        let taken = run.ready.slice(..size.min(run.ready.len()));
        run.skip(taken.len());
        self.run = Some(run);
        Ok(taken)
    }

    fn write(&mut self, _offset: u64, _data: &[u8]) -> FsResult<usize> {
        Err(read_only())
    }

    fn truncate(&mut self, _size: u64) -> FsResult<()> {
        Err(read_only())
    }

    fn flush(&mut self) -> FsResult<()> {
        Ok(())
    }

    fn size(&self) -> Option<u64> {
        None
    }

    fn opened(&self) -> MagicOpened {
        MagicOpened { direct_io: true, no_flush: true }
    }
}

/// A row key per line, spelled as a file name.
#[derive(Default)]
struct KeysEncoder {
    seen: bool,
}

impl Encoder for KeysEncoder {
    fn cells(&mut self, cells: &[Cell], more: bool, out: &mut Vec<u8>) {
        if let (false, Some(cell)) = (self.seen, cells.first()) {
            out.extend_from_slice(&names::encode_row(cell.row()));
            out.push(b'\n');
            self.seen = true;
        }
        self.seen &= more;
    }
}

/// The number of rows.
#[derive(Default)]
struct CountEncoder {
    rows: u64,
    seen: bool,
}

impl Encoder for CountEncoder {
    fn cells(&mut self, cells: &[Cell], more: bool, _out: &mut Vec<u8>) {
        self.seen |= !cells.is_empty();
        if !more {
            self.rows += u64::from(self.seen);
            self.seen = false;
        }
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        // Writing to memory cannot fail.
        let _ = writeln!(out, "{}", self.rows);
    }
}
