//! cellfs as a file system: the operations (`fs`), the dot names (`magic`), the kernel adapter (`fuse`), the command (`cli`).

pub mod ops;

pub mod invalidation;

pub mod names;

pub mod attributes;

pub mod magic;

pub mod fs;

pub mod fuse;

pub mod cli;
