//! The choice of files: a pure function of what is known about them.

use super::config::CompactionConfig;
use std::ops::Range;

/// What the policy knows about one store file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreFileFacts {
    /// The file's identity; seeds the jitter of scheduled major compactions.
    pub file_id: u64,
    /// Bytes on disk.
    pub size: u64,
    /// Newest timestamp in it, markers included.
    pub max_timestamp: i64,
    /// When it was written, milliseconds since the epoch.
    pub created_millis: i64,
    /// Shared with another region since a split: to be rewritten first.
    pub is_reference: bool,
    /// It is the result of a compaction of all files.
    pub is_major: bool,
}

/// Who asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionRequest {
    /// The policy decides whether anything is to do.
    Policy,
    /// A person asked for all files.
    Major,
}

/// What was selected for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompactionKind {
    /// A window of files.
    Minor,
    /// All files, asked for, or since the oldest is old.
    Major,
    /// All files, since some are shared with another region.
    References,
    /// Some files have wholly expired ([`expired_files`]): they are dropped without being read.
    Expired,
}

/// The files to rewrite: a range of the list that was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// Indices, oldest first.
    pub range: Range<usize>,
    /// Why.
    pub kind: CompactionKind,
}

/// True if a minor compaction has enough candidates (HBase `needsCompaction`).
pub fn needs_compaction(files: usize, config: &CompactionConfig) -> bool {
    files >= config.min_files
}

/// Which files have wholly expired. Never the newest (HBase `getUnneededFiles`), so that the store's newest sequence id stays known.
pub fn expired_files(files: &[StoreFileFacts], expired_before: Option<i64>) -> Vec<bool> {
    let newest = files.len().saturating_sub(1);
    let expired = |(place, file): (usize, &StoreFileFacts)| {
        place != newest && expired_before.is_some_and(|cutoff| file.max_timestamp < cutoff)
    };
    files.iter().enumerate().map(expired).collect()
}

/// Chooses among `files`, sorted oldest first (maximal sequence id ascending, then size descending), none of which is being compacted.
///
/// `expired_before`: the timestamp below which everything of the family has expired, for families with TTL and without MIN_VERSIONS.
pub fn select(
    files: &[StoreFileFacts],
    config: &CompactionConfig,
    request: CompactionRequest,
    now_millis: i64,
    expired_before: Option<i64>,
) -> Option<Selection> {
    if files.is_empty() {
        return None;
    }
    let all = 0..files.len();
    if expired_files(files, expired_before).contains(&true) {
        return Some(Selection { range: all, kind: CompactionKind::Expired });
    }
    if files.iter().any(|file| file.is_reference) {
        return Some(Selection { range: all, kind: CompactionKind::References });
    }
    if request == CompactionRequest::Major || is_major_due(files, config, now_millis, expired_before) {
        return Some(Selection { range: all, kind: CompactionKind::Major });
    }
    let skipped = files.iter().take_while(|file| file.size > config.max_size).count();
    let sizes: Vec<u64> = files.iter().skip(skipped).map(|file| file.size).collect();
    if sizes.len() < config.min_files {
        return None;
    }
    let stuck = files.len() >= config.blocking_files;
    let window = best_window(&sizes, config, stuck)?;
    Some(Selection { range: window.start + skipped..window.end + skipped, kind: CompactionKind::Minor })
}

/// HBase `RatioBasedCompactionPolicy.shouldPerformMajorCompaction`: the oldest file is older than the jittered period, and rewriting a
/// single file that is already the result of a major compaction would drop nothing.
fn is_major_due(
    files: &[StoreFileFacts],
    config: &CompactionConfig,
    now_millis: i64,
    expired_before: Option<i64>,
) -> bool {
    let (Some(oldest), Some(seed)) =
        (files.iter().map(|file| file.created_millis).min(), files.first().map(|file| file.file_id))
    else {
        return false;
    };
    let Some(period) = config.jittered_major_period(seed) else { return false };
    if now_millis.saturating_sub(oldest) <= period || !config.is_major_hour(now_millis) {
        return false;
    }
    match files {
        [only] if only.is_major => expired_before.is_some_and(|cutoff| oldest < cutoff),
        _ => true,
    }
}

/// HBase `ExploringCompactionPolicy.applyCompactionPolicy`.
fn best_window(sizes: &[u64], config: &CompactionConfig, stuck: bool) -> Option<Range<usize>> {
    let mut best: Option<(Range<usize>, u64)> = None;
    let mut smallest: Option<(Range<usize>, u64)> = None;
    for start in 0..sizes.len() {
        for end in start + config.min_files..=sizes.len().min(start + config.max_files) {
            let window = sizes.get(start..end).unwrap_or(&[]);
            let total: u64 = window.iter().sum();
            if total > config.max_size {
                continue;
            }
            if stuck && smallest.as_ref().is_none_or(|(_, size)| total < *size) {
                smallest = Some((start..end, total));
            }
            if total >= config.min_size && !is_in_ratio(window, total, config.ratio) {
                continue;
            }
            if best.as_ref().is_none_or(|(range, size)| is_better(range.len(), *size, end - start, total, stuck)) {
                best = Some((start..end, total));
            }
        }
    }
    best.or(smallest).map(|(range, _)| range)
}

fn is_in_ratio(window: &[u64], total: u64, ratio: f64) -> bool {
    window.len() < 2 || window.iter().all(|size| *size as f64 <= (total - size) as f64 * ratio)
}

/// HBase `isBetterSelection`: a stuck store wants files per byte, and changes its mind only for 5 %; else most files, then fewest bytes.
fn is_better(best_files: usize, best_size: u64, files: usize, size: u64, stuck: bool) -> bool {
    if stuck && best_size > 0 && size > 0 {
        const REPLACE_IF_BETTER_BY: f64 = 1.05;
        let threshold = best_files as f64 / best_size as f64 * REPLACE_IF_BETTER_BY;
        return threshold < files as f64 / size as f64;
    }
    files > best_files || files == best_files && size < best_size
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1 << 20;

    fn files(sizes: &[u64]) -> Vec<StoreFileFacts> {
        sizes
            .iter()
            .enumerate()
            .map(|(index, size)| StoreFileFacts {
                file_id: index as u64 + 1,
                size: *size,
                max_timestamp: index as i64 * 100,
                created_millis: 1_000,
                is_reference: false,
                is_major: false,
            })
            .collect()
    }

    fn minor(sizes: &[u64], config: &CompactionConfig) -> Option<Range<usize>> {
        let selection = select(&files(sizes), config, CompactionRequest::Policy, 1_000, None)?;
        assert_eq!(selection.kind, CompactionKind::Minor);
        Some(selection.range)
    }

    #[test]
    fn small_files_go_together_and_ratio_bounds_the_rest() {
        let config = CompactionConfig::default();
        assert_eq!(minor(&[], &config), None);
        assert_eq!(minor(&[1, 1], &config), None);
        assert_eq!(minor(&[1, 1, 1], &config), Some(0..3));
        // One big old file is left alone, the rest qualifies under the minimal size.
        assert_eq!(minor(&[900 * MB, 10 * MB, 10 * MB, 10 * MB], &config), Some(1..4));
        // Equal big files keep the ratio; a file more than 1.2 times the rest does not.
        assert_eq!(minor(&[200 * MB, 200 * MB, 200 * MB], &config), Some(0..3));
        assert_eq!(minor(&[500 * MB, 200 * MB, 200 * MB], &config), None);
        assert_eq!(minor(&[480 * MB, 200 * MB, 200 * MB], &config), Some(0..3));
    }

    #[test]
    fn most_files_win_then_fewest_bytes_and_never_more_than_the_maximum() {
        let config = CompactionConfig::default();
        assert_eq!(minor(&[1; 15], &config), Some(0..10));
        assert_eq!(minor(&[5, 4, 3, 2, 1, 1, 1, 1, 1, 1, 1], &config), Some(1..11));
        let three = CompactionConfig { max_files: 3, ..CompactionConfig::default() };
        assert_eq!(minor(&[9, 8, 2, 1, 1, 7], &three), Some(2..5));
    }

    #[test]
    fn a_stuck_store_takes_the_smallest_window() {
        let config = CompactionConfig { min_size: 0, blocking_files: 4, max_files: 3, ..CompactionConfig::default() };
        assert_eq!(minor(&[64_000, 16_000, 4_000, 1_000], &config), Some(1..4));
        let calm = CompactionConfig { blocking_files: 16, ..config };
        assert_eq!(minor(&[64_000, 16_000, 4_000, 1_000], &calm), None);
    }

    #[test]
    fn references_age_and_demand_take_all() {
        let config = CompactionConfig::default();
        let mut list = files(&[900 * MB, 1]);
        list[1].is_reference = true;
        let chosen = select(&list, &config, CompactionRequest::Policy, 0, None).unwrap();
        assert_eq!(chosen, Selection { range: 0..2, kind: CompactionKind::References });

        let mut list = files(&[900 * MB, 1]);
        let chosen = select(&list, &config, CompactionRequest::Major, 0, None).unwrap();
        assert_eq!(chosen, Selection { range: 0..2, kind: CompactionKind::Major });
        let period = config.jittered_major_period(1).unwrap();
        assert_eq!(select(&list, &config, CompactionRequest::Policy, 1_000 + period, None), None);
        let chosen = select(&list, &config, CompactionRequest::Policy, 1_001 + period, None).unwrap();
        assert_eq!(chosen.kind, CompactionKind::Major);

        list.truncate(1);
        list[0].is_major = true;
        assert_eq!(select(&list, &config, CompactionRequest::Policy, 1_001 + period, None), None);
    }

    #[test]
    fn expired_files_go_first_but_never_the_newest() {
        let config = CompactionConfig::default();
        let list = files(&[1, 1, 1]);
        assert_eq!(expired_files(&list, Some(1_000)), [true, true, false]);
        assert_eq!(expired_files(&list, Some(100)), [true, false, false]);
        assert_eq!(expired_files(&list, None), [false; 3]);
        let chosen = select(&list, &config, CompactionRequest::Policy, 0, Some(100)).unwrap();
        assert_eq!(chosen.kind, CompactionKind::Expired);
        let chosen = select(&list, &config, CompactionRequest::Policy, 0, Some(0)).unwrap();
        assert_eq!(chosen.kind, CompactionKind::Minor);
    }

    #[test]
    fn jitter_is_deterministic_and_within_half_a_period() {
        let config = CompactionConfig::default();
        let period = config.major_period_millis;
        let mut distinct = std::collections::BTreeSet::new();
        for seed in 0..100 {
            let jittered = config.jittered_major_period(seed).unwrap();
            assert!((period / 2..=period * 3 / 2).contains(&jittered));
            assert_eq!(Some(jittered), config.jittered_major_period(seed));
            distinct.insert(jittered);
        }
        assert!(distinct.len() > 90);
        assert_eq!(CompactionConfig { major_period_millis: 0, ..config }.jittered_major_period(1), None);
    }
}
