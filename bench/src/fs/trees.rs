//! Whole trees: `rm -rf` of many rows, `tar c` of many cells, and the daemon's memory while the kernel knows them all. The trees are there when the
//! file system is mounted, and no more of them is in memory than a daemon that has just started keeps.

use super::operations::forget;
use super::scale::{resident_mb, shell};
use super::{Group, Options, pin};
use crate::figures::{Figure, Result, Unit, timed};
use crate::store;
use cellfs::client::{Mutation, Put};
use cellfs::schema::TableDescriptor;
use cellfs::server::StoreOptions;
use std::path::Path;

/// Cells of each row of the tree that `tar` reads.
const CELLS: u64 = 100;
const VALUE: [u8; 100] = [b'v'; 100];

/// Measures what is asked for.
pub fn measure(name: &str, directory: &Path, options: &Options) -> Result<Vec<Figure>> {
    pin(options.pin)?;
    let mut figures = Vec::new();
    if options.wants(Group::Remove) {
        let tree = Tree { rows: options.tree_rows, cells: 1 };
        tree.mounted(name, directory, options, |table, _| {
            let (_, elapsed) = timed(|| shell("rm -rf \"$1\"", table))?;
            let title = format!("rm -rf of {} rows", tree.rows);
            figures.push(shown(Figure::new(title, Unit::Seconds, elapsed.as_secs_f64())));
            Ok(())
        })?;
    }
    if options.wants(Group::Tar) {
        let tree = Tree { rows: options.tar_cells.div_ceil(CELLS), cells: CELLS };
        tree.mounted(name, directory, options, |table, daemon| {
            forget()?;
            let before = resident_mb(daemon)?;
            let (bytes, elapsed) = timed(|| shell("tar -C \"$1\" -c . | wc -c", table))?;
            let cells = tree.rows * tree.cells;
            if bytes.trim().parse::<u64>()? < cells * 1024 {
                return Err(format!("an archive of {cells} files cannot have {} bytes", bytes.trim()).into());
            }
            let title = format!("tar c of {cells} cells");
            figures.push(shown(Figure::new(title, Unit::Seconds, elapsed.as_secs_f64())));
            let title = |when: &str| format!("daemon's memory {when}");
            let after = resident_mb(daemon)?;
            forget()?;
            let forgotten = resident_mb(daemon)?;
            for (when, megabytes) in [
                ("before tar", before),
                ("while the kernel knows all", after),
                ("once the kernel has forgotten", forgotten),
            ] {
                figures.push(shown(Figure::new(title(when), Unit::Bytes, megabytes * 1e6)));
            }
            Ok(())
        })?;
    }
    Ok(figures)
}

fn shown(figure: Figure) -> Figure {
    eprintln!("  {}: {}", figure.name, figure.unit.show(figure.value));
    figure
}

/// Rows of equally many cells of 100 bytes.
struct Tree {
    rows: u64,
    cells: u64,
}

impl Tree {
    /// Makes the tree, mounts it, and gives the table's directory and the daemon's process to `work`.
    fn mounted(
        &self,
        name: &str,
        directory: &Path,
        options: &Options,
        mut work: impl FnMut(&Path, u32) -> Result<()>,
    ) -> Result<()> {
        let home = tempfile::Builder::new().prefix("cellfs-bench-").tempdir_in(directory)?;
        let point = home.path().join("mount");
        std::fs::create_dir(&point)?;
        let mounted = match name {
            "cellfs" => {
                let store = home.path().join("store");
                self.fill(&store)?;
                options.programs.mount_cellfs(&store, &point)?
            }
            "null" => options.programs.mount_null(&point, Some((self.rows, self.cells)))?,
            _ => return Ok(()),
        };
        work(&point.join("default").join("t"), mounted.pid())?;
        mounted.unmount()
    }

    fn fill(&self, path: &Path) -> Result<()> {
        const BATCH: u64 = 10_000;
        let store = store::open(path, StoreOptions::default())?;
        let (_, table) = store::create_table(&store, "t", TableDescriptor::with_family(&b"cf"[..]))?;
        let mut rows = 0..self.rows;
        loop {
            let mutation = |row: u64| {
                let put = Put::new(format!("row{row:06}").into_bytes());
                let add = |put: Put, cell: u64| put.add(&b"cf"[..], format!("c{cell:06}").into_bytes(), &VALUE[..]);
                Mutation::Put((0..self.cells).fold(put, add))
            };
            let batch: Vec<Mutation> = rows.by_ref().take((BATCH / self.cells.max(1)) as usize).map(mutation).collect();
            if batch.is_empty() {
                break;
            }
            for outcome in table.batch(batch) {
                outcome?;
            }
        }
        Ok(store.close()?)
    }
}
