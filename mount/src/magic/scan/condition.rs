//! `where=`, `filter=` and what else a part of a scan's path says in bytes.

use super::parts::{ScannedColumn, column};
use crate::ops::{FsError, FsResult};
use bytes::Bytes;
use cellfs::client::{Comparison, Filter, SingleColumnValue};
use cellfs::schema::TableDescriptor;

fn absent(what: String) -> FsError {
    FsError::new(libc::ENOENT, what)
}

/// The column and the value of `where=cf:a=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Where {
    pub(super) family: Bytes,
    pub(super) qualifier: Bytes,
    value: Bytes,
}

impl Where {
    /// Reads `cf:a=VALUE`: `%XX` is a byte, so that `=` in the column is `%3D`; VALUE is text of the column's type where it has one.
    ///
    /// # Errors
    /// ENOENT with the reason.
    pub(super) fn parse(text: &[u8], table: &TableDescriptor) -> FsResult<Where> {
        let shown = text.escape_ascii();
        let split = text.iter().position(|byte| *byte == b'=').and_then(|at| text.split_at_checked(at));
        let Some((name, value)) = split else {
            return Err(absent(format!("where= takes cf:a=VALUE, not {shown}")));
        };
        let name = String::from_utf8_lossy(name).replace("%3D", "=");
        let (family, Some(qualifier)) = whole_column(&name, table)? else {
            return Err(absent(format!("where= takes one column, cf:a=VALUE, not {shown}")));
        };
        let value = unescape(value.get(1..).unwrap_or_default())?;
        let value = match table.column_types().get(&family, &qualifier) {
            None => value,
            Some(of) => {
                let text = String::from_utf8_lossy(&value);
                of.encode(&text).map_err(|error| absent(format!("where={shown}: {error}")))?
            }
        };
        Ok(Where { family, qualifier, value })
    }

    /// The same as HBase's filter; `hide`: the column was not asked for and is not to be shown.
    pub(super) fn filter(&self, hide: bool) -> Filter {
        let comparison = Comparison::equal(self.value.clone());
        let mut condition = SingleColumnValue::new(self.family.clone(), self.qualifier.clone(), comparison);
        condition.filter_if_missing = true;
        condition.exclude = hide;
        Filter::SingleColumnValue(condition)
    }
}

/// A column; unlike in `columns=` an empty qualifier is one.
pub(super) fn whole_column(name: &str, table: &TableDescriptor) -> FsResult<ScannedColumn> {
    let (family, qualifier) = column(name, table)?;
    Ok((family, Some(qualifier.unwrap_or_default())))
}

/// Reads `filter=`: HBase's filter language, with `%XX` for a byte.
///
/// # Errors
/// ENOENT with the place and the reason.
pub(super) fn parse_filter(text: &[u8]) -> FsResult<Filter> {
    Filter::parse(&unescape(text)?).map_err(|error| absent(error.to_string()))
}

/// Bytes in which `%XX` stands for one.
fn unescape(text: &[u8]) -> FsResult<Bytes> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let escaped = rest.split_at_checked(2).and_then(|(digits, after)| {
            let digits = std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|b| b.is_ascii_hexdigit()))?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let Some((byte, after)) = escaped else {
            return Err(absent(format!(
                "% in {} is not followed by two hex digits; % itself is %25",
                text.escape_ascii()
            )));
        };
        bytes.push(byte);
        rest = after;
    }
    Ok(bytes.into())
}
