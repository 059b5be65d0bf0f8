//! What `.cellfs/errors` and `.cellfs/last-error` show: the latest failed operations, in bounded memory.
//!
//! A line is `time pid operation path errno-name reason`, separated by single spaces but for the reason, which runs to the end of the line.

use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::fmt::Write;

/// Lines kept.
const CAPACITY: usize = 1000;
/// Users whose last error is kept.
const USERS: usize = 1000;

/// One failed operation.
#[derive(Clone, Debug)]
pub struct ErrorLine {
    /// Milliseconds since the epoch.
    pub time_millis: i64,
    /// Process (thread) that asked.
    pub pid: u32,
    /// User that asked.
    pub uid: u32,
    /// The operation, as the kernel calls it.
    pub operation: &'static str,
    /// Where, from the mount's root.
    pub path: String,
    /// The errno; 0 for a remark about something that was accepted.
    pub errno: i32,
    /// Why.
    pub reason: String,
}

/// The latest errors of a mount.
#[derive(Debug, Default)]
pub struct ErrorLog {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    lines: VecDeque<String>,
    last_of_user: HashMap<u32, String>,
    count: u64,
}

impl ErrorLog {
    /// Adds a line; the oldest goes when there are too many.
    pub fn add(&self, line: &ErrorLine) {
        let text = render(line);
        let mut inner = self.inner.lock();
        inner.count += 1;
        if inner.last_of_user.len() >= USERS && !inner.last_of_user.contains_key(&line.uid) {
            inner.last_of_user.clear();
        }
        inner.last_of_user.insert(line.uid, text.clone());
        if inner.lines.len() == CAPACITY {
            inner.lines.pop_front();
        }
        inner.lines.push_back(text);
    }

    /// All lines, oldest first, each with its newline.
    pub fn text(&self) -> String {
        self.inner.lock().lines.iter().fold(String::new(), |mut text, line| {
            text.push_str(line);
            text.push('\n');
            text
        })
    }

    /// The last line of a user, with its newline; empty if there is none.
    pub fn last(&self, uid: u32) -> String {
        self.inner.lock().last_of_user.get(&uid).map(|line| format!("{line}\n")).unwrap_or_default()
    }

    /// Lines ever added.
    pub fn count(&self) -> u64 {
        self.inner.lock().count
    }
}

fn render(line: &ErrorLine) -> String {
    let mut text = rfc3339(line.time_millis);
    let name = if line.errno == 0 { "NOTE" } else { errno_name(line.errno) };
    let _ = write!(text, " {} {} {} {} ", line.pid, line.operation, line.path, name);
    // One error is one line, whatever a name in the reason holds.
    text.extend(line.reason.chars().map(|c| if c.is_control() { ' ' } else { c }));
    text.truncate(text.trim_end().len());
    text
}

/// `2026-11-30T20:15:01.250Z`
pub fn rfc3339(millis: i64) -> String {
    let (days, in_day) = (millis.div_euclid(86_400_000), millis.rem_euclid(86_400_000));
    // Days to date by eras of 400 years that begin on 1 March (the civil calendar's arithmetic).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (seconds, fraction) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{fraction:03}Z")
}

/// The errno's symbol, for those that the mount gives out.
pub fn errno_name(errno: i32) -> &'static str {
    match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::EIO => "EIO",
        libc::EBADF => "EBADF",
        libc::EAGAIN => "EAGAIN",
        libc::EACCES => "EACCES",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::EXDEV => "EXDEV",
        libc::ENOTDIR => "ENOTDIR",
        libc::EISDIR => "EISDIR",
        libc::EINVAL => "EINVAL",
        libc::EFBIG => "EFBIG",
        libc::ENOSPC => "ENOSPC",
        libc::EROFS => "EROFS",
        libc::ENAMETOOLONG => "ENAMETOOLONG",
        libc::ENOSYS => "ENOSYS",
        libc::ENOTEMPTY => "ENOTEMPTY",
        libc::ENODATA => "ENODATA",
        libc::EOPNOTSUPP => "EOPNOTSUPP",
        libc::ESTALE => "ESTALE",
        libc::EDQUOT => "EDQUOT",
        libc::ECANCELED => "ECANCELED",
        _ => "E?",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(uid: u32, reason: &str) -> ErrorLine {
        ErrorLine {
            time_millis: 1_764_533_701_250,
            pid: 42,
            uid,
            operation: "mkdir",
            path: "/default/t".into(),
            errno: libc::EINVAL,
            reason: reason.into(),
        }
    }

    #[test]
    fn dates_are_the_calendars() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(rfc3339(-1), "1969-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(1_764_533_701_250), "2025-11-30T20:15:01.250Z");
    }

    #[test]
    fn each_error_is_one_line_and_users_see_their_own_last() {
        let log = ErrorLog::default();
        log.add(&line(1, "two\nlines"));
        log.add(&line(2, "other"));
        assert_eq!(log.last(1), "2025-11-30T20:15:01.250Z 42 mkdir /default/t EINVAL two lines\n");
        assert_eq!(log.last(3), "");
        assert_eq!(log.text().lines().count(), 2);
        for _ in 0..2 * CAPACITY {
            log.add(&line(2, "again"));
        }
        assert_eq!(log.text().lines().count(), CAPACITY);
        assert_eq!(log.count(), 2 * CAPACITY as u64 + 2);
    }
}
