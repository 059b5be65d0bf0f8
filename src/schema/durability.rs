//! DURABILITY: how far a write has gone when it is acknowledged.

/// When a mutation counts as done (HBase `Durability`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Durability {
    /// What the table says (its DURABILITY attribute), else what the store was opened with.
    #[default]
    UseDefault,
    /// Not logged: lost with the process unless flushed.
    SkipWal,
    /// Logged in the background: visible at once, lost if the process dies within the log's sync interval.
    AsyncWal,
    /// Handed to the operating system before it is visible: survives the death of the process, not of the power.
    SyncWal,
    /// On disk before it is visible: survives power loss.
    FsyncWal,
}
