//! Which of a table's region directories are its regions. A parent's directory stays for a while after a split or merge, with its store files,
//! and its `.regioninfo` never says so: hbase:meta does, and where it cannot be had the younger of overlapping regions counts.

use super::meta::MetaTable;
use super::region_info::RegionDescription;
use std::collections::BTreeSet;

/// The regions of a table, and what was doubtful about them.
#[derive(Debug, Default)]
pub(super) struct ChosenRegions {
    /// In key order, without overlaps.
    pub(super) regions: Vec<RegionDescription>,
    /// For the user.
    pub(super) remarks: Vec<String>,
}

/// Chooses among `found`, the directories, by what hbase:meta says.
pub(super) fn choose(found: &[RegionDescription], meta: Option<&MetaTable>) -> ChosenRegions {
    let by_age = youngest(found);
    let Some(meta) = meta.filter(|meta| !meta.regions.is_empty()) else {
        let remarks = holes(&by_age);
        return ChosenRegions { regions: by_age, remarks };
    };
    let mut said: Vec<_> =
        meta.regions.iter().filter(|region| !region.replaced && region.replica == 0).cloned().collect();
    sort(&mut said);
    let known: BTreeSet<&str> = meta.regions.iter().map(|region| region.encoded.as_str()).collect();
    let behind = by_age.iter().any(|region| {
        !known.contains(region.encoded.as_str()) && i64::try_from(region.region_id).is_ok_and(|id| id > meta.newest)
    });
    if holes(&said).is_empty() && !overlap(&said) && !behind {
        return ChosenRegions { regions: said, remarks: Vec::new() };
    }
    let reason = if behind { "is older than the table's regions" } else { "leaves a hole between the table's regions" };
    let mut remarks = vec![format!("hbase:meta {reason}: the youngest region directories are taken instead")];
    remarks.extend(holes(&by_age));
    ChosenRegions { regions: by_age, remarks }
}

fn sort(regions: &mut [RegionDescription]) {
    regions.sort_by(|left, right| left.start.cmp(&right.start));
}

fn youngest(found: &[RegionDescription]) -> Vec<RegionDescription> {
    let mut by_age: Vec<&RegionDescription> =
        found.iter().filter(|region| !region.replaced && region.replica == 0).collect();
    by_age.sort_by(|left, right| right.region_id.cmp(&left.region_id).then_with(|| left.encoded.cmp(&right.encoded)));
    let mut chosen: Vec<RegionDescription> = Vec::new();
    for region in by_age {
        if !chosen.iter().any(|other| other.overlaps(region)) {
            chosen.push(region.clone());
        }
    }
    sort(&mut chosen);
    chosen
}

fn overlap(regions: &[RegionDescription]) -> bool {
    regions.windows(2).any(|pair| matches!(pair, [left, right] if left.overlaps(right)))
}

/// Says where rows have no region. `regions` are in key order.
fn holes(regions: &[RegionDescription]) -> Vec<String> {
    let mut holes = Vec::new();
    let mut covered: Option<&[u8]> = Some(b"");
    for region in regions {
        match covered {
            Some(end) if region.start[..] > *end => holes.push(hole(end, &region.start)),
            _ => {}
        }
        covered = if region.end.is_empty() { None } else { Some(&region.end) };
    }
    if let Some(end) = covered {
        holes.push(hole(end, b""));
    }
    holes
}

fn hole(from: &[u8], to: &[u8]) -> String {
    format!("no region has the rows from '{}' to '{}'", from.escape_ascii(), to.escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn region(id: u64, start: &'static str, end: &'static str) -> RegionDescription {
        RegionDescription {
            encoded: format!("{id}{start}"),
            region_id: id,
            start: start.into(),
            end: end.into(),
            replaced: false,
            replica: 0,
        }
    }

    fn names(chosen: &ChosenRegions) -> Vec<&str> {
        chosen.regions.iter().map(|region| region.encoded.as_str()).collect()
    }

    #[test]
    fn daughters_and_merged_regions_cover_their_parents() {
        let found =
            [region(1, "", ""), region(2, "", "m"), region(2, "m", ""), region(3, "m", "t"), region(3, "t", "")];
        let chosen = choose(&found, None);
        assert_eq!(names(&chosen), ["2", "3m", "3t"]);
        assert!(chosen.remarks.is_empty());
        let merged = [region(1, "", "m"), region(1, "m", ""), region(2, "", "")];
        assert_eq!(names(&choose(&merged, None)), ["2"]);
    }

    #[test]
    fn meta_decides_unless_it_is_behind() {
        let found = [region(1, "", ""), region(2, "", "m"), region(2, "m", "")];
        let before = MetaTable { regions: vec![region(1, "", "")], newest: 5, ..MetaTable::default() };
        assert_eq!(names(&choose(&found, Some(&before))), ["1"], "the split was never finished");
        let stale = MetaTable { newest: 1, ..before };
        let chosen = choose(&found, Some(&stale));
        assert_eq!(names(&chosen), ["2", "2m"]);
        assert!(chosen.remarks[0].contains("older"), "{:?}", chosen.remarks);
    }

    #[test]
    fn holes_are_told() {
        let chosen = choose(&[region(1, "", "a"), region(1, "c", "d")], None);
        assert_eq!(chosen.remarks.len(), 2, "{:?}", chosen.remarks);
        assert!(chosen.remarks[0].contains("'a' to 'c'"));
    }
}
