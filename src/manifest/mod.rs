//! The append-only edit log of the whole root: namespaces, tables, regions, live store files, flushed sequence ids.
