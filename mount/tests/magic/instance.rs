//! `.cellfs/`: config, tasks, health, guide; and a table's `.health`.

use super::world::{ROOT, World};
use cellfs::client::Admin;
use cellfs_mount::magic::{MagicFile, MagicNode, Place};

fn instance(world: &World, name: &str) -> MagicNode {
    let directory = world.magic.lookup(&Place::Root, b".cellfs").unwrap().unwrap();
    world.magic.lookup(&Place::Magic(&directory), name.as_bytes()).unwrap().unwrap()
}

fn text(world: &World, node: &MagicNode) -> String {
    String::from_utf8(world.read_node(node).unwrap()).unwrap()
}

fn open_config(world: &World) -> Box<dyn MagicFile> {
    world.magic.open(&instance(world, "config"), &ROOT, libc::O_WRONLY | libc::O_TRUNC).unwrap()
}

#[test]
fn config_takes_changes_as_a_whole_or_not_at_all() {
    let world = World::new();
    let config = instance(&world, "config");
    let before = text(&world, &config);
    assert!(before.contains("cache.size = \"128MB\"\n") && before.contains("major.hours = \"\"\n"), "{before}");

    let mut file = open_config(&world);
    file.flush().unwrap();
    file.write(0, b"cache.size = \"64MB\"\n").unwrap();
    file.write(0, b"cell.max = \"1MB\"").unwrap();
    file.flush().unwrap();
    let after = text(&world, &config);
    assert!(after.contains("cache.size = \"64MB\"") && after.contains("cell.max = \"1MB\""), "{after}");
    assert_eq!(world.store.settings().cache_bytes, 64 << 20);

    let mut file = open_config(&world);
    file.write(0, b"compaction.threads = 4\n").unwrap();
    let error = file.write(0, b"compaction.thread = 5\n").unwrap_err();
    assert_eq!(error.errno, libc::EINVAL);
    assert!(error.reason.contains("line 2") && error.reason.contains("compaction.throttle"), "{error}");
    file.flush().unwrap();
    assert_eq!(text(&world, &config), after, "nothing of it has changed anything");
    // What is shown can be written as it is.
    let mut file = open_config(&world);
    file.write(0, after.as_bytes()).unwrap();
    file.flush().unwrap();
    assert_eq!(text(&world, &config), after);
}

#[test]
fn tasks_are_idle_when_nothing_runs() {
    let world = World::new();
    assert_eq!(text(&world, &instance(&world, "tasks")), "idle\n");
}

#[test]
fn health_is_a_line_each_and_a_verdict() {
    let world = World::new();
    let check = |text: &str| {
        for line in text.lines() {
            let words: Vec<&str> = line.splitn(5, ' ').collect();
            assert_eq!(words.len(), 5, "{line}");
            assert!(["OK", "WARN"].contains(&words[0]), "{line}");
            assert!(words[2].parse::<i64>().is_ok() && words[3].parse::<i64>().is_ok(), "{line}");
        }
    };
    world.put(b"r", b"cf:a", 1, b"x");
    let health = world.read(".health");
    check(&health);
    assert!(health.ends_with("OK verdict 0 0 -\n"), "{health}");

    // Many files, most of them markers.
    for round in 0..12 {
        for row in 0..100 {
            world.write(&format!("row=r{row}/.row.json"), "{\"cf:a\": null}\n").unwrap();
        }
        world.store.flush_table(&world.table.name()).unwrap();
        world.hooks.clock.add(1000 + round);
    }
    let health = world.read(".health");
    check(&health);
    for name in ["files_per_store", "small_files", "tombstones"] {
        assert!(health.contains(&format!("WARN {name} ")), "{name}: {health}");
    }
    assert!(health.lines().last().unwrap().starts_with("WARN verdict 3 0 "), "{health}");
    let all = text(&world, &instance(&world, "health"));
    assert!(all.starts_with("WARN default:t 3 0 see /default/t/.health\n"), "{all}");
}

#[test]
fn the_guide_is_the_documentation() {
    let world = World::new();
    let guide = instance(&world, "guide");
    let pages = world.list_node(&guide);
    assert!(pages.contains(&"semantics.md".to_owned()), "{pages:?}");
    let page = world.magic.lookup(&Place::Magic(&guide), b"semantics.md").unwrap().unwrap();
    assert!(text(&world, &page).starts_with("# "));
    assert!(world.magic.lookup(&Place::Magic(&guide), b"nonsense").unwrap().is_none());
    let directory = world.magic.lookup(&Place::Root, b".cellfs").unwrap().unwrap();
    let names = world.list_node(&directory);
    assert!(names.is_sorted() && names.contains(&"guide".to_owned()), "{names:?}");
}
