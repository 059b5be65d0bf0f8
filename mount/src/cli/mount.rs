//! `cellfs mount`, in front, in the background, and as mount(8)'s helper.

use super::error::{CliError, CliResult};
use super::mount_options::{MountOptions, ResolvedOptions};
use super::{daemon, hbase_root, logging, notify, store};
use crate::fs::{CellFs, FsOptions};
use crate::fuse::{self, MountSettings, Mounted};
use crate::invalidation::InvalidationQueue;
use crate::ops::Operations;
use cellfs::client::Admin;
use cellfs::server::Store;
use clap::{ArgAction, Args, Parser};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// How long a mount that was asked to end waits for files that are still open in it.
const LAST_CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// Mount a store on a directory
#[derive(Args)]
#[command(after_help = "\
STORE is a directory. A missing or empty one becomes a new store; one that holds anything else is refused.
The command returns once DIR is usable; the daemon stays in the background and logs to syslog.

Options of -o:
  ro           write nothing at all, for read-only media too
  sync         every close is durable
  allow_other  other users may enter, as modes and owners say (users need user_allow_other in /etc/fuse.conf)
  xattr        serve user.cellfs.timestamp .key .versions .region .error, by name
  uid=N gid=N  who owns what nobody has made; default: who mounts
  umask=OCTAL  permission bits taken from all that is made, beside the maker's own
  family=NAME  the family of a new table; default: cf
  noexec       run no program from it
Words of mount(8) and fstab are accepted.

Signals: SIGTERM, SIGINT and SIGHUP unmount cleanly; a second one does not wait for open files.
With NOTIFY_SOCKET set, as by a systemd unit of Type=notify, the service manager is told when DIR is usable.

With --hbase-root the directory is a copy of an HBase cluster's root directory, or of its .hbase-snapshot and archive
alone. Its tables and snapshots are shown, edits that only its logs have included, and nothing is written to it.
DIR/.cellfs/status says what was read, and what could not be.

Examples:
  cellfs mount ~/data ~/m
  cellfs mount -f ~/data ~/m                  stay in front, log to stderr, end with Ctrl-C
  cellfs mount ~/data ~/m -o ro               look, and touch nothing
  cellfs mount ~/data ~/m -o sync,family=info
  cellfs mount --hbase-root /backup/hbase ~/m look into what HBase left
  mount -t cellfs /srv/data /mnt/data         with /sbin/mount.cellfs a link to cellfs; also from fstab")]
pub(super) struct MountCommand {
    /// The store directory, or with --hbase-root the root directory
    store: PathBuf,
    /// The directory to mount on
    #[arg(value_name = "DIR")]
    mount_point: PathBuf,
    /// STORE is a copied HBase root directory, to be read only
    #[arg(long)]
    hbase_root: bool,
    /// Stay in front
    #[arg(short, long)]
    foreground: bool,
    /// Mount options, separated by commas
    #[arg(short, value_name = "OPT,...", action = ArgAction::Append)]
    options: Vec<String>,
    /// This process is the daemon that `daemon::start` started.
    #[arg(long, hide = true)]
    daemon: bool,
    /// Pass over unknown options.
    #[arg(long, hide = true)]
    sloppy: bool,
}

/// What mount(8) calls (its section "External helpers"): -f is a mount in pretence there, -s passes over unknown options.
#[derive(Parser)]
#[command(
    name = "mount.cellfs",
    version,
    about = "Mount a cellfs store, for mount(8)",
    after_help = "\
mount(8) runs it for `mount -t cellfs STORE DIR` and for lines of /etc/fstab. It is a link to cellfs, under
the name mount.cellfs or mount.fuse.cellfs; the options of -o are those of `cellfs mount`. It returns once DIR
is usable.

Lines of /etc/fstab:
  /srv/data  /mnt/data  cellfs  nofail                                      0 0
  /srv/data  /mnt/data  cellfs  noauto,user                                 0 0
  /srv/data  /mnt/data  cellfs  noauto,x-systemd.automount,nofail           0 0
  /net/data  /mnt/data  cellfs  _netdev,ro,x-systemd.requires-mounts-for=/net  0 0

Exit codes: 0 done, 1 failed (one line on stderr says why and what to do), 2 wrong usage."
)]
pub(super) struct HelperCommand {
    /// The store directory
    store: PathBuf,
    /// The directory to mount on
    #[arg(value_name = "DIR")]
    mount_point: PathBuf,
    /// Pass over unknown options
    #[arg(short = 's')]
    sloppy: bool,
    /// Check the command, mount nothing
    #[arg(short = 'f')]
    fake: bool,
    /// Keep no record in /etc/mtab; none is kept anyway
    #[arg(short = 'n')]
    no_table: bool,
    /// Say what is done
    #[arg(short = 'v', action = ArgAction::Count)]
    verbose: u8,
    /// The mount namespace, which mount(8) has entered already
    #[arg(short = 'N', value_name = "NAMESPACE")]
    namespace: Option<OsString>,
    /// Mount options, separated by commas
    #[arg(short = 'o', value_name = "OPT,...", action = ArgAction::Append)]
    options: Vec<String>,
    /// The type, cellfs or fuse.cellfs
    #[arg(short = 't', value_name = "TYPE")]
    kind: Option<String>,
}

struct Request {
    store: PathBuf,
    /// The store is an HBase root directory.
    hbase_root: bool,
    settings: MountSettings,
    options: MountOptions,
}

impl Request {
    fn new(store: &Path, mount_point: &Path, lists: &[String], sloppy: bool, hbase_root: bool) -> CliResult<Request> {
        let mut options = MountOptions::parse(lists.iter().map(String::as_str), sloppy)?;
        options.read_only |= hbase_root;
        let store = store::absolute(store)?;
        let settings = MountSettings {
            source: store.clone().into_os_string(),
            mount_point: std::path::absolute(mount_point)
                .map_err(|error| CliError::io("mount on", mount_point, &error))?,
            read_only: options.read_only,
            no_exec: options.no_exec,
            allow_other: options.allow_other,
            threads: 0,
        };
        Ok(Request { store, hbase_root, settings, options })
    }
}

pub(super) fn run(command: &MountCommand) -> CliResult<()> {
    let lists = &command.options;
    let request = Request::new(&command.store, &command.mount_point, lists, command.sloppy, command.hbase_root)?;
    if command.daemon {
        return run_daemon(&request);
    }
    if command.foreground {
        logging::to_stderr();
        return serve(&request, || Ok(()));
    }
    start_daemon(&request, &command.options, command.sloppy)
}

pub(super) fn run_as_helper(command: &HelperCommand) -> CliResult<()> {
    let request = Request::new(&command.store, &command.mount_point, &command.options, command.sloppy, false)?;
    if let Some(kind) = command.kind.as_deref().filter(|kind| !matches!(*kind, "cellfs" | "fuse.cellfs")) {
        return Err(CliError::Usage(format!("{kind} is not mounted by mount.cellfs; the type is cellfs")));
    }
    if !command.fake {
        start_daemon(&request, &command.options, command.sloppy)?;
    }
    if command.verbose > 0 {
        println!("mount.cellfs: {} mounted on {}.", request.store.display(), request.settings.mount_point.display());
    }
    Ok(())
}

/// What can be judged at once is judged here, so that its message reaches the terminal without a detour.
fn start_daemon(request: &Request, lists: &[String], sloppy: bool) -> CliResult<()> {
    logging::to_stderr();
    fuse::check_mount_point(&request.settings)?;
    let mut arguments: Vec<OsString> = vec!["mount".into(), "--daemon".into()];
    if sloppy {
        arguments.push("--sloppy".into());
    }
    if request.hbase_root {
        arguments.push("--hbase-root".into());
    }
    for list in lists {
        arguments.extend(["-o".into(), list.into()]);
    }
    arguments.extend(["--".into(), request.store.clone().into(), request.settings.mount_point.clone().into()]);
    daemon::start(&arguments)
}

fn run_daemon(request: &Request) -> CliResult<()> {
    logging::to_syslog();
    daemon::leave_terminal();
    serve(request, daemon::report_ready).map_err(|error| {
        log::error!("{error}");
        daemon::report_failure(&error);
        CliError::Told
    })
}

/// Opens, mounts, says `ready`, serves until the mount is gone, and closes the store.
fn serve(request: &Request, ready: impl FnOnce() -> std::io::Result<()>) -> CliResult<()> {
    fuse::check_mount_point(&request.settings)?;
    // Before the store is open: a signal in between must not be lost, nor end the process in the middle.
    let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| CliError::Failed(format!("cannot listen for signals: {error}")))?;
    let options = request.options.resolved();
    if request.hbase_root {
        let root = hbase_root::open(&request.store, &options)?;
        let facts = root.report().facts();
        return mount_and_wait(request, &options, Arc::new(root), facts, signals, ready);
    }
    let opened =
        store::open(&request.store, &store::options(options.read_only, options.uid, options.gid, options.umask))?;
    let opened = Arc::new(opened);
    let served = mount_and_wait(request, &options, Arc::<Store>::clone(&opened), Vec::new(), signals, ready);
    notify::stopping();
    close(opened, &request.store)?;
    served
}

/// Everything acknowledged is in the log already; closing writes it to store files, so that the next mount has nothing to replay.
fn close(store: Arc<Store>, path: &Path) -> CliResult<()> {
    match Arc::try_unwrap(store) {
        Ok(store) => store.close(),
        // Files were still open when a signal ended the mount.
        Err(in_use) => in_use.sync(),
    }
    .map_err(|error| {
        log::error!("{} was not closed cleanly: {error}", path.display());
        error.into()
    })
}

fn mount_and_wait(
    request: &Request,
    options: &ResolvedOptions,
    store: Arc<dyn Admin>,
    facts: Vec<(String, String)>,
    signals: Signals,
    ready: impl FnOnce() -> std::io::Result<()>,
) -> CliResult<()> {
    let invalidations = InvalidationQueue::new();
    let cell_max = store.settings().cell_max;
    let mut fs_options = fs_options(request, options, &invalidations, cell_max);
    fs_options.facts.extend(facts);
    let file_system = Arc::new(CellFs::new(store, fs_options));
    let mounted = match fuse::mount(Arc::clone(&file_system), invalidations, &request.settings) {
        Ok(mounted) => mounted,
        Err(error) => {
            file_system.unmounted();
            return Err(error.into());
        }
    };
    log::info!("{} is mounted on {}", request.store.display(), mounted.mount_point().display());
    notify::ready(&format!("{} on {}", request.store.display(), mounted.mount_point().display()));
    if let Err(error) = ready() {
        log::warn!("whoever started the mount is gone ({error}); it ends");
        leave(mounted.mount_point());
    }
    wait(mounted, &file_system, signals)
}

fn fs_options(
    request: &Request,
    options: &ResolvedOptions,
    invalidations: &Arc<InvalidationQueue>,
    cell_max: u64,
) -> FsOptions {
    let defaults = FsOptions::default();
    FsOptions {
        store_path: Some(request.store.clone()),
        family: options.family.clone().unwrap_or(defaults.family),
        uid: options.uid,
        gid: options.gid,
        umask: options.umask,
        read_only: options.read_only,
        sync: options.sync,
        xattr: options.xattr,
        cell_max,
        facts: vec![
            ("pid".to_owned(), std::process::id().to_string()),
            ("store".to_owned(), request.store.display().to_string()),
            ("mount_point".to_owned(), request.settings.mount_point.display().to_string()),
        ],
        invalidations: Arc::clone(invalidations),
        ..FsOptions::default()
    }
}

enum Event {
    Ended(std::io::Result<()>),
    Signal,
}

/// Waits for the unmount. A signal unmounts; files still open get [`LAST_CLOSE_PATIENCE`], then the store is closed under them: all that was
/// acknowledged is in it.
fn wait<F: Operations>(mounted: Mounted<F>, file_system: &Arc<F>, mut signals: Signals) -> CliResult<()> {
    let mount_point = mounted.mount_point().to_path_buf();
    let (events, received) = mpsc::channel();
    let ended = events.clone();
    let spawned = thread::Builder::new().name("cellfs-session".to_owned()).spawn(move || {
        // The receiver outlives the session unless the process ends first.
        let _ = ended.send(Event::Ended(mounted.wait()));
    });
    let listening = thread::Builder::new().name("cellfs-signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if events.send(Event::Signal).is_err() {
                return;
            }
        }
    });
    for thread in [spawned, listening] {
        if let Err(error) = thread {
            leave(&mount_point);
            file_system.unmounted();
            return Err(CliError::Failed(format!("the system gives no more threads: {error}")));
        }
    }
    let mut patience = None;
    loop {
        let event = match patience {
            None => received.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(patience) => received.recv_timeout(patience),
        };
        match event {
            Ok(Event::Ended(result)) => {
                return result.map_err(|error| {
                    CliError::Failed(format!("the connection to the kernel failed: {error}; everything closed is kept"))
                });
            }
            Ok(Event::Signal) if patience.is_none() => {
                log::info!("a signal ends the mount on {}", mount_point.display());
                leave(&mount_point);
                patience = Some(LAST_CLOSE_PATIENCE);
            }
            Ok(Event::Signal) | Err(_) => {
                log::warn!("files are still open in {}; the store is closed under them", mount_point.display());
                file_system.unmounted();
                return Ok(());
            }
        }
    }
}

/// Unmounts, or where something is still open takes the mount out of the tree.
fn leave(mount_point: &Path) {
    if fuse::unmount(mount_point).is_err()
        && let Err(error) = fuse::detach(mount_point)
    {
        log::error!("{} cannot be unmounted: {error}", mount_point.display());
    }
}
