//! `sample=N`: rows spread evenly over the key space, found by seeks.
//!
//! The first and the last row of the range are found, then the widest gap between two rows found so far is halved, by the key in its middle and the
//! row next to that key, until there are N rows or no gap holds another. So a sample costs a few seeks for each row of it, whatever the table holds.

use super::visible::{self, Visibility};
use bytes::Bytes;
use cellfs::Result;
use cellfs::client::{ResultScanner, RowResult, Scan, Table};
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::vec::IntoIter;

/// Rows of a sample at most: their keys are held.
pub(super) const SAMPLE_MAX: u64 = 100_000;

/// The rows of a sample, in the order of the scan.
pub(super) struct SampleScanner {
    table: Arc<dyn Table>,
    scan: Scan,
    visibility: Visibility,
    rows: IntoIter<Bytes>,
    rows_left: u64,
    current: Option<Box<dyn ResultScanner>>,
    in_row: bool,
}

impl SampleScanner {
    /// Chooses `count` of the rows that `scan` finds.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn open(
        table: &Arc<dyn Table>,
        scan: &Scan,
        visibility: &Visibility,
        count: u64,
    ) -> Result<SampleScanner> {
        let mut probe = scan.clone();
        (probe.limit, probe.first_cell_only) = (Some(1), true);
        if scan.reversed {
            std::mem::swap(&mut probe.start_row, &mut probe.stop_row);
            std::mem::swap(&mut probe.include_start, &mut probe.include_stop);
            probe.reversed = false;
        }
        let prober = Prober { table: table.as_ref(), scan: probe, visibility };
        let mut rows = choose(&prober, usize::try_from(count.min(SAMPLE_MAX)).unwrap_or(0))?;
        if scan.reversed {
            rows.reverse();
        }
        Ok(SampleScanner {
            table: Arc::clone(table),
            scan: scan.clone(),
            visibility: visibility.clone(),
            rows: rows.into_iter(),
            rows_left: scan.limit.unwrap_or(u64::MAX),
            current: None,
            in_row: false,
        })
    }
}

impl ResultScanner for SampleScanner {
    fn next(&mut self) -> Result<Option<RowResult>> {
        loop {
            if let Some(current) = &mut self.current {
                if let Some(part) = current.next()? {
                    if !self.in_row {
                        self.rows_left = self.rows_left.saturating_sub(1);
                    }
                    self.in_row = part.partial;
                    return Ok(Some(part));
                }
                self.current = None;
            }
            let Some(row) = self.rows.next().filter(|_| self.rows_left > 0) else { return Ok(None) };
            let mut scan = self.scan.clone();
            (scan.start_row, scan.include_start) = (row.clone(), true);
            (scan.stop_row, scan.include_stop, scan.limit) = (row, true, Some(1));
            self.current = Some(visible::open(self.table.as_ref(), &scan, &self.visibility)?);
        }
    }
}

/// Finds rows of the range, which is given forward.
struct Prober<'a> {
    table: &'a dyn Table,
    scan: Scan,
    visibility: &'a Visibility,
}

impl Prober<'_> {
    fn first(&self, scan: &Scan) -> Result<Option<Bytes>> {
        let found = visible::open(self.table, scan, self.visibility)?.next()?;
        Ok(found.map(|row| Bytes::copy_from_slice(row.row())))
    }

    /// The first row from `key` on, before `end`.
    fn at_or_after(&self, key: &[u8], end: &Bytes) -> Result<Option<Bytes>> {
        let mut scan = self.scan.clone();
        (scan.start_row, scan.include_start) = (Bytes::copy_from_slice(key), true);
        (scan.stop_row, scan.include_stop) = (end.clone(), false);
        self.first(&scan)
    }

    /// The last row before `key`, after `start`; without a key the last of all.
    fn before(&self, key: Option<&[u8]>, start: Option<&Bytes>) -> Result<Option<Bytes>> {
        let mut scan = self.scan.clone();
        scan.reversed = true;
        std::mem::swap(&mut scan.start_row, &mut scan.stop_row);
        std::mem::swap(&mut scan.include_start, &mut scan.include_stop);
        if let Some(key) = key {
            (scan.start_row, scan.include_start) = (Bytes::copy_from_slice(key), false);
        }
        if let Some(start) = start {
            (scan.stop_row, scan.include_stop) = (start.clone(), false);
        }
        self.first(&scan)
    }
}

/// Two rows with no chosen row between them; the widest is the greatest.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Gap {
    width: u128,
    low: Bytes,
    high: Bytes,
}

impl Gap {
    fn new(common: usize, low: Bytes, high: Bytes) -> Gap {
        let number = |row: &Bytes| {
            let mut bytes = [0; 16];
            row.iter().skip(common).zip(&mut bytes).for_each(|(from, to)| *to = *from);
            u128::from_be_bytes(bytes)
        };
        Gap { width: number(&high).saturating_sub(number(&low)), low, high }
    }

    /// A key in the middle, after `low`.
    fn middle(&self) -> Vec<u8> {
        let common = common_length(&self.low, &self.high);
        let number = |row: &Bytes| {
            let mut bytes = [0; 8];
            row.iter().skip(common).zip(&mut bytes).for_each(|(from, to)| *to = *from);
            u64::from_be_bytes(bytes)
        };
        let (low, high) = (number(&self.low), number(&self.high));
        let middle = low + high.saturating_sub(low) / 2;
        let mut key = self.low.get(..common).unwrap_or_default().to_vec();
        key.extend_from_slice(&middle.to_be_bytes());
        if key[..] <= self.low[..] || key[..] >= self.high[..] {
            key = self.low.to_vec();
            key.push(0);
        }
        key
    }
}

fn common_length(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

fn choose(prober: &Prober<'_>, count: usize) -> Result<Vec<Bytes>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let Some(first) = prober.first(&prober.scan)? else { return Ok(Vec::new()) };
    let last = prober.before(None, None)?.unwrap_or_else(|| first.clone());
    let mut rows = vec![first.clone()];
    if last <= first {
        return Ok(rows);
    }
    rows.push(last.clone());
    let common = common_length(&first, &last);
    let mut gaps = BinaryHeap::from([Gap::new(common, first, last)]);
    // One row is the one in the middle.
    let wanted = if count == 1 { 3 } else { count };
    while rows.len() < wanted
        && let Some(gap) = gaps.pop()
    {
        let middle = gap.middle();
        let after = prober.at_or_after(&middle, &gap.high)?;
        let found = match after {
            Some(row) => Some(row),
            None => prober.before(Some(&middle), Some(&gap.low))?,
        };
        let Some(row) = found.filter(|row| *row > gap.low && *row < gap.high) else { continue };
        rows.push(row.clone());
        gaps.push(Gap::new(common, gap.low, row.clone()));
        gaps.push(Gap::new(common, row, gap.high));
    }
    if count == 1 {
        return Ok(rows.pop().into_iter().collect());
    }
    rows.sort();
    rows.truncate(count);
    Ok(rows)
}
