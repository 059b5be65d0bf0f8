use super::*;
use crate::vfs::Keep;

fn lived() -> (SimVfs, Vec<ManifestState>) {
    let (vfs, manifest) = simulated();
    let states = states(manifest.state());
    for day in days() {
        manifest.commit(&day).unwrap();
    }
    assert_eq!(manifest.state(), *states.last().unwrap());
    (vfs, states)
}

fn files(vfs: &SimVfs) -> Vec<(PathBuf, u64)> {
    let entries = vfs.list(Path::new(ROOT)).unwrap();
    entries.into_iter().map(|entry| (Path::new(ROOT).join(entry.name), entry.len)).collect()
}

/// Every commit leaves a mark, so damage to any of them is found; only the last mark may go unnoticed.
#[test]
fn every_flipped_byte_is_found() {
    let (vfs, states) = lived();
    let before = vfs.operations();
    let (mut found, mut harmless) = (0, 0);
    for (path, len) in files(&vfs) {
        for offset in 0..len.min(3000) {
            for bits in [1 << (offset % 8), 0xff] {
                vfs.damage(&path, offset, |byte| byte ^ bits).unwrap();
                match open(&vfs, true) {
                    Ok((_, state)) => {
                        assert_eq!(state, *states.last().unwrap(), "{} {offset}", path.display());
                        harmless += 1;
                    }
                    Err(Error::Corruption { file, .. }) => {
                        assert!(file.starts_with(ROOT));
                        found += 1;
                    }
                    Err(other) => panic!("{} {offset}: {other}", path.display()),
                }
                vfs.damage(&path, offset, |byte| byte ^ bits).unwrap();
            }
        }
    }
    assert!(found > 1000 && harmless > 1000, "{found} {harmless}");
    assert_eq!(vfs.operations(), before, "opening for reading writes nothing");
}

#[test]
fn every_truncation_is_a_prefix_or_found() {
    let (vfs, states) = lived();
    let (mut prefixes, mut found) = (0, 0);
    for (path, len) in files(&vfs) {
        for cut in 0..len.min(1500) {
            let copy = vfs.crash(Keep::All);
            copy.open_write(&path).unwrap().set_len(cut).unwrap();
            match open(&copy, true) {
                Ok((_, state)) => {
                    assert!(states.contains(&state), "{} {cut}", path.display());
                    prefixes += 1;
                }
                Err(Error::Corruption { .. }) => found += 1,
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(prefixes > 500 && found > 20, "{prefixes} {found}");
}

#[test]
fn missing_files_are_told_apart() {
    let (vfs, _) = lived();
    for (path, _) in files(&vfs) {
        let copy = vfs.crash(Keep::All);
        copy.remove_file(&path).unwrap();
        match open(&copy, false) {
            Err(Error::NotAStore { .. }) => assert!(path.ends_with("CURRENT")),
            Err(Error::Corruption { file, .. }) => assert!(file.ends_with("CURRENT") && !path.ends_with("CURRENT")),
            other => panic!("{:?}", other.err()),
        }
    }
}

#[test]
fn later_versions_are_named() {
    let (vfs, manifest) = simulated();
    drop(manifest);
    let path = Path::new(ROOT).join("MANIFEST-0000000001");
    let file = vfs.open_write(&path).unwrap();
    let payload = [200u8, 0];
    let offset = framing::FILE_HEADER_LEN as u64;
    let record = framing::encode_record(1, offset, RecordKind::Edits, &payload).unwrap();
    file.set_len(offset).unwrap();
    file.write_all_at(&record, offset).unwrap();
    match open(&vfs, false) {
        Err(Error::Unsupported { file, what }) => assert!(file == path && what.contains("200"), "{what}"),
        other => panic!("{:?}", other.err()),
    }
    let mut header = framing::encode_file_header(1);
    header.truncate(framing::FILE_HEADER_LEN - 4);
    header[11] = 9;
    let crc = crc32fast::hash(&header);
    header.extend_from_slice(&crc.to_be_bytes());
    file.write_all_at(&header, 0).unwrap();
    match open(&vfs, false) {
        Err(Error::Unsupported { what, .. }) => assert!(what.contains("version 9"), "{what}"),
        other => panic!("{:?}", other.err()),
    }
}
