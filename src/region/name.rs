//! Encoded region names (HBase `RegionInfo.createRegionName`, `encodeRegionName`).

use crate::client::TableName;
use md5::{Digest, Md5};

/// The 32 hex digits by which HBase calls a region: the MD5 of `table,start key,region id`, where the id is the moment the region was made in
/// milliseconds and a table of the namespace `default` goes by its bare name.
pub fn encoded_region_name(table: &TableName, start: &[u8], region_id_millis: i64) -> String {
    let mut digest = Md5::new();
    if table.namespace != "default" {
        digest.update(table.namespace.as_bytes());
        digest.update(b":");
    }
    digest.update(table.qualifier.as_bytes());
    digest.update(b",");
    digest.update(start);
    digest.update(b",");
    digest.update(region_id_millis.to_string().as_bytes());
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
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
