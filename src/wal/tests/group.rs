use super::*;
use crate::vfs::Keep;

const THREADS: u64 = 8;
const EACH: u64 = 60;

/// Many writers at once; returns what each was told, in its order.
fn write_from_many_threads(wal: &Wal) -> Vec<Vec<(u64, u64)>> {
    std::thread::scope(|scope| {
        let writers = (0..THREADS).map(|thread| {
            scope.spawn(move || {
                let write = |index| {
                    let number = thread * 1000 + index;
                    let durability =
                        [Durability::FsyncWal, Durability::SyncWal, Durability::AsyncWal][(number % 3) as usize];
                    if index == 30 {
                        wal.sync().unwrap();
                        wal.roll().unwrap();
                    }
                    (put(wal, number, 40, durability).unwrap(), number)
                };
                (0..EACH).map(write).collect::<Vec<_>>()
            })
        });
        writers.collect::<Vec<_>>().into_iter().map(|writer| writer.join().unwrap()).collect()
    })
}

fn check(vfs: &dyn Vfs, dir: &Path, told: &[Vec<(u64, u64)>]) {
    let (recovered, _) = records(vfs, dir).unwrap();
    let ids: Vec<u64> = recovered.iter().map(|record| record.sequence_id).collect();
    assert_eq!(ids, (1..=THREADS * EACH).collect::<Vec<_>>(), "log order is id order, without holes");
    for writer in told {
        assert!(writer.is_sorted(), "a writer's ids grow");
        for (sequence_id, number) in writer {
            assert_eq!(recovered[*sequence_id as usize - 1], expected(*sequence_id, edits(*number, 40)));
        }
    }
}

#[test]
fn writers_share_syncs_on_the_simulated_disk() {
    let (vfs, wal) = simulated(8 << 10);
    let told = write_from_many_threads(&wal);
    wal.sync().unwrap();
    check(&vfs.crash(Keep::None), Path::new("w"), &told);
}

#[test]
fn writers_share_syncs_on_the_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("wal");
    let options = WalOptions { segment_bytes: 16 << 10, buffer_bytes: 2048 };
    let wal = Wal::create(Arc::new(OsVfs::new()), &path, options, RecoveredLog::default(), 1).unwrap();
    let told = write_from_many_threads(&wal);
    wal.close().unwrap();
    check(&OsVfs::new(), &path, &told);
}
