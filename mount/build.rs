//! Compiles the pages of docs/ in: `guide_pages.rs` is a list of names and texts, which `.cellfs/guide/` shows.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// Pages for who works on cellfs, not with it.
const LEFT_OUT: [&str; 1] = ["dependencies.md"];

fn main() -> std::io::Result<()> {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    println!("cargo::rerun-if-changed={}", docs.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&docs)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") && !LEFT_OUT.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort();
    let mut list = String::from("&[\n");
    for name in &names {
        // Writing to memory cannot fail.
        let _ = writeln!(list, "    ({name:?}, include_str!({:?})),", docs.join(name));
    }
    list.push_str("]\n");
    let out = env::var_os("OUT_DIR").ok_or_else(|| std::io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("guide_pages.rs"), list)
}
