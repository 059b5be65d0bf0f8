//! Many mutations, each by itself, as fast as possible: neighbours of one region share a log record.

use super::table::{TableHandle, WriteContext};
use crate::client::{Mutation, MutationOutcome};
use crate::error::{Error, Result};
use crate::region::check_mutation;

/// Mutations that share a record at most: what is pending is searched for each that must come after the newest.
const MOST_TOGETHER: usize = 512;
/// Bytes that share a record at most.
const MOST_BYTES: u64 = 1 << 20;

/// True if the mutation may share a record. As in HBase's batches, a marker for "the newest version" then finds what was there before the
/// record; increments and appends come one by one, for each builds on the one before.
fn is_simple(mutation: &Mutation) -> bool {
    matches!(mutation, Mutation::Put(_) | Mutation::Delete(_))
}

impl TableHandle {
    pub(super) fn mutate_batch(&self, mutations: Vec<Mutation>) -> Vec<Result<MutationOutcome>> {
        let mut results = Vec::with_capacity(mutations.len());
        let mut rest = &mutations[..];
        while let Some(first) = rest.first() {
            let context = match self.begin_write(matches!(first, Mutation::Delete(_))) {
                Ok(context) => context,
                Err(error) => {
                    results.push(Err(error));
                    rest = rest.get(1..).unwrap_or(&[]);
                    continue;
                }
            };
            let (run, others) = rest.split_at(self.run_length(&context, rest));
            self.write_run(&context, run, &mut results);
            rest = others;
        }
        results
    }

    /// How many of the next mutations go together: at least one.
    fn run_length(&self, context: &WriteContext, mutations: &[Mutation]) -> usize {
        let Some((first, others)) = mutations.split_first() else { return 0 };
        let limits = &context.config.limits;
        let fits =
            |mutation: &Mutation| is_simple(mutation) && check_mutation(&context.descriptor, limits, mutation).is_ok();
        if !fits(first) {
            return 1;
        }
        let Ok(region) = self.route(first.row()) else { return 1 };
        let mut bytes = super::table::mutation_bytes(first);
        let more = others.iter().take(MOST_TOGETHER - 1).take_while(|mutation| {
            bytes += super::table::mutation_bytes(mutation);
            bytes <= MOST_BYTES && region.contains(mutation.row()) && fits(mutation)
        });
        1 + more.count()
    }

    fn write_run(&self, context: &WriteContext, run: &[Mutation], results: &mut Vec<Result<MutationOutcome>>) {
        if let ([_, _, ..], Some(Ok(region))) = (run, run.first().map(|first| self.route(first.row()))) {
            let together: Vec<&Mutation> = run.iter().collect();
            if together.iter().all(|mutation| region.contains(mutation.row())) {
                match self.mutate_together(context, &region, &together) {
                    Some(Ok(written)) => {
                        let outcomes = written.into_iter();
                        results.extend(
                            outcomes.map(|made| made.map(|written| MutationOutcome { applied: true, written })),
                        );
                        return;
                    }
                    Some(Err(error)) => {
                        results.extend((1..run.len()).map(|_| Err(same_error(&error))));
                        results.push(Err(error));
                        return;
                    }
                    // The region has just been split: one by one they find their way.
                    None => {}
                }
            }
        }
        results.extend(run.iter().map(|mutation| self.mutate_alone(mutation)));
    }
}

/// The same failure for another mutation of the record.
fn same_error(error: &Error) -> Error {
    match error {
        Error::NoSpace { path } => Error::NoSpace { path: path.clone() },
        Error::Poisoned { reason } => Error::Poisoned { reason: reason.clone() },
        Error::Busy { what } => Error::Busy { what: what.clone() },
        other => Error::NotAllowed(other.to_string()),
    }
}
