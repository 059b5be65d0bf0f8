//! E10: a flush by itself drops surplus versions and expired cells; no major compaction is needed.

use super::{Tolerance, Verdict};
use crate::figures::Result;
use crate::store;
use cellfs::client::{Admin, Put};
use cellfs::clock::ManualClock;
use cellfs::schema::{ColumnFamilyDescriptor, TableDescriptor};
use cellfs::server::StoreOptions;
use std::path::Path;
use std::sync::Arc;

const START_MILLIS: i64 = 1_700_000_000_000;

/// Runs E10 on a clock that is moved by hand.
pub fn run(home: &Path, verdict: &mut Verdict) -> Result<()> {
    let clock = Arc::new(ManualClock::new(START_MILLIS));
    let store = store::open_at(home, StoreOptions::default(), clock.clone())?;

    let family = ColumnFamilyDescriptor { versions: 3, ..Default::default() };
    let (name, table) = store::create_table(&store, "versions", TableDescriptor::default().family(&b"d"[..], family))?;
    for version in 0..5 {
        table.put(Put::new(&b"row"[..]).add(&b"d"[..], &b"v"[..], format!("value {version}")))?;
        clock.add(1);
    }
    store.flush_table(&name)?;
    let entries = store::figure(&store, &name, "entries")? as f64;
    verdict.judge("E10 entries after flush, VERSIONS 3, 5 puts", 3.0, entries, Tolerance::Absolute(0.0));

    let family = ColumnFamilyDescriptor { ttl_seconds: 4, ..Default::default() };
    let (name, table) = store::create_table(&store, "ttl", TableDescriptor::default().family(&b"d"[..], family))?;
    table.put(Put::new(&b"row"[..]).add(&b"d"[..], &b"v"[..], &b"value"[..]))?;
    clock.add(5_000);
    store.flush_table(&name)?;
    let entries = store::figure(&store, &name, "entries")? as f64;
    verdict.judge("E10 entries after flush, TTL 4 s, 5 s later", 0.0, entries, Tolerance::Absolute(0.0));
    Ok(())
}
