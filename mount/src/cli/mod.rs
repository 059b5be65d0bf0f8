//! The command: mount, unmount, check, hfile, import, export.
