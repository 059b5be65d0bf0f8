//! The file system: namespaces, tables, rows and cells as directories and files.
