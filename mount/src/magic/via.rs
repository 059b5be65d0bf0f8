//! `.via/`: which schemes there are, and the prefixes of `revts`. The rows below a scheme are the file system's (`fs/via.rs`).

use super::MagicListing;
use super::node::{MagicNode, TableHandle};
use crate::names;
use crate::ops::FsResult;
use bytes::Bytes;
use cellfs::client::Scan;
use cellfs::types::KeyScheme;

/// The scheme whose keys have a prefix and a time.
pub(super) const REVERSE_TIME: &str = "revts";

/// The schemes without a number; those with one are found, not listed.
pub(super) fn list_schemes(table: &TableHandle) -> Vec<(String, MagicNode)> {
    let schemes = KeyScheme::plain_names().filter_map(KeyScheme::of_name);
    let mut all: Vec<_> = schemes.map(|scheme| (scheme.name(), MagicNode::ViaKeys(table.clone(), scheme))).collect();
    all.push((REVERSE_TIME.to_owned(), MagicNode::ViaPrefixes(table.clone())));
    all
}

/// The prefix that a name spells.
pub(super) fn prefix_of_name(name: &[u8]) -> Option<Bytes> {
    names::decode_row(name).map(|prefix| Bytes::copy_from_slice(&prefix))
}

/// Lists the prefixes of the keys that end in `_` and a reversed time. From one prefix it goes on behind all of its keys.
pub(super) fn list_prefixes(table: &TableHandle) -> FsResult<MagicListing> {
    let table = table.clone();
    let mut start = Some(Bytes::new());
    Ok(Box::new(std::iter::from_fn(move || {
        loop {
            let scan = Scan { start_row: start.take()?, first_cell_only: true, limit: Some(1), ..Scan::new() };
            let found = match table.0.scan(&scan).and_then(|mut scanner| scanner.next()) {
                Ok(Some(found)) => found,
                Ok(None) => return None,
                Err(error) => return Some(Err(error.into())),
            };
            let row = found.row();
            let Some(prefix) = KeyScheme::reverse_time_prefix(row) else {
                start = Some([row, &[0]].concat().into());
                continue;
            };
            // Behind the last time of the prefix: 0x3A follows the digit 9.
            start = Some([prefix, b"_:"].concat().into());
            let prefix = Bytes::copy_from_slice(prefix);
            let name = Bytes::from(names::encode_row(&prefix).into_owned());
            if name.len() > names::MAX_NAME {
                continue;
            }
            return Some(Ok((name, MagicNode::ViaKeys(table.clone(), KeyScheme::ReverseTime(prefix)))));
        }
    })))
}
