//! The one map from the engine's errors to errnos.

use crate::ops::FsError;
use cellfs::Error;

impl From<Error> for FsError {
    fn from(error: Error) -> FsError {
        let errno = match &error {
            Error::NoSpace { .. } => libc::ENOSPC,
            Error::Poisoned { .. } | Error::ReadOnly { .. } => libc::EROFS,
            Error::Busy { .. } | Error::Locked { .. } => libc::EBUSY,
            Error::NoSuchNamespace(_) | Error::NoSuchTable(_) | Error::NoSuchSnapshot(_) => libc::ENOENT,
            Error::NamespaceExists(_) | Error::TableExists(_) | Error::SnapshotExists(_) => libc::EEXIST,
            Error::NamespaceNotEmpty(_)
            | Error::TableNotEmpty(_)
            | Error::FamilyNotEmpty(_)
            | Error::HasSnapshots(_) => libc::ENOTEMPTY,
            Error::HistoryIncomplete { .. } => libc::ENODATA,
            Error::CellTooLarge { .. } => libc::EFBIG,
            Error::NoSuchColumnFamily { .. } | Error::NotALong { .. } | Error::InvalidArgument(_) => libc::EINVAL,
            Error::NotAllowed(_) => libc::EPERM,
            Error::QuotaExceeded(_) => libc::EDQUOT,
            Error::Unsupported { .. } => libc::EOPNOTSUPP,
            // Damage, a failing disk, and whatever the engine adds: the data cannot be had.
            _ => libc::EIO,
        };
        FsError::new(errno, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_errno_and_reason() {
        let family = Error::NoSuchColumnFamily { family: "x".into(), known: vec!["cf".into(), "info".into()] };
        let error = FsError::from(family);
        assert_eq!(error.errno, libc::EINVAL);
        assert!(error.reason.contains("cf info"), "{error}");
        let full = Error::NoSpace { path: "/s".into() };
        assert_eq!(FsError::from(full).errno, libc::ENOSPC);
        let poisoned = Error::Poisoned { reason: "fsync failed".into() };
        assert_eq!(FsError::from(poisoned).errno, libc::EROFS);
        assert_eq!(FsError::from(Error::corruption("/f", 7, "checksum")).errno, libc::EIO);
        assert_eq!(FsError::from(Error::CellTooLarge { size: 2, limit: 1 }).errno, libc::EFBIG);
    }
}
