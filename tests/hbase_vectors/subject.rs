//! What is replayed on.

use bytes::Bytes;
use cellfs::Result;
use cellfs::cell::Cell;
use cellfs::client::{CheckAndMutate, Get, Mutation, MutationOutcome, ResultScanner, RowMutations, Scan};
use cellfs::schema::ColumnFamilyDescriptor;
use std::collections::BTreeMap;

pub type Families = BTreeMap<Bytes, ColumnFamilyDescriptor>;

/// Which store files a compaction takes.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All, and it is called major.
    Major,
    /// Those the policy chooses.
    Policy,
    /// These, by their place, oldest first.
    Files(Vec<usize>),
}

/// What a compaction of one family did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    pub files: usize,
    pub all_files: bool,
    pub major: bool,
    pub expired_files_removed: usize,
}

/// One region of HBase, or what claims to behave like one.
pub trait Subject {
    fn create(&mut self, families: &Families) -> Result<()>;
    fn set_clock(&mut self, millis: i64);
    fn mutate_row(&mut self, mutations: RowMutations) -> Result<MutationOutcome>;
    /// One answer per mutation.
    fn batch(&mut self, mutations: Vec<Mutation>) -> Vec<Result<()>>;
    fn check_and_mutate(&mut self, check: CheckAndMutate) -> Result<MutationOutcome>;
    fn get(&mut self, get: &Get) -> Result<Vec<Cell>>;
    fn scan(&mut self, scan: &Scan) -> Result<Box<dyn ResultScanner>>;
    fn close_scanner(&mut self, scanner: Box<dyn ResultScanner>);
    /// False if there was nothing to flush.
    fn flush(&mut self) -> Result<bool>;
    fn compact(&mut self, selection: &Selection, family: Option<&Bytes>) -> Result<BTreeMap<Bytes, Compacted>>;
    /// The cells of each store file, oldest file first.
    fn files(&mut self) -> Result<BTreeMap<Bytes, Vec<Vec<Cell>>>>;
    fn reopen(&mut self) -> Result<()>;
    /// `None`: the subject cannot.
    fn bulk_load(&mut self, family: &Bytes, cells: Vec<Cell>, assign_sequence_id: bool) -> Option<Result<()>>;
}
