//! What a schema must fulfil before it is accepted (HBase `TableDescriptorChecker`, `ColumnFamilyDescriptorBuilder.isLegalColumnFamilyName`).

use super::family::ColumnFamilyDescriptor;
use super::table::{ROW_ATTRIBUTES_FAMILY, TableDescriptor};
use crate::error::{Error, Result};

/// Longest family name in bytes: its length is one signed byte in a cell's key.
const MAX_FAMILY_NAME: usize = i8::MAX as usize;

/// Checks a family's name.
///
/// # Errors
/// [`Error::InvalidArgument`] with the rule that is broken.
pub fn check_family_name(name: &[u8]) -> Result<()> {
    let shown = name.escape_ascii();
    if name.is_empty() {
        return Err(Error::invalid("a family needs a name"));
    }
    if name.len() > MAX_FAMILY_NAME {
        return Err(Error::invalid(format!("the family name {shown} is over {MAX_FAMILY_NAME} bytes")));
    }
    if name.starts_with(b".") {
        return Err(Error::invalid(format!("the family name {shown} begins with a dot, which HBase forbids")));
    }
    if name == b"recovered.edits" {
        return Err(Error::invalid("recovered.edits is not a legal family name (HBase reserves it)"));
    }
    match name.iter().find(|b| b.is_ascii_control() || matches!(b, b':' | b'\\' | b'/')) {
        Some(bad) => {
            Err(Error::invalid(format!("the byte {:?} is not legal in the family name {shown}", char::from(*bad))))
        }
        None => Ok(()),
    }
}

impl ColumnFamilyDescriptor {
    /// Checks ranges and what attributes ask of each other.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the attribute and the rule.
    pub fn check(&self) -> Result<()> {
        if self.versions == 0 {
            return Err(Error::invalid("VERSIONS must be positive"));
        }
        if self.min_versions > self.versions {
            return Err(Error::invalid(format!(
                "MIN_VERSIONS {} is more than VERSIONS {}",
                self.min_versions, self.versions
            )));
        }
        if self.ttl_seconds <= 0 {
            return Err(Error::invalid("TTL must be positive"));
        }
        if !(1024..=16 << 20).contains(&self.block_size) {
            return Err(Error::invalid(format!("BLOCKSIZE {} is not between 1 KB and 16 MB", self.block_size)));
        }
        if self.bloom == super::BloomType::RowPrefixFixedLength(0) {
            return Err(Error::invalid(
                "BLOOMFILTER ROWPREFIX_FIXED_LENGTH needs \"RowPrefixBloomFilter.prefix_length\", 1 or more",
            ));
        }
        Ok(())
    }
}

impl TableDescriptor {
    /// Checks the table's attributes, its families' names and their attributes. The hidden family of row attributes is let pass.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the family, the attribute and the rule.
    pub fn check(&self) -> Result<()> {
        if !self.families.keys().any(|name| name != ROW_ATTRIBUTES_FAMILY) {
            return Err(Error::invalid("a table needs at least one family"));
        }
        if self.max_file_size.is_some_and(|bytes| bytes < 2 << 20) {
            return Err(Error::invalid("MAX_FILESIZE must be 2 MB or more"));
        }
        if self.memstore_flush_size.is_some_and(|bytes| bytes < 1 << 20) {
            return Err(Error::invalid("MEMSTORE_FLUSHSIZE must be 1 MB or more"));
        }
        for (name, family) in &self.families {
            if name == ROW_ATTRIBUTES_FAMILY {
                continue;
            }
            check_family_name(name)?;
            family.check().map_err(|error| Error::invalid(format!("family {}: {error}", name.escape_ascii())))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn family_names_follow_hbases_rules() {
        for good in [&b"cf"[..], b"a b", b"%", b"\xff\xfe", b"x.y", &[b'a'; 127]] {
            assert!(check_family_name(good).is_ok(), "{}", good.escape_ascii());
        }
        for bad in [&b""[..], b".a", b"a:b", b"a/b", b"a\\b", b"a\x00", b"a\x7f", b"recovered.edits", &[b'a'; 128]] {
            assert!(check_family_name(bad).is_err(), "{}", bad.escape_ascii());
        }
    }

    #[test]
    fn a_table_needs_a_family_and_sound_attributes() {
        assert!(TableDescriptor::default().check().is_err());
        let only_hidden = TableDescriptor::with_family(ROW_ATTRIBUTES_FAMILY);
        assert!(only_hidden.check().is_err());
        assert!(TableDescriptor::with_family("cf").check().is_ok());
        let wrong = ColumnFamilyDescriptor { min_versions: 2, ..ColumnFamilyDescriptor::default() };
        assert!(TableDescriptor::default().family("cf", wrong).check().is_err());
        let small = TableDescriptor { max_file_size: Some(1), ..TableDescriptor::with_family("cf") };
        assert!(small.check().is_err());
    }
}
