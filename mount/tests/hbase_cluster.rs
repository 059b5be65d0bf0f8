//! A table moved to a real HBase and back by the commands of docs/hbase.md: raw scans show the same cells on both sides.
//!
//! Needs a JDK, Maven and the cluster script (../shared/oracle/cluster, or below CELLFS_SHARED); without them it says so and passes, but fails
//! where CELLFS_REQUIRE_JUDGE is set, as in CI.

#![allow(clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test may fail anywhere")]

use bytes::Bytes;
use cellfs::client::{Admin, Delete, DeleteMarker, Put, PutCell, Scan, TableAttributes, TableName, WriteTime};
use cellfs::hfile::{cell_type_name, to_string_binary};
use cellfs::schema::{ColumnFamilyDescriptor, Compression, DataBlockEncoding, TableDescriptor};
use cellfs::server::{Store, StoreOptions};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The script that runs clusters, where it can.
fn script() -> Option<PathBuf> {
    let on_path = |tool: &str| {
        std::env::var_os("PATH").is_some_and(|path| std::env::split_paths(&path).any(|dir| dir.join(tool).is_file()))
    };
    let base = std::env::var_os("CELLFS_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared"), PathBuf::from);
    let script = base.join("oracle/cluster");
    if on_path("java") && on_path("mvn") && script.is_file() {
        return Some(script);
    }
    let needs = format!("needs java and mvn on PATH and {}", script.display());
    assert!(std::env::var_os("CELLFS_REQUIRE_JUDGE").is_none(), "HBase cannot judge: {needs}");
    eprintln!("skipped: {needs}");
    None
}

/// A running HBase of this test alone. It ends with this value, and even with a test that is killed: then the pipe to the one that
/// waits for its end is closed.
struct Cluster {
    script: PathBuf,
    directory: PathBuf,
    ender: Child,
    client: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
}

impl Cluster {
    fn start(script: &Path, directory: &Path) -> Cluster {
        let ender = Command::new("setsid")
            .args(["bash", "-c", "cat >/dev/null; \"$0\" kill \"$1\" >/dev/null 2>&1"])
            .args([script, directory])
            .stdin(Stdio::piped())
            .spawn()
            .expect("bash runs");
        let mut cluster = Cluster { script: script.into(), directory: directory.into(), ender, client: None };
        // Another run may take a port between the look and the use: then once more, with other ones.
        let started = (0..3).any(|_| {
            Command::new(script).arg("start").arg(directory).stdout(Stdio::null()).status().expect("it runs").success()
        });
        assert!(started, "HBase does not start");
        let mut client = Command::new(script)
            .arg("client")
            .arg(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the client runs");
        let (input, output) = (client.stdin.take().expect("piped"), client.stdout.take().expect("piped"));
        cluster.client = Some((client, input, BufReader::new(output)));
        cluster
    }

    fn ask(&mut self, request: &Value) -> Value {
        let (_, input, output) = self.client.as_mut().expect("it runs");
        writeln!(input, "{request}").and_then(|()| input.flush()).expect("the client takes it");
        let mut line = String::new();
        output.read_line(&mut line).expect("the client answers");
        let answer: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{request}: {line}"));
        assert_eq!(answer["ok"], true, "{request}: {answer}");
        answer
    }

    /// What a raw scan of all versions shows, a line each.
    fn raw(&mut self, table: &str) -> Vec<String> {
        let out = self.directory.join("dump");
        self.ask(&json!({"op": "dump", "table": table, "raw": true, "out": out}));
        std::fs::read_to_string(out).expect("the dump").lines().map(str::to_owned).collect()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some((mut client, input, _)) = self.client.take() {
            drop(input);
            let _ = client.wait();
        }
        drop(self.ender.stdin.take());
        let _ = self.ender.wait();
        assert!(
            !Command::new(&self.script).arg("status").arg(&self.directory).output().expect("it runs").status.success()
                || std::thread::panicking(),
            "HBase still runs"
        );
    }
}

/// What the commands of the documentation find on PATH: `cellfs`, and an `hbase` that knows what they use.
fn tools(script: &Path, cluster: &Path, directory: &Path) -> PathBuf {
    let bin = directory.join("bin");
    std::fs::create_dir(&bin).expect("mkdir");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_cellfs"), bin.join("cellfs")).expect("link");
    let (script, cluster) = (script.display(), cluster.display());
    // The shell of HBase is not among its jars on Maven: its two statements become requests to the client.
    let hbase = format!(
        r#"#!/bin/bash
set -eu
case "$1 ${{2:-}}" in
"shell -n")
    read -r statement
    case $statement in
    "create 'people', {{NAME => 'cf', VERSIONS => 5}}, {{NAME => 'info'}}, SPLITS => ['m']")
        request='{{"op":"create","table":"people","families":{{"cf":{{"VERSIONS":"5"}},"info":{{}}}},"split_keys":["m"]}}' ;;
    "flush 'people'") request='{{"op":"flush","table":"people"}}' ;;
    *) echo "not known here: $statement" >&2; exit 1 ;;
    esac
    exec {script} call {cluster} "$request" ;;
"completebulkload "*)
    exec {script} java org.apache.hadoop.hbase.tool.BulkLoadHFilesTool -conf {cluster}/conf/client/hbase-site.xml "$2" "$3" ;;
*) echo "not known here: $*" >&2; exit 1 ;;
esac
"#
    );
    let path = bin.join("hbase");
    std::fs::write(&path, hbase).expect("write");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("chmod");
    bin
}

/// The blocks of commands in a section of docs/hbase.md.
fn documented(section: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/hbase.md");
    let text = std::fs::read_to_string(path).expect("the documentation");
    let from = text.find(&format!("## {section}\n")).unwrap_or_else(|| panic!("no section {section}"));
    let section = &text[from + 3..];
    let section = &section[..section.find("\n## ").unwrap_or(section.len())];
    section.split("```sh\n").skip(1).map(|block| block[..block.find("```").expect("closed")].to_owned()).collect()
}

fn run(commands: &str, directory: &Path, bin: &Path, root: &Path) {
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-euxo", "pipefail", "-c", commands])
        .current_dir(directory)
        .env("HOME", directory)
        .env("PATH", path)
        .env("HBASE_ROOT", root)
        .output()
        .expect("bash runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
}

fn people() -> TableName {
    TableName::parse("people").expect("a name")
}

/// Versions, every marker, cells with a time to live of their own, bytes of every kind, in files, before and after a split, and in memory.
fn fill(path: &Path) {
    let store = Store::open(path, StoreOptions::default()).expect("a store");
    let family = ColumnFamilyDescriptor {
        versions: 5,
        compression: Compression::Zstd,
        data_block_encoding: DataBlockEncoding::FastDiff,
        block_size: 1024,
        ..Default::default()
    };
    let info = ColumnFamilyDescriptor { compression: Compression::Snappy, ..Default::default() };
    let descriptor = TableDescriptor::default().family("cf", family).family("info", info);
    let attributes = TableAttributes { mode: 0o755, uid: 0, gid: 0, changed_millis: 0, modified_millis: 0 };
    let table = store.create_table(&people(), descriptor, &[], attributes).expect("a table");
    for round in 0..3 {
        for number in 0..80u8 {
            let row = [b"abcdefghijklmnopqrstuvwxyz"[usize::from(number % 26)], b'-', number, b'\\', 0];
            let time = 1_000 * (round + 1);
            let mut put = Put::new(row.to_vec());
            for (family, qualifier, value) in
                [("cf", "a", vec![number; 30]), ("cf", "", Vec::new()), ("info", "\u{e9}\t", b"text".repeat(9))]
            {
                let (family, qualifier) = (family.into(), qualifier.into());
                let (value, time) = (value.into(), WriteTime::At(time));
                put.cells.push(PutCell { family, qualifier, time, value, tags: Vec::new() });
            }
            put.ttl_millis = (number % 7 == 0).then_some(1 << 60);
            table.put(put).expect("a put");
            let (family, qualifier, time) = (Bytes::from("cf"), Bytes::from("a"), WriteTime::At(time - 500));
            let marker = match number % 8 {
                0 => DeleteMarker::Version { family, qualifier, time },
                2 => DeleteMarker::Column { family, qualifier, time },
                4 => DeleteMarker::Family { family, time },
                6 => DeleteMarker::FamilyVersion { family, time },
                _ => continue,
            };
            table.delete(Delete::row(row.to_vec()).marker(marker)).expect("a delete");
        }
        match round {
            0 => store.flush_table(&people()).expect("a flush"),
            1 => store.split_table(&people(), Some(b"h")).expect("a split"),
            _ => {}
        }
    }
    drop(table);
    store.close().expect("it closes");
}

/// What a raw scan of all versions shows, in the cluster's spelling.
fn raw(path: &Path) -> Vec<String> {
    let store = Store::open(path, StoreOptions { read_only: true, ..StoreOptions::default() }).expect("a store");
    let table = store.table(&people()).expect("a table");
    let mut scanner = table.scan(&Scan { raw: true, max_versions: u32::MAX, ..Scan::new() }).expect("a scan");
    let mut lines = Vec::new();
    while let Some(row) = scanner.next().expect("a row") {
        for cell in &row.cells {
            let text = |bytes: &[u8]| Value::from(to_string_binary(bytes)).to_string();
            let mut line = format!(
                "{{\"row\":{},\"family\":{},\"qualifier\":{},\"ts\":{},\"type\":\"{}\",\"value\":{}",
                text(cell.row()),
                text(cell.family()),
                text(cell.qualifier()),
                cell.timestamp(),
                cell_type_name(cell),
                text(cell.value())
            );
            let tags: Vec<String> =
                cell.tag_iter().map(|(kind, value)| format!("{{\"type\":{kind},\"value\":{}}}", text(value))).collect();
            if !tags.is_empty() {
                line += &format!(",\"tags\":[{}]", tags.join(","));
            }
            lines.push(line + "}");
        }
    }
    lines
}

/// Goes on where the load has left the table: equal keys in two files and in memory, markers over what was loaded.
fn change(cluster: &mut Cluster) {
    for round in 0..3 {
        let value = format!("written {round}");
        for row in ["a-\\x00\\x5C\\x00", "new", "zz\\xFF"] {
            cluster.ask(&json!({"op": "put", "table": "people", "row": row, "ttl": 4_000_000_000_000_i64,
                "cells": [{"family": "cf", "qualifier": "a", "ts": 1000, "value": value},
                          {"family": "cf", "qualifier": "b", "ts": 1000 + round, "value": value}]}));
        }
        cluster.ask(&json!({"op": "increment", "table": "people", "row": "counter", "family": "info",
            "qualifier": "n", "amount": 7}));
        let kind = ["Delete", "DeleteColumn", "DeleteFamily"][round];
        let mut cell = json!({"family": "cf", "qualifier": "a", "ts": 900 + round, "type": kind});
        if kind == "DeleteFamily" {
            cell = json!({"family": "cf", "ts": 902, "type": kind});
        }
        cluster.ask(&json!({"op": "delete", "table": "people", "row": "b-\\x01\\x5C\\x00", "cells": [cell]}));
        cluster.ask(&json!({"op": "flush", "table": "people"}));
    }
}

/// Fails with the first line that differs.
fn assert_same(left: &[String], right: &[String]) {
    for (at, (left, right)) in left.iter().zip(right).enumerate() {
        assert_eq!(left, right, "line {at}");
    }
    assert_eq!(left.len(), right.len());
}

#[test]
fn a_table_goes_to_a_cluster_and_back_by_the_documented_commands() {
    let Some(script) = script() else { return };
    let place = tempfile::tempdir().expect("a directory");
    let directory = place.path();
    let blocks = documented("Moving files to a cluster and back");
    let [to_cluster, from_cluster] = &blocks[..] else { panic!("{} blocks", blocks.len()) };
    fill(&directory.join("data"));
    let stored = raw(&directory.join("data"));
    assert!(stored.len() > 700 && stored.iter().any(|line| line.contains("tags")), "{} cells", stored.len());

    let home = directory.join("cluster");
    let mut cluster = Cluster::start(&script, &home);
    let bin = tools(&script, &home, directory);
    let root = home.join("hbase");
    run(to_cluster, directory, &bin, &root);
    assert_same(&cluster.raw("people"), &stored);

    change(&mut cluster);
    run(from_cluster, directory, &bin, &root);
    let (there, here) = (cluster.raw("people"), raw(&directory.join("back")));
    assert!(there.len() > stored.len());
    assert_same(&here, &there);
}
