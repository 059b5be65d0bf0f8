//! The words of `-o`: ours, and those that mount(8) and fstab pass along.

use super::error::{CliError, CliResult};

/// What `-o` asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MountOptions {
    /// Write nothing at all.
    pub read_only: bool,
    /// Every close is durable.
    pub sync: bool,
    /// Other users may enter.
    pub allow_other: bool,
    /// Extended attributes are served.
    pub xattr: bool,
    /// No program is run from the mount.
    pub no_exec: bool,
    /// Owner of what has none of its own.
    pub uid: Option<u32>,
    /// Group of what has none of its own.
    pub gid: Option<u32>,
    /// Permission bits taken from all that is made.
    pub umask: Option<u32>,
    /// The family that a new table gets.
    pub family: Option<String>,
}

/// The same with every default filled in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ResolvedOptions {
    pub(super) read_only: bool,
    pub(super) sync: bool,
    pub(super) xattr: bool,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) umask: u32,
    pub(super) family: Option<String>,
}

/// Words that mean something to mount(8), to fstab's readers or to the kernel, and nothing here. nosuid, nodev and noatime hold always.
const WITHOUT_EFFECT: [&str; 34] = [
    "_netdev",
    "async",
    "atime",
    "auto",
    "defaults",
    "default_permissions",
    "dev",
    "diratime",
    "dirsync",
    "exec",
    "group",
    "iversion",
    "lazytime",
    "loud",
    "noatime",
    "noauto",
    "nodev",
    "nodiratime",
    "nofail",
    "noiversion",
    "nolazytime",
    "nomand",
    "norelatime",
    "nostrictatime",
    "nosuid",
    "nouser",
    "owner",
    "relatime",
    "rw",
    "silent",
    "strictatime",
    "suid",
    "user",
    "users",
];

/// Words with a value, or with a prefix, that are for others.
const PREFIXES_WITHOUT_EFFECT: [&str; 6] = ["x-", "X-", "comment=", "user=", "fsname=", "subtype="];

const KNOWN: &str = "ro sync allow_other xattr noexec uid=N gid=N umask=OCTAL family=NAME";

impl MountOptions {
    /// Reads comma-separated words; later ones win. With `sloppy` unknown words are passed over, as mount(8) -s wants it.
    ///
    /// # Errors
    /// [`CliError::Usage`] names the word and the ones there are.
    pub fn parse<'a>(lists: impl IntoIterator<Item = &'a str>, sloppy: bool) -> CliResult<MountOptions> {
        let mut options = MountOptions::default();
        for word in lists.into_iter().flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty()) {
            let known = options.take(word)?;
            if !known && !sloppy {
                return Err(CliError::Usage(format!("unknown mount option {word}; there are: {KNOWN}")));
            }
        }
        Ok(options)
    }

    /// What is not given belongs to who mounts.
    pub(super) fn resolved(&self) -> ResolvedOptions {
        ResolvedOptions {
            read_only: self.read_only,
            sync: self.sync,
            xattr: self.xattr,
            uid: self.uid.unwrap_or_else(|| rustix::process::geteuid().as_raw()),
            gid: self.gid.unwrap_or_else(|| rustix::process::getegid().as_raw()),
            umask: self.umask.unwrap_or(0),
            family: self.family.clone(),
        }
    }

    fn take(&mut self, word: &str) -> CliResult<bool> {
        match word {
            "ro" => self.read_only = true,
            "sync" => self.sync = true,
            "allow_other" => self.allow_other = true,
            "xattr" => self.xattr = true,
            "noexec" => self.no_exec = true,
            _ => return self.take_value(word),
        }
        Ok(true)
    }

    fn take_value(&mut self, word: &str) -> CliResult<bool> {
        match word.split_once('=') {
            Some(("uid", value)) => self.uid = Some(number(word, value, 10)?),
            Some(("gid", value)) => self.gid = Some(number(word, value, 10)?),
            Some(("umask", value)) => {
                let umask = number(word, value, 8)?;
                if umask > 0o777 {
                    return Err(CliError::Usage(format!("{word}: a umask is at most 777")));
                }
                self.umask = Some(umask);
            }
            Some(("family", value)) => {
                if value.is_empty() || value.contains([':', '/']) || value.starts_with('.') {
                    return Err(CliError::Usage(format!("{word}: a family is a name without : and / and leading .")));
                }
                self.family = Some(value.to_owned());
            }
            _ => {
                self.cancel(word);
                return Ok(WITHOUT_EFFECT.contains(&word)
                    || PREFIXES_WITHOUT_EFFECT.iter().any(|prefix| word.starts_with(prefix)));
            }
        }
        Ok(true)
    }

    /// Words that take an earlier one back.
    fn cancel(&mut self, word: &str) {
        match word {
            "rw" => self.read_only = false,
            "async" => self.sync = false,
            "exec" => self.no_exec = false,
            "defaults" => (self.read_only, self.sync, self.no_exec) = (false, false, false),
            _ => {}
        }
    }
}

fn number(word: &str, value: &str, radix: u32) -> CliResult<u32> {
    u32::from_str_radix(value, radix)
        .map_err(|_| CliError::Usage(format!("{word}: {value:?} is not a number in base {radix}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(list: &str) -> CliResult<MountOptions> {
        MountOptions::parse([list], false)
    }

    #[test]
    fn our_words_are_taken_and_the_later_one_wins() {
        let options = parse("ro,sync,allow_other,xattr,uid=5,gid=6,umask=027,family=info,noexec").expect("all known");
        let expected = MountOptions {
            read_only: true,
            sync: true,
            allow_other: true,
            xattr: true,
            no_exec: true,
            uid: Some(5),
            gid: Some(6),
            umask: Some(0o27),
            family: Some("info".to_owned()),
        };
        assert_eq!(options, expected);
        assert_eq!(parse("ro,rw,sync,async,uid=1,uid=2").expect("known").uid, Some(2));
        assert!(!parse("ro,defaults").expect("known").read_only);
        assert_eq!(MountOptions::parse(["ro", "family=a"], false).expect("two lists").family, Some("a".to_owned()));
    }

    #[test]
    fn what_mount_and_fstab_pass_is_accepted_without_effect() {
        let fstab = "rw,noauto,nofail,user,_netdev,x-systemd.automount,X-mount.mkdir,comment=x,nosuid,nodev,relatime,,";
        assert_eq!(parse(fstab).expect("all known"), MountOptions::default());
    }

    #[test]
    fn any_other_word_is_wrong_usage() {
        for bad in ["readonly", "uid=root", "umask=8", "umask=1777", "family=", "family=a:b", "ro=1", "xattr=1"] {
            assert!(matches!(parse(bad), Err(CliError::Usage(_))), "{bad}");
        }
        assert!(MountOptions::parse(["readonly"], true).is_ok());
        assert!(matches!(MountOptions::parse(["uid=root"], true), Err(CliError::Usage(_))));
    }
}
