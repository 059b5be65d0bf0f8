//! What a request may hold: checked before any lock is taken, with HBase's limits (hbase.md A7).

use crate::cell::{MAX_ROW_LENGTH, MAX_TAGS_LENGTH, Tag};
use crate::client::{ColumnSelection, Condition, Delete, DeleteMarker, Get, Mutation, Put, Scan, WriteTime};
use crate::error::{Error, Result};
use crate::schema::{ROW_ATTRIBUTES_FAMILY, TableDescriptor};

/// Limits of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestLimits {
    /// The longest value or qualifier in bytes (cell.max; HBase's `hbase.server.keyvalue.maxsize` is 10 MB).
    pub max_cell_bytes: u64,
    /// How far ahead of the clock a put's own timestamp may be, in milliseconds; `None` = at will
    /// (`hbase.hregion.keyvalue.timestamp.slop.millisecs`).
    pub timestamp_slop_millis: Option<i64>,
}

impl Default for RequestLimits {
    fn default() -> Self {
        RequestLimits { max_cell_bytes: 64 << 20, timestamp_slop_millis: None }
    }
}

/// True if the table, or what every table has, holds the family.
pub fn has_family(table: &TableDescriptor, family: &[u8]) -> bool {
    table.families.contains_key(family) || family == ROW_ATTRIBUTES_FAMILY
}

fn check_family(table: &TableDescriptor, family: &[u8]) -> Result<()> {
    if has_family(table, family) {
        return Ok(());
    }
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    Err(Error::NoSuchColumnFamily {
        family: text(family),
        known: table.families.keys().map(|name| text(name)).collect(),
    })
}

/// HBase `Mutation.checkRow`.
///
/// # Errors
/// [`Error::InvalidArgument`] for an empty or overlong row.
pub fn check_row(row: &[u8]) -> Result<()> {
    if row.is_empty() {
        return Err(Error::invalid("a row key needs at least one byte"));
    }
    if row.len() > MAX_ROW_LENGTH {
        return Err(Error::invalid(format!("a row key of {} bytes is over the limit of {MAX_ROW_LENGTH}", row.len())));
    }
    Ok(())
}

fn check_time(time: WriteTime) -> Result<()> {
    match time {
        WriteTime::At(timestamp) | WriteTime::ReplaceIfNewest(timestamp) if timestamp < 0 => {
            Err(Error::invalid(format!("the timestamp {timestamp} is negative")))
        }
        _ => Ok(()),
    }
}

fn check_delta_time(time: WriteTime) -> Result<()> {
    match time {
        WriteTime::Now | WriteTime::AfterNewest => Ok(()),
        _ => Err(Error::invalid("an increment or append takes no timestamp: it follows the current cell")),
    }
}

fn check_size(size: usize, limits: &RequestLimits) -> Result<()> {
    if size as u64 > limits.max_cell_bytes {
        return Err(Error::CellTooLarge { size: size as u64, limit: limits.max_cell_bytes });
    }
    Ok(())
}

fn check_tags(tags: &[Tag]) -> Result<()> {
    // The cell's own TTL may be added: 2 + 1 + 8 bytes.
    let size: usize = tags.iter().map(|tag| 3 + tag.value.len()).sum::<usize>() + 11;
    if size > MAX_TAGS_LENGTH || tags.iter().any(|tag| tag.value.len() > MAX_TAGS_LENGTH - 1) {
        return Err(Error::invalid(format!("tags of {size} bytes are over the limit of {MAX_TAGS_LENGTH}")));
    }
    Ok(())
}

fn check_put(table: &TableDescriptor, limits: &RequestLimits, put: &Put) -> Result<()> {
    for cell in &put.cells {
        check_family(table, &cell.family)?;
        check_time(cell.time)?;
        check_size(cell.value.len(), limits)?;
        check_size(cell.qualifier.len(), limits)?;
        if !cell.tags.is_empty() {
            check_tags(&cell.tags)?;
        }
    }
    Ok(())
}

fn check_delete(table: &TableDescriptor, limits: &RequestLimits, delete: &Delete) -> Result<()> {
    check_time(delete.row_time)?;
    if matches!(delete.row_time, WriteTime::ReplaceIfNewest(_)) {
        return Err(Error::invalid("a delete marker cannot replace a version"));
    }
    for marker in &delete.markers {
        let (family, qualifier, time) = match marker {
            DeleteMarker::Version { family, qualifier, time } | DeleteMarker::Column { family, qualifier, time } => {
                (family, Some(qualifier), *time)
            }
            DeleteMarker::Family { family, time } | DeleteMarker::FamilyVersion { family, time } => {
                (family, None, *time)
            }
        };
        check_family(table, family)?;
        check_time(time)?;
        if matches!(time, WriteTime::ReplaceIfNewest(_)) {
            return Err(Error::invalid("a delete marker cannot replace a version"));
        }
        check_size(qualifier.map_or(0, |qualifier| qualifier.len()), limits)?;
    }
    Ok(())
}

/// Checks everything about a mutation that the table's contents do not decide.
///
/// # Errors
/// [`Error::InvalidArgument`], [`Error::NoSuchColumnFamily`], [`Error::CellTooLarge`].
pub fn check_mutation(table: &TableDescriptor, limits: &RequestLimits, mutation: &Mutation) -> Result<()> {
    check_row(mutation.row())?;
    match mutation {
        Mutation::Put(put) => check_put(table, limits, put),
        Mutation::Delete(delete) => check_delete(table, limits, delete),
        Mutation::Increment(increment) => {
            check_delta_time(increment.time)?;
            increment.amounts.iter().try_for_each(|(family, qualifier, _)| {
                check_family(table, family)?;
                check_size(qualifier.len(), limits)
            })
        }
        Mutation::Append(append) => {
            check_delta_time(append.time)?;
            append.values.iter().try_for_each(|(family, qualifier, value)| {
                check_family(table, family)?;
                check_size(qualifier.len(), limits)?;
                check_size(value.len(), limits)
            })
        }
    }
}

/// Checks a put by itself, without wrapping it in a [`Mutation`].
///
/// # Errors
/// As [`check_mutation`].
pub fn check_put_request(table: &TableDescriptor, limits: &RequestLimits, put: &Put) -> Result<()> {
    check_row(&put.row)?;
    check_put(table, limits, put)
}

/// Checks the condition of a check-and-mutate.
///
/// # Errors
/// [`Error::NoSuchColumnFamily`].
pub fn check_condition(table: &TableDescriptor, condition: &Condition) -> Result<()> {
    match condition {
        Condition::Column { family, .. } => check_family(table, family),
        Condition::Filter { .. } => Ok(()),
        Condition::AllEqual(columns) => columns.iter().try_for_each(|(family, _, _)| check_family(table, family)),
    }
}

fn check_columns(table: &TableDescriptor, columns: &ColumnSelection) -> Result<()> {
    columns.families.keys().try_for_each(|family| check_family(table, family))
}

/// Checks a get.
///
/// # Errors
/// [`Error::InvalidArgument`], [`Error::NoSuchColumnFamily`].
pub fn check_get(table: &TableDescriptor, get: &Get) -> Result<()> {
    check_row(&get.row)?;
    check_columns(table, &get.columns)
}

/// Checks a scan.
///
/// # Errors
/// [`Error::InvalidArgument`], [`Error::NoSuchColumnFamily`].
pub fn check_scan(table: &TableDescriptor, scan: &Scan) -> Result<()> {
    for (row, name) in [(&scan.start_row, "start"), (&scan.stop_row, "stop"), (&scan.prefix, "prefix")] {
        if row.len() > MAX_ROW_LENGTH {
            let len = row.len();
            return Err(Error::invalid(format!("a {name} row of {len} bytes is over the limit of {MAX_ROW_LENGTH}")));
        }
    }
    check_columns(table, &scan.columns)?;
    if scan.raw && scan.columns.families.values().any(Option::is_some) {
        return Err(Error::invalid("cannot specify any column for a raw scan"));
    }
    if scan.batch == Some(0) {
        return Err(Error::invalid("a batch needs at least one cell"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(mutation: Mutation) -> Error {
        let table = TableDescriptor::with_family("cf");
        check_mutation(&table, &RequestLimits { max_cell_bytes: 10, ..RequestLimits::default() }, &mutation)
            .unwrap_err()
    }

    #[test]
    fn bad_mutations_are_refused_by_kind() {
        assert!(matches!(refused(Mutation::Put(Put::new(""))), Error::InvalidArgument(_)));
        assert!(matches!(refused(Mutation::Put(Put::new(vec![1; 32768]))), Error::InvalidArgument(_)));
        let unknown = Put::new("r").add("nope", "q", "v");
        assert!(matches!(refused(Mutation::Put(unknown)), Error::NoSuchColumnFamily { known, .. } if known == ["cf"]));
        let large = Put::new("r").add("cf", "q", "12345678901");
        assert!(matches!(refused(Mutation::Put(large)), Error::CellTooLarge { size: 11, limit: 10 }));
        let negative = Put::new("r").add_at("cf", "q", WriteTime::At(-1), "");
        assert!(matches!(refused(Mutation::Put(negative)), Error::InvalidArgument(_)));
        let mut delete = Delete::row("r");
        delete.row_time = WriteTime::At(-1);
        assert!(matches!(refused(Mutation::Delete(delete)), Error::InvalidArgument(_)));
        let mut hidden = Put::new("r").add(ROW_ATTRIBUTES_FAMILY, "q", "v");
        hidden.row = vec![1; 32767].into();
        let table = TableDescriptor::with_family("cf");
        assert!(check_put_request(&table, &RequestLimits::default(), &hidden).is_ok());
    }
}
