use crate::world::{ROOT, World};
use cellfs::client::{Admin, TableName};
use cellfs_mount::magic::{Change, MagicNode, Place};

#[test]
fn verbs_run_in_the_write_that_has_their_newline() {
    let world = World::new();
    for row in 0..100 {
        world.put(format!("r{row:02}").as_bytes(), b"cf:a", 1, &[b'x'; 100]);
    }
    let mut file = world.open_to_write(".ctl").unwrap();
    file.write(0, b"fl").unwrap();
    assert_eq!(figure(&world, "files"), 0);
    file.write(2, b"ush\n").unwrap();
    assert_eq!(figure(&world, "files"), 1);
    assert_eq!(world.read(".ctl"), "idle\nlast flush ok seconds=0.000\n");
    world.put(b"r", b"cf:a", 1, b"");
    world.write(".ctl", "flush\nmajor_compact cf\n").unwrap();
    assert_eq!(figure(&world, "files"), 1);
    world.write(".ctl", "split r50").unwrap();
    assert_eq!(world.list(".regions").len(), 2);
    for bad in ["flash\n", "compact nope\n", "drop u\n", "truncate\n", "split a b\n"] {
        let error = world.open_to_write(".ctl").unwrap().write(0, bad.as_bytes()).unwrap_err();
        assert_eq!(error.errno, libc::EINVAL, "{bad}: {error}");
    }
    assert_eq!(world.read(".scan/count"), "101\n");
}

fn figure(world: &World, name: &str) -> i64 {
    let stats = world.read(".stats");
    let line = stats.lines().find(|line| line.split(' ').next() == Some(name)).unwrap_or_else(|| panic!("{stats}"));
    line.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn truncate_and_drop_want_the_name() {
    let world = World::new();
    world.put(b"r", b"cf:a", 1, b"x");
    world.write(".ctl", "truncate t\n").unwrap();
    assert_eq!(world.read(".scan/count"), "0\n");
    assert_eq!(world.hooks.changes.lock()[..], [Change::Table { table: world.table.id() }]);
    world.put(b"r", b"cf:a", 1, b"x");
    assert_eq!(world.write(".ctl", "drop\n").unwrap_err().errno, libc::EINVAL);
    world.write(".ctl", "drop default:t\n").unwrap();
    assert!(world.store.table(&TableName::parse("t").unwrap()).is_err());
    assert!(matches!(world.hooks.changes.lock().last(), Some(Change::TableDropped { name, .. }) if name == "t"));
}

#[test]
fn figures_of_tables_regions_and_the_mount() {
    let world = World::new();
    world.schema("[table]\nSPLITS = [\"b%2Fc\"]\n[family.cf]\n");
    world.put(b"a", b"cf:x", 1, b"v");
    world.write(".ctl", "flush\n").unwrap();
    assert_eq!(figure(&world, "regions"), 2);
    assert_eq!(figure(&world, "entries"), 1);
    let regions = world.list(".regions");
    assert_eq!(regions.len(), 2);
    assert_eq!(world.list(&format!(".regions/{}", regions[0])), ["stats"]);
    let stats = world.read(&format!(".regions/{}/stats", regions[0]));
    assert!(stats.starts_with("start \nend b%2Fc\nbytes "), "{stats}");
    assert!(stats.contains("\nparent \nborn 17645337012"), "{stats}");
    let metrics = world.read_node(&root(&world, &[".cellfs", "metrics"])).unwrap();
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(
        metrics.contains("# TYPE cellfs_regions gauge\ncellfs_regions{namespace=\"default\",table=\"t\"} 2\n"),
        "{metrics}"
    );
    assert!(metrics.contains("# TYPE cellfs_flushes counter\n"), "{metrics}");
    assert!(metrics.contains("cellfs_mount_inodes 3\n"), "{metrics}");
    let namespace = world.magic.lookup(&Place::Namespace("default"), b".stats").unwrap().unwrap();
    let sums = String::from_utf8(world.read_node(&namespace).unwrap()).unwrap();
    assert!(sums.starts_with("tables 1\nregions 2\n"), "{sums}");
}

fn root(world: &World, path: &[&str]) -> MagicNode {
    let mut node = world.magic.lookup(&Place::Root, path[0].as_bytes()).unwrap().unwrap();
    for part in &path[1..] {
        node = world.magic.lookup(&Place::Magic(&node), part.as_bytes()).unwrap().unwrap();
    }
    node
}

#[test]
fn the_instance_tells_about_itself() {
    let world = World::new();
    let instance = root(&world, &[".cellfs"]);
    assert_eq!(
        world.list_node(&instance),
        ["config", "errors", "guide", "health", "last-error", "metrics", "status", "tasks", "version"]
    );
    let read = |path: &[&str]| String::from_utf8(world.read_node(&root(&world, path)).unwrap()).unwrap();
    assert_eq!(read(&[".cellfs", "version"]), format!("cellfs {}\n", env!("CARGO_PKG_VERSION")));
    assert!(read(&[".cellfs", "status"]).starts_with("state ok\nstore /s\n"));
    assert_eq!(read(&[".cellfs", "errors"]), "an error\n");
    assert_eq!(read(&[".cellfs", "last-error"]), "of 0\n");
    let help = read(&[".help"]);
    assert!(help.lines().all(|line| line.len() <= 100) && help.lines().count() <= 40, "not one screen");
    let attributes = world.magic.attributes(&instance, &ROOT).unwrap();
    assert_eq!((attributes.mode, attributes.uid, attributes.gid), (0o555, 7, 8));
}

#[test]
fn names_that_come_later_are_not_there() {
    let world = World::new();
    for name in [".scan2", ".Trash-0", ".git", ".ctl2", "row=r/.git"] {
        assert_eq!(world.find(name).unwrap_err().errno, libc::ENOENT, "{name}");
    }
    for path in [".scan/no-such-form", ".import/no-such-form"] {
        assert_eq!(world.find(path).unwrap_err().errno, libc::ENOENT, "{path}");
    }
    assert!(world.magic.lookup(&Place::Root, b".snap").unwrap().is_none());
}

#[test]
fn files_that_show_are_not_written_and_modes_say_so() {
    let world = World::new();
    for (path, mode) in [
        (".stats", 0o444),
        (".ctl", 0o644),
        (".schema", 0o644),
        (".scan/keys", 0o444),
        (".import/tsv", 0o644),
        (".scan", 0o555),
    ] {
        let node = world.find(path).unwrap();
        let attributes = world.magic.attributes(&node, &ROOT).unwrap();
        assert_eq!((attributes.mode, attributes.uid, attributes.gid), (mode, 5, 6), "{path}");
        if mode == 0o444 {
            assert_eq!(world.magic.open(&node, &ROOT, libc::O_WRONLY).err().unwrap().errno, libc::EACCES);
            assert_eq!(world.magic.unlink(&node).unwrap_err().errno, libc::EPERM);
        }
    }
    let ctl = world.find(".ctl").unwrap();
    assert_eq!(world.magic.replace(&ctl, &ROOT, b"flush\n").unwrap_err().errno, libc::EINVAL);
    assert_eq!(world.magic.create(&Place::Table(&world.table), b".x", &ROOT, 0).err().unwrap().errno, libc::EPERM);
}

#[test]
fn every_name_knows_its_path() {
    let world = World::new();
    world.put(b"a/b", b"cf:x", 7, b"v");
    let region = world.list(".regions").remove(0);
    for path in [
        ".schema",
        ".ctl",
        ".stats",
        ".regions",
        &format!(".regions/{region}/stats"),
        ".scan/limit=3/prefix=a%2Fb/keys",
        ".import/tsv",
        ".import/last",
        ".via/md5-4",
        ".via/revts/p%2Fq",
    ] {
        assert_eq!(world.find(path).unwrap().path(), format!("/default/t/{path}"));
    }
    let versions = world.magic.lookup(&Place::Row(&world.table, b"a/b"), b".versions").unwrap().unwrap();
    let cell = world.magic.lookup(&Place::Magic(&versions), b"cf:x").unwrap().unwrap();
    let version = world.magic.lookup(&Place::Magic(&cell), b"7").unwrap().unwrap();
    assert_eq!(version.path(), "/default/t/a%2Fb/.versions/cf:x/7");
    let types = world.magic.lookup(&Place::Row(&world.table, b"a/b"), b".as").unwrap().unwrap();
    let hex = world.magic.lookup(&Place::Magic(&types), b"hex").unwrap().unwrap();
    let cell = world.magic.lookup(&Place::Magic(&hex), b"cf:x").unwrap().unwrap();
    assert_eq!(cell.path(), "/default/t/a%2Fb/.as/hex/cf:x");
    assert_eq!(root(&world, &[".cellfs", "last-error"]).path(), "/.cellfs/last-error");
}

#[test]
fn every_figure_is_explained() {
    let world = World::new();
    let explained = include_str!("../../../docs/figures.md");
    for line in world.read(".stats").lines() {
        let name = line.split(' ').next().unwrap();
        assert!(explained.contains(&format!("| `{name}` |")), "{name} is not in docs/figures.md");
    }
}
