//! What changes rows: Put, Delete, Increment, Append, atomic groups of them, and checks in front of them.

use super::filter::Filter;
use super::get::TimeRange;
use crate::cell::Tag;
use crate::schema::Durability;
use bytes::Bytes;

/// Which timestamp a cell of a mutation gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum WriteTime {
    /// The clock's now when the row is locked (HBase's LATEST_TIMESTAMP).
    #[default]
    Now,
    /// This one.
    At(i64),
    /// For a put: max(now, newest cell or marker that concerns the column + 1), so it is always the newest version. For a marker: max(now, newest
    /// cell it concerns), so it always hides what is there.
    AfterNewest,
    /// For a put: this timestamp if the newest stored cell of the column (markers included) is a put of exactly it, which the new one then
    /// replaces; else as [`WriteTime::AfterNewest`].
    ReplaceIfNewest(i64),
}

/// One cell of a [`Put`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutCell {
    /// The family.
    pub family: Bytes,
    /// The qualifier; may be empty.
    pub qualifier: Bytes,
    /// Its timestamp.
    pub time: WriteTime,
    /// The value.
    pub value: Bytes,
    /// Tags to store with it.
    pub tags: Vec<Tag>,
}

/// Writes cells of one row, all or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Put {
    /// The row key, 1 to 32767 bytes.
    pub row: Bytes,
    /// The cells.
    pub cells: Vec<PutCell>,
    /// Time to live of these cells in milliseconds (HBASE-10560).
    pub ttl_millis: Option<u64>,
    /// When it counts as done.
    pub durability: Durability,
}

impl Put {
    /// An empty put for `row`.
    pub fn new(row: impl Into<Bytes>) -> Put {
        Put { row: row.into(), cells: Vec::new(), ttl_millis: None, durability: Durability::UseDefault }
    }

    /// Adds a cell stamped with the clock's now.
    #[must_use]
    pub fn add(self, family: impl Into<Bytes>, qualifier: impl Into<Bytes>, value: impl Into<Bytes>) -> Put {
        self.add_at(family, qualifier, WriteTime::Now, value)
    }

    /// Adds a cell with a chosen time.
    #[must_use]
    pub fn add_at(
        mut self,
        family: impl Into<Bytes>,
        qualifier: impl Into<Bytes>,
        time: WriteTime,
        value: impl Into<Bytes>,
    ) -> Put {
        self.cells.push(PutCell {
            family: family.into(),
            qualifier: qualifier.into(),
            time,
            value: value.into(),
            tags: Vec::new(),
        });
        self
    }

    /// Sets the durability.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Put {
        self.durability = durability;
        self
    }
}

/// One marker of a [`Delete`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeleteMarker {
    /// One version (HBase `addColumn`). With [`WriteTime::Now`] the newest visible version is looked up and its timestamp used.
    Version {
        /// The family.
        family: Bytes,
        /// The qualifier.
        qualifier: Bytes,
        /// The version.
        time: WriteTime,
    },
    /// All versions of a column up to a time (HBase `addColumns`).
    Column {
        /// The family.
        family: Bytes,
        /// The qualifier.
        qualifier: Bytes,
        /// Up to and including.
        time: WriteTime,
    },
    /// All versions of a family's columns up to a time (HBase `addFamily`).
    Family {
        /// The family.
        family: Bytes,
        /// Up to and including.
        time: WriteTime,
    },
    /// All versions of a family's columns at exactly a time (HBase `addFamilyVersion`).
    FamilyVersion {
        /// The family.
        family: Bytes,
        /// Exactly this time.
        time: WriteTime,
    },
}

/// Writes delete markers into one row, all or none. Without markers it deletes the row: one DeleteFamily marker per family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delete {
    /// The row key.
    pub row: Bytes,
    /// The markers.
    pub markers: Vec<DeleteMarker>,
    /// Time of the whole-row form.
    pub row_time: WriteTime,
    /// When it counts as done.
    pub durability: Durability,
}

impl Delete {
    /// Deletes the whole row as of now.
    pub fn row(row: impl Into<Bytes>) -> Delete {
        Delete { row: row.into(), markers: Vec::new(), row_time: WriteTime::Now, durability: Durability::UseDefault }
    }

    /// Adds a marker.
    #[must_use]
    pub fn marker(mut self, marker: DeleteMarker) -> Delete {
        self.markers.push(marker);
        self
    }
}

/// Adds to 8-byte big-endian counters of one row, atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Increment {
    /// The row key.
    pub row: Bytes,
    /// Family, qualifier, amount; in order, so a column named twice is added to twice.
    pub amounts: Vec<(Bytes, Bytes, i64)>,
    /// The new cells' timestamps: [`WriteTime::Now`] is HBase's max(now, current cell + 1), which a marker of the same millisecond hides;
    /// [`WriteTime::AfterNewest`] is newer than markers too. No other is taken.
    pub time: WriteTime,
    /// Which current cell counts.
    pub time_range: TimeRange,
    /// Time to live of the new cells in milliseconds; without it that of the current cell is carried on.
    pub ttl_millis: Option<u64>,
    /// When it counts as done.
    pub durability: Durability,
}

/// Appends to values of one row, atomically.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append {
    /// The row key.
    pub row: Bytes,
    /// Family, qualifier, bytes; in order.
    pub values: Vec<(Bytes, Bytes, Bytes)>,
    /// The new cells' timestamps: [`WriteTime::Now`] is HBase's max(now, current cell + 1), which a marker of the same millisecond hides;
    /// [`WriteTime::AfterNewest`] is newer than markers too. No other is taken.
    pub time: WriteTime,
    /// Which current cell counts.
    pub time_range: TimeRange,
    /// Time to live of the new cells in milliseconds; without it that of the current cell is carried on.
    pub ttl_millis: Option<u64>,
    /// When it counts as done.
    pub durability: Durability,
}

/// One change of one row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// See [`Put`].
    Put(Put),
    /// See [`Delete`].
    Delete(Delete),
    /// See [`Increment`].
    Increment(Increment),
    /// See [`Append`].
    Append(Append),
}

impl Mutation {
    /// The row it changes.
    pub fn row(&self) -> &Bytes {
        match self {
            Mutation::Put(put) => &put.row,
            Mutation::Delete(delete) => &delete.row,
            Mutation::Increment(increment) => &increment.row,
            Mutation::Append(append) => &append.row,
        }
    }
}

/// Several mutations of one row, applied as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowMutations {
    /// The row key; each mutation names the same.
    pub row: Bytes,
    /// The mutations, in order.
    pub mutations: Vec<Mutation>,
}

/// HBase's compare operators. `value op cell` is evaluated with the supplied value on the left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOperator {
    /// supplied < stored
    Less,
    /// supplied <= stored
    LessOrEqual,
    /// supplied = stored
    Equal,
    /// supplied != stored
    NotEqual,
    /// supplied >= stored
    GreaterOrEqual,
    /// supplied > stored
    Greater,
    /// never true; an error where a cell is compared
    NoOp,
}

/// What [`CheckAndMutate`] asks of the row first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// HBase's ifMatches / ifNotExists. A supplied value of `None` or no bytes matches an absent or empty cell.
    Column {
        /// The family.
        family: Bytes,
        /// The qualifier.
        qualifier: Bytes,
        /// The comparison.
        operator: CompareOperator,
        /// The supplied value.
        value: Option<Bytes>,
        /// Which cell counts.
        time_range: TimeRange,
    },
    /// True if a get of the row with this filter returns anything.
    Filter {
        /// The filter.
        filter: Filter,
        /// Which cells count.
        time_range: TimeRange,
    },
    /// True if the column's newest visible value is exactly this, or absent for `None`; several are and-ed. Used by `$if`.
    AllEqual(Vec<(Bytes, Bytes, Option<Bytes>)>),
}

/// Mutates a row only if a condition holds, under the row's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckAndMutate {
    /// The row key.
    pub row: Bytes,
    /// The condition.
    pub condition: Condition,
    /// What to do then.
    pub then: RowMutations,
}

/// What a mutation did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MutationOutcome {
    /// False only for a [`CheckAndMutate`] whose condition did not hold.
    pub applied: bool,
    /// The cells that were written, as stored (timestamps and sequence id assigned), in the order of the request.
    pub written: Vec<crate::cell::Cell>,
}
