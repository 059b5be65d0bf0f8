//! Logs of a real HBase (tests/hbase_root/fixtures), whole, cut and damaged at every byte.

use super::{LogEnd, LogEntry, WalReader};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Every log of the fixtures: with dictionaries, with values in gzip and in Snappy.
fn logs() -> Vec<(PathBuf, Bytes)> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hbase_root/fixtures");
    let mut logs = Vec::new();
    for archive in ["dictionary", "values-gz", "values-snappy"] {
        let directory = tempfile::tempdir().unwrap();
        let archive = fixtures.join(archive).with_extension("tar.zst");
        let tar = Command::new("tar").arg("--zstd").arg("-xf").arg(archive).arg("-C").arg(directory.path()).status();
        assert!(tar.unwrap().success());
        for server in std::fs::read_dir(directory.path().join("WALs")).unwrap() {
            for log in std::fs::read_dir(server.unwrap().path()).unwrap() {
                let path = log.unwrap().path();
                let bytes = std::fs::read(&path).unwrap();
                logs.push((path, bytes.into()));
            }
        }
    }
    assert!(logs.len() >= 9, "{}", logs.len());
    logs
}

/// The entries, each with where it ends, and how the log ends; `None` for what is refused as a whole.
fn read(bytes: Bytes) -> Option<(Vec<(LogEntry, usize)>, LogEnd)> {
    let Ok(reader) = WalReader::new(bytes, Path::new("log"), false) else { return None };
    let Some(mut reader) = reader else { return Some((Vec::new(), LogEnd::Whole)) };
    let mut entries = Vec::new();
    while let Some(entry) = reader.next() {
        entries.push((entry, reader.input.position()));
    }
    Some((entries, reader.end()))
}

#[test]
fn whole_logs_are_read_to_their_end() {
    for (path, bytes) in logs() {
        let (entries, end) = read(bytes).unwrap();
        assert_eq!(end, LogEnd::Whole, "{}", path.display());
        assert!(!entries.is_empty() || path.extension().is_some(), "{}", path.display());
    }
}

#[test]
fn every_truncation_gives_the_entries_before_it() {
    for (path, bytes) in logs() {
        let (whole, _) = read(bytes.clone()).unwrap();
        let step = 1 + bytes.len() / 1500;
        for len in (0..bytes.len()).step_by(step) {
            let (entries, end) = read(bytes.slice(..len)).unwrap();
            let expected = whole.iter().take_while(|(_, ends)| *ends <= len);
            assert!(entries.iter().eq(expected), "{} cut at {len}", path.display());
            let at_border = entries.last().is_none_or(|(_, ends)| *ends == len);
            assert!(at_border || matches!(end, LogEnd::Torn(..)), "{} cut at {len}: {end:?}", path.display());
        }
    }
}

#[test]
fn every_flipped_byte_leaves_the_entries_before_it() {
    for (path, bytes) in logs() {
        let (whole, _) = read(bytes.clone()).unwrap();
        let step = 1 + bytes.len() / 1500;
        for at in (0..bytes.len()).step_by(step) {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1 << (at % 8);
            // HBase's logs have no checksums: another cell may come out, but none before the damage.
            let Some((entries, _)) = read(damaged.into()) else { continue };
            let intact = whole.iter().take_while(|(_, ends)| *ends <= at).count();
            assert!(entries.len() >= intact, "{} at {at}", path.display());
            assert!(entries.iter().zip(&whole).take(intact).all(|(a, b)| a == b), "{} at {at}", path.display());
        }
    }
}

#[test]
fn strangers_are_refused_by_name() {
    let header = |writer: &str, codec: &str, key: Option<&'static [u8]>| {
        use prost::Message;
        let header = super::reader::WalHeader {
            writer_class: Some(writer.to_owned()),
            codec_class: Some(codec.to_owned()),
            encryption_key: key.map(Bytes::from_static),
            ..Default::default()
        };
        let mut log = b"PWAL".to_vec();
        log.extend(header.encode_length_delimited_to_vec());
        let refused = WalReader::new(log.into(), Path::new("log"), false);
        refused.err().map(|error| error.to_string())
    };
    let codec = "org.apache.hadoop.hbase.regionserver.wal.WALCellCodec";
    assert_eq!(header("ProtobufLogWriter", codec, None), None);
    assert!(header("ProtobufLogWriter", codec, Some(b"key")).unwrap().contains("encrypted"));
    assert!(header("SomeWriter", codec, None).unwrap().contains("SomeWriter"));
    assert!(header("ProtobufLogWriter", "a.b.OtherCodec", None).unwrap().contains("OtherCodec"));
    assert!(WalReader::new(Bytes::from_static(b"SEQ\x06..."), Path::new("log"), false).is_err());
    assert!(WalReader::new(Bytes::new(), Path::new("log"), false).unwrap().is_none());
}
