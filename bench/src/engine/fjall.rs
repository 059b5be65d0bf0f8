//! The peer: fjall, an LSM engine of the same shape in Rust.

use super::peer::{Peer, Settings};
use crate::figures::Result;
use fjall::config::CompressionPolicy;
use fjall::{CompressionType, Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use std::path::Path;
use std::time::{Duration, Instant};

/// A fjall database with one keyspace.
pub struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

/// Opens a database in `directory`.
pub fn open(directory: &Path, settings: Settings) -> Result<Box<dyn Peer>> {
    let codec = if settings.lz4 { CompressionType::Lz4 } else { CompressionType::None };
    let database = Database::builder(directory)
        .cache_size(settings.cache_bytes)
        .journal_compression(CompressionType::None)
        .open()?;
    let keyspace = database.keyspace("bench", || {
        KeyspaceCreateOptions::default()
            .max_memtable_size(settings.memstore_bytes)
            .data_block_compression_policy(CompressionPolicy::all(codec))
    })?;
    Ok(Box::new(Fjall { database, keyspace }))
}

impl Peer for Fjall {
    fn put(&self, key: &[u8], value: &[u8], synced: bool) -> Result<()> {
        self.keyspace.insert(key, value)?;
        if synced {
            self.database.persist(PersistMode::SyncData)?;
        }
        Ok(())
    }

    fn get(&self, key: &[u8]) -> Result<Option<usize>> {
        Ok(self.keyspace.get(key)?.map(|value| value.len()))
    }

    fn scan(&self, from: &[u8], limit: u64) -> Result<(u64, u64)> {
        let mut entries = 0;
        let mut bytes = 0;
        for guard in self.keyspace.range(from..) {
            if entries == limit {
                break;
            }
            let (key, value) = guard.into_inner()?;
            entries += 1;
            bytes += (key.len() + value.len()) as u64;
        }
        Ok((entries, bytes))
    }

    fn flush(&self) -> Result<()> {
        Ok(self.keyspace.rotate_memtable_and_wait()?)
    }

    fn major_compact(&self) -> Result<()> {
        Ok(self.keyspace.major_compact()?)
    }

    /// fjall tells what runs but not what is queued, so this waits until nothing has run for half a second.
    fn settle(&self) -> Result<()> {
        let mut quiet_since = Instant::now();
        while quiet_since.elapsed() < Duration::from_millis(500) {
            let busy = self.database.outstanding_flushes() > 0
                || self.database.active_compactions() > 0
                || self.keyspace.sealed_memtable_count() > 0;
            if busy {
                quiet_since = Instant::now();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}
