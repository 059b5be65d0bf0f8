//! Snapshots that a table takes by itself (SNAPSHOT_EVERY, SNAPSHOT_KEEP).

use super::StoreInner;
use super::table_state::TableState;
use crate::error::{Error, Result};
use crate::manifest::SnapshotEntry;
use std::sync::Arc;

impl StoreInner {
    /// Takes the snapshot of one table for which it is time, and lets the oldest automatic ones go; true if there was one.
    ///
    /// # Errors
    /// Those of the snapshot.
    pub(super) fn take_due_snapshot(&self) -> Result<bool> {
        let now = self.now();
        let tables = self.catalog.read().all_tables();
        for table in tables {
            let descriptor = table.descriptor();
            let Some(every) = descriptor.snapshot_every() else { continue };
            let automatic: Vec<Arc<SnapshotEntry>> = self
                .services
                .manifest
                .read(|state| state.snapshots_of(table.id).filter(|snapshot| snapshot.automatic).cloned().collect());
            let last = automatic.last();
            if last.is_some_and(|last| now.saturating_sub(last.created_millis) < every) || !has_changed(&table, last) {
                continue;
            }
            let spare = (automatic.len() + 1).saturating_sub(descriptor.snapshot_keep());
            let outdated = automatic.get(..spare).unwrap_or(&automatic);
            match self.take_snapshot(&table, automatic_name(now).as_bytes(), true, outdated) {
                Ok(_) => return Ok(true),
                // Somebody has the name, or the table has just gone: at the next second it is another.
                Err(Error::SnapshotExists(_) | Error::NoSuchTable(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}

/// True if the table holds something that the snapshot has not: by sequence ids, which compactions keep.
fn has_changed(table: &TableState, last: Option<&Arc<SnapshotEntry>>) -> bool {
    let regions = table.regions();
    let stores = || regions.iter().flat_map(|region| region.stores());
    let Some(last) = last else { return stores().any(|store| store.has_history()) };
    let same_regions = regions.len() == last.regions.len()
        && regions.iter().zip(&last.regions).all(|(region, then)| region.id() == then.id);
    let newer = |store: &Arc<crate::store::HStore>| {
        !store.memstore().is_empty() || store.files().iter().any(|view| view.entry.max_sequence_id > last.sequence_id)
    };
    !same_regions || table.descriptor() != last.descriptor || stores().any(|store| newer(&store))
}

/// `auto-2026-11-30T20-15-00Z`.
fn automatic_name(millis: i64) -> String {
    let seconds = millis.div_euclid(1000);
    let (days, time) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Days from 1 March of year 0, by eras of 400 years.
    let since_march = days + 719_468;
    let (era, day_of_era) = (since_march.div_euclid(146_097), since_march.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("auto-{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::automatic_name;

    #[test]
    fn automatic_names_tell_the_time() {
        assert_eq!(automatic_name(0), "auto-1970-01-01T00-00-00Z");
        assert_eq!(automatic_name(951_782_400_999), "auto-2000-02-29T00-00-00Z");
        assert_eq!(automatic_name(1_764_533_701_250), "auto-2025-11-30T20-15-01Z");
        assert_eq!(automatic_name(-1), "auto-1969-12-31T23-59-59Z");
    }
}
