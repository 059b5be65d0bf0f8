//! One family of one region: memstore and store files.
