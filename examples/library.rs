//! The engine without the mount: a store, a table, a put, a get, a scan. `cargo run --example library -- DIRECTORY`

use cellfs::Error;
use cellfs::client::{Admin, Get, Put, Scan, TableName};
use cellfs::schema::TableDescriptor;
use cellfs::server::{Store, StoreOptions};

fn main() -> Result<(), Error> {
    let Some(directory) = std::env::args_os().nth(1) else {
        return Err(Error::InvalidArgument("usage: library DIRECTORY".to_owned()));
    };
    let options = StoreOptions::default();
    let owner = options.default_namespace;
    let store = Store::open(directory, options)?;

    let name = TableName::parse("people")?;
    let table = match store.table(&name) {
        Err(Error::NoSuchTable(_)) => store.create_table(&name, TableDescriptor::with_family("cf"), &[], owner)?,
        found => found?,
    };
    table.put(Put::new("ada").add("cf", "born", "1815"))?;
    table.put(Put::new("alan").add("cf", "born", "1912"))?;

    let row = table.get(&Get::new("ada").column("cf", "born"))?;
    if let Some(cell) = row.cell(b"cf", b"born") {
        println!("ada: {}", String::from_utf8_lossy(cell.value()));
    }
    let mut rows = table.scan(&Scan { prefix: "a".into(), ..Scan::new() })?;
    while let Some(row) = rows.next()? {
        for cell in &row.cells {
            println!("{} at {}", String::from_utf8_lossy(cell.row()), cell.timestamp());
        }
    }
    drop((rows, table));
    store.close()
}
