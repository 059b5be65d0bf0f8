//! The kernel adapter: the only file that names fuser types.
