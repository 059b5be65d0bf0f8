//! Encoded region names (HBase `RegionInfo.createRegionName`, `encodeRegionName`).

use crate::client::TableName;
use md5::{Digest, Md5};

/// The 32 hex digits by which HBase calls a region: the MD5 of `table,start key,region id`, where the id is the moment the region was made in
/// milliseconds and a table of the namespace `default` goes by its bare name.
pub fn encoded_region_name(table: &TableName, start: &[u8], region_id_millis: i64) -> String {
    Md5::digest(name_prefix(table, start, region_id_millis)).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A region's whole name, its row key in hbase:meta: `table,start key,region id.encoded name.`
pub fn region_name(table: &TableName, start: &[u8], region_id_millis: i64, encoded: &str) -> Vec<u8> {
    let mut name = name_prefix(table, start, region_id_millis);
    name.extend_from_slice(format!(".{encoded}.").as_bytes());
    name
}

fn name_prefix(table: &TableName, start: &[u8], region_id_millis: i64) -> Vec<u8> {
    let mut name = Vec::with_capacity(64 + start.len());
    if table.namespace != "default" {
        name.extend_from_slice(table.namespace.as_bytes());
        name.push(b':');
    }
    name.extend_from_slice(table.qualifier.as_bytes());
    name.push(b',');
    name.extend_from_slice(start);
    name.extend_from_slice(format!(",{region_id_millis}").as_bytes());
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_ones_hbase_gives() {
        // A region of a table `plain` as HBase 2.6.4 named its directory.
        let name = encoded_region_name(&TableName::parse("plain").unwrap(), b"", 1_796_061_804_162);
        assert_eq!(name, "4a963d6a42c557187e4859123b135e79");
        let expected: String = Md5::digest(b"ns:t,a\xff,12").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(encoded_region_name(&TableName::parse("ns:t").unwrap(), b"a\xff", 12), expected);
    }
}
