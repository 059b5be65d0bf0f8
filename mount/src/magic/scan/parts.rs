//! The path below `.scan`: its `k=v` parts and the form at its end.

use super::aggregate::Aggregation;
use super::condition::{Where, parse_filter, whole_column};
use super::sample::SAMPLE_MAX;
use crate::magic::time::parse_time;
use crate::names;
use crate::ops::{FsError, FsResult};
use bytes::{BufMut, Bytes};
use cellfs::client::{Filter, Scan, TimeRange};
use cellfs::schema::TableDescriptor;

/// The streams a scan can be read as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanForm {
    /// A row key per line.
    Keys,
    /// Counts and sums.
    Aggregate,
    /// The number of rows.
    Count,
    /// A row per line as a JSON object.
    Jsonl,
    /// A cell per line.
    Cells,
    /// A row per line, tab-separated, under a header.
    Tsv,
    /// A row per line as RFC 4180 has it, under a header.
    Csv,
}

impl ScanForm {
    /// Every form with its name, in the order in which they are listed.
    pub const ALL: [(&'static str, ScanForm); 7] = [
        ("agg", ScanForm::Aggregate),
        ("cells", ScanForm::Cells),
        ("count", ScanForm::Count),
        ("csv", ScanForm::Csv),
        ("jsonl", ScanForm::Jsonl),
        ("keys", ScanForm::Keys),
        ("tsv", ScanForm::Tsv),
    ];

    /// The form of a name.
    pub fn of_name(name: &[u8]) -> Option<ScanForm> {
        ScanForm::ALL.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, form)| *form)
    }
}

/// What the keys of parts are, for a person who has mistaken one.
const KEYS: &str = "start= stop= upto= prefix= limit= reverse=1 columns= versions= time=A..B raw=1 where=cf:a=VALUE \
                    filter= sample=, for agg also sum=cf:x group=, then one of rows keys count agg jsonl cells tsv csv";

/// The `k=v` parts of a path, as they were spelled, in the order they were given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScanParts(pub Vec<Bytes>);

/// A family with a qualifier, or all of a family.
pub type ScannedColumn = (Bytes, Option<Bytes>);

/// What the parts ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanRequest {
    start: Option<Bytes>,
    stop: Option<Bytes>,
    upto: Option<Bytes>,
    prefix: Option<Bytes>,
    limit: Option<u64>,
    reverse: Option<()>,
    /// The columns, in the order they were named; empty = all.
    pub columns: Vec<ScannedColumn>,
    versions: Option<u32>,
    time: Option<TimeRange>,
    raw: Option<()>,
    condition: Option<Where>,
    filter: Option<Filter>,
    sample: Option<u64>,
    sum: Option<(Bytes, Bytes)>,
    group: Option<u64>,
}

impl ScanParts {
    /// Appends bytes that name the parts; a part cannot contain `/`.
    pub fn identity(&self, out: &mut Vec<u8>) {
        for part in &self.0 {
            out.put_slice(part);
            out.put_u8(b'/');
        }
    }

    /// The parts with one more.
    #[must_use]
    pub fn with(&self, part: &[u8]) -> ScanParts {
        let mut parts = self.0.clone();
        parts.push(Bytes::copy_from_slice(part));
        ScanParts(parts)
    }

    /// What the parts ask for, of a table with these families.
    ///
    /// # Errors
    /// ENOENT for an unknown key or value, with what there is; EINVAL for parts that exclude each other.
    pub fn parse(&self, table: &TableDescriptor, now_millis: i64) -> FsResult<ScanRequest> {
        let mut request = ScanRequest::default();
        for part in &self.0 {
            request.add(part, table, now_millis)?;
        }
        let conflict = |what: &str| Err(FsError::new(libc::EINVAL, what));
        if request.stop.is_some() && request.upto.is_some() {
            return conflict("stop= and upto= exclude each other: the one ends before a row, the other with it");
        }
        if request.raw.is_some() && !request.columns.is_empty() {
            return conflict("raw=1 takes no columns=, as in HBase: markers of whole families belong to none");
        }
        if request.raw.is_some() && request.condition.is_some() {
            return conflict("raw=1 takes no where=: the newest cell of a column may be a marker");
        }
        Ok(request)
    }
}

impl ScanRequest {
    fn add(&mut self, part: &[u8], table: &TableDescriptor, now_millis: i64) -> FsResult<()> {
        let shown = String::from_utf8_lossy(part).into_owned();
        let wrong = |what: String| FsError::new(libc::ENOENT, what);
        let Some((key, value)) = shown.split_once('=') else {
            return Err(wrong(format!("there is no {shown} in .scan: {KEYS}")));
        };
        let bytes = part.get(key.len() + 1..).unwrap_or_default();
        // A comma separates columns, so in keys and columns it may come as an escape; nothing else is spelled so.
        let unescaped = value.replace("%2C", ",");
        let row = || match unescaped.as_str() {
            "" => Ok(Bytes::new()),
            spelled => names::decode_row(spelled.as_bytes())
                .map(|row| Bytes::copy_from_slice(&row))
                .ok_or_else(|| wrong(format!("{value} spells no row key"))),
        };
        let number = || {
            let digits = value.bytes().all(|b| b.is_ascii_digit());
            value
                .parse::<u64>()
                .ok()
                .filter(|_| digits)
                .ok_or_else(|| wrong(format!("{key}= takes a number, not {value}")))
        };
        let one = || if value == "1" { Ok(()) } else { Err(wrong(format!("{key}= takes 1, not {value}"))) };
        let fresh = match key {
            "start" => self.start.replace(row()?).is_none(),
            "stop" => self.stop.replace(row()?).is_none(),
            "upto" => self.upto.replace(row()?).is_none(),
            "prefix" => self.prefix.replace(row()?).is_none(),
            "limit" => self.limit.replace(number()?).is_none(),
            "reverse" => self.reverse.replace(one()?).is_none(),
            "raw" => self.raw.replace(one()?).is_none(),
            "versions" => {
                let versions = match value {
                    "all" => u32::MAX,
                    _ => u32::try_from(number()?).unwrap_or(u32::MAX),
                };
                if versions == 0 {
                    return Err(wrong("versions= takes 1 or more, or all".to_owned()));
                }
                self.versions.replace(versions).is_none()
            }
            "time" => self.time.replace(time_range(value, now_millis)?).is_none(),
            "where" => self.condition.replace(Where::parse(bytes, table)?).is_none(),
            "filter" => self.filter.replace(parse_filter(bytes)?).is_none(),
            "sample" => {
                let count = number()?;
                if count > SAMPLE_MAX {
                    return Err(wrong(format!("sample= takes at most {SAMPLE_MAX} rows")));
                }
                self.sample.replace(count).is_none()
            }
            "group" => self.group.replace(number()?).is_none(),
            "sum" => {
                let (family, qualifier) = whole_column(value, table)?;
                self.sum.replace((family, qualifier.unwrap_or_default())).is_none()
            }
            "columns" => {
                let fresh = self.columns.is_empty();
                self.columns = value.split(',').map(|name| column(name, table)).collect::<FsResult<_>>()?;
                fresh
            }
            _ => return Err(wrong(format!("there is no {key}= in .scan: {KEYS}"))),
        };
        if fresh { Ok(()) } else { Err(wrong(format!("{key}= is there twice"))) }
    }

    /// Whether cells are shown with their timestamps.
    pub fn shows_versions(&self) -> bool {
        self.versions.is_some() || self.raw.is_some()
    }

    /// The columns by name, as tsv and csv need them.
    ///
    /// # Errors
    /// ENOENT with what is missing.
    pub fn named_columns(&self) -> FsResult<Vec<(Bytes, Bytes)>> {
        let named = self.columns.iter().map(|(family, qualifier)| Some((family.clone(), qualifier.clone()?)));
        match named.collect::<Option<Vec<_>>>() {
            Some(columns) if !columns.is_empty() => Ok(columns),
            _ => Err(FsError::new(
                libc::ENOENT,
                "tsv and csv need columns=cf:a,cf:b before them: each column by its name",
            )),
        }
    }

    /// How many rows a sample has.
    pub fn sample(&self) -> Option<u64> {
        self.sample
    }

    /// Refuses parts that `form` has no use for.
    ///
    /// # Errors
    /// EINVAL with the reason; ENOENT where the form needs columns that are not named.
    pub fn check_form(&self, form: ScanForm) -> FsResult<()> {
        if form != ScanForm::Aggregate && (self.sum.is_some() || self.group.is_some()) {
            return Err(FsError::new(libc::EINVAL, "sum= and group= are for agg"));
        }
        match form {
            ScanForm::Tsv | ScanForm::Csv => self.named_columns().map(|_| ()),
            _ => Ok(()),
        }
    }

    /// What `agg` shows.
    pub(super) fn aggregation(&self, table: &TableDescriptor) -> Aggregation {
        let sum = self.sum.clone().map(|(family, qualifier)| {
            let of = table.column_types().get(&family, &qualifier);
            (family, qualifier, of)
        });
        let sum_only = sum.as_ref().is_some_and(|(family, qualifier, _)| !self.reads(family, qualifier));
        let group = self.group.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        Aggregation { sum, sum_only, group }
    }

    /// True if `columns=` asks for the column, or for all.
    fn reads(&self, family: &Bytes, qualifier: &Bytes) -> bool {
        let named =
            |column: &ScannedColumn| column.0 == *family && column.1.as_ref().is_none_or(|name| name == qualifier);
        self.columns.is_empty() || self.columns.iter().any(named)
    }

    /// The filter of `where=` and `filter=`; a row must pass both.
    fn filters(&self) -> Option<Filter> {
        let condition = self.condition.as_ref();
        let condition = condition.map(|c| c.filter(!self.reads(&c.family, &c.qualifier)));
        match (condition, self.filter.clone()) {
            (Some(condition), Some(filter)) => Some(Filter::all([condition, filter])),
            (condition, filter) => condition.or(filter),
        }
    }

    /// The engine's request.
    pub fn scan(&self) -> Scan {
        let mut scan = Scan::new();
        scan.start_row = self.start.clone().unwrap_or_default();
        scan.stop_row = self.upto.clone().or_else(|| self.stop.clone()).unwrap_or_default();
        scan.include_stop = self.upto.is_some();
        scan.prefix = self.prefix.clone().unwrap_or_default();
        scan.limit = self.limit;
        scan.reversed = self.reverse.is_some();
        scan.max_versions = self.versions.unwrap_or(if self.raw.is_some() { u32::MAX } else { 1 });
        scan.raw = self.raw.is_some();
        scan.time_range = self.time.unwrap_or_default();
        let whole: Vec<&Bytes> =
            self.columns.iter().filter(|column| column.1.is_none()).map(|column| &column.0).collect();
        for (family, qualifier) in &self.columns {
            match qualifier {
                Some(qualifier) if !whole.contains(&family) => {
                    scan.columns.add_column(family.clone(), qualifier.clone());
                }
                _ => scan.columns.add_family(family.clone()),
            }
        }
        scan.filter = self.filters();
        let condition = self.condition.as_ref().map(|condition| (&condition.family, &condition.qualifier));
        let sum = self.sum.as_ref().map(|(family, qualifier)| (family, qualifier));
        for (family, qualifier) in condition.into_iter().chain(sum) {
            if !self.reads(family, qualifier) {
                scan.columns.add_column(family.clone(), qualifier.clone());
            }
        }
        scan
    }
}

/// One name of `columns=`: `cf:` for all of a family, else a column.
pub(super) fn column(name: &str, table: &TableDescriptor) -> FsResult<ScannedColumn> {
    let spelled = name.replace("%2C", ",");
    let (family, qualifier) = names::decode_column(spelled.as_bytes())
        .map(|(family, qualifier)| (Bytes::copy_from_slice(&family), Bytes::copy_from_slice(&qualifier)))
        .ok_or_else(|| {
            FsError::new(libc::ENOENT, format!("{name} is no column: cf:name, or cf: for all of a family"))
        })?;
    if !table.families.contains_key(&family) {
        return Err(FsError::new(
            libc::ENOENT,
            format!("no family {}; the table has: {}", family.escape_ascii(), known_families(table)),
        ));
    }
    Ok((family, Some(qualifier).filter(|qualifier| !qualifier.is_empty())))
}

/// The families of a table, for messages.
pub fn known_families(table: &TableDescriptor) -> String {
    let mut known: Vec<String> = Vec::new();
    for family in table.families.keys().filter(|family| *family != cellfs::schema::ROW_ATTRIBUTES_FAMILY) {
        known.push(family.escape_ascii().to_string());
    }
    known.join(" ")
}

/// `A..B`, either of which may be empty.
fn time_range(value: &str, now_millis: i64) -> FsResult<TimeRange> {
    let Some((from, to)) = value.split_once("..") else {
        return Err(FsError::new(libc::ENOENT, format!("time= takes A..B, not {value}")));
    };
    let bound = |text: &str, open: i64| if text.is_empty() { Ok(open) } else { parse_time(text, now_millis) };
    Ok(TimeRange::new(bound(from, 0)?, bound(to, i64::MAX)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(parts: &[&str]) -> FsResult<ScanRequest> {
        let table = TableDescriptor::with_family("cf").family("info", Default::default());
        let parts = parts.iter().fold(ScanParts::default(), |parts, part| parts.with(part.as_bytes()));
        parts.parse(&table, 1_764_533_701_250)
    }

    #[test]
    fn parts_become_a_scan_in_any_order() {
        let parts =
            ["columns=cf:,info:a%2Cb,info:c", "limit=5", "start=a%2Fb,c", "upto=%FF", "versions=all", "reverse=1"];
        let forward = parse(&parts).unwrap();
        let backward = parse(&parts.iter().rev().copied().collect::<Vec<_>>()).unwrap();
        assert_eq!(forward, backward);
        let scan = forward.scan();
        assert_eq!(scan.start_row, &b"a/b,c"[..]);
        assert_eq!((&scan.stop_row[..], scan.include_stop), (&b"\xff"[..], true));
        assert_eq!((scan.limit, scan.reversed, scan.max_versions, scan.raw), (Some(5), true, u32::MAX, false));
        let info: Vec<_> = scan.columns.families[&b"info"[..]].as_ref().unwrap().iter().cloned().collect();
        assert_eq!(info, [&b"a,b"[..], b"c"]);
        assert_eq!(scan.columns.families[&b"cf"[..]], None);
        assert_eq!(forward.named_columns().unwrap_err().errno, libc::ENOENT);
        let named = parse(&["columns=info:b,cf:a"]).unwrap().named_columns().unwrap();
        assert_eq!(named, [("info".into(), "b".into()), ("cf".into(), "a".into())]);
    }

    #[test]
    fn times_and_raw() {
        let request = parse(&["time=..-5m", "raw=1"]).unwrap();
        let scan = request.scan();
        assert_eq!(scan.time_range, TimeRange::new(0, 1_764_533_401_250).unwrap());
        assert!(scan.raw && request.shows_versions());
        assert_eq!(scan.max_versions, u32::MAX);
        assert_eq!(parse(&["limit=0"]).unwrap().scan().limit, Some(0));
        assert!(parse(&["time=.."]).unwrap().scan().time_range.is_all());
    }

    #[test]
    fn what_is_unknown_is_enoent_and_says_what_there_is() {
        let cases = [
            ("startt=a", "start= stop="),
            ("nonsense", "rows keys count"),
            ("limit=x", "takes a number"),
            ("limit=+1", "takes a number"),
            ("limit=", "takes a number"),
            ("reverse=0", "takes 1"),
            ("versions=0", "1 or more"),
            ("start=%zz", "spells no row"),
            ("start=%41", "spells no row"),
            ("columns=cf", "is no column"),
            ("columns=", "is no column"),
            ("columns=nope:a", "the table has: cf info"),
            ("time=5", "A..B"),
            ("time=x..", "is no time"),
        ];
        for (part, expected) in cases {
            let error = parse(&[part]).unwrap_err();
            assert_eq!(error.errno, libc::ENOENT, "{part}");
            assert!(error.reason.contains(expected), "{part}: {error}");
        }
        assert_eq!(parse(&["limit=1", "limit=1"]).unwrap_err().errno, libc::ENOENT);
        for parts in [&["raw=1", "columns=cf:a"][..], &["stop=a", "upto=b"], &["time=5..6"]] {
            assert_eq!(parse(parts).unwrap_err().errno, libc::EINVAL, "{parts:?}");
        }
    }
}
