use super::*;

/// A node that needs no table.
fn node(id: u64) -> Node {
    Node::Namespace(id, "n".into())
}

#[test]
fn numbers_are_hashes_and_references_are_counted() {
    let table = InodeTable::new();
    let number = table.number(&node(1));
    assert_eq!(number & HIGH_BIT, HIGH_BIT);
    let first = table.reference(node(1));
    let second = table.reference(node(1));
    assert!(Arc::ptr_eq(&first, &second) && first.number == number);
    table.forget(number, 1);
    assert!(table.get(number).is_some());
    table.forget(number, 1);
    assert!(table.get(number).is_none());
    assert_eq!(table.reference(node(1)).number, number, "the same after it was forgotten");
    table.forget(ROOT_INODE, u64::MAX);
    assert!(table.get(ROOT_INODE).is_some());
}

#[test]
fn a_renamed_inode_keeps_its_number_and_gives_its_name_up() {
    let table = InodeTable::new();
    let moved = table.reference(node(1));
    let replaced = table.reference(node(2));
    table.rename(&moved, node(2));
    assert!(replaced.is_unlinked());
    assert_eq!(table.number(&node(2)), moved.number);
    assert!(Arc::ptr_eq(&table.find(&node(2)).unwrap(), &moved));
    assert!(table.find(&node(1)).is_none());
    let again = table.reference(node(1));
    assert_ne!(again.number, moved.number);
    assert_eq!(table.number(&node(1)), again.number);
    table.rename(&moved, node(3));
    assert!(table.find(&node(2)).is_none());
    assert_eq!(table.number(&node(3)), moved.number);
    table.forget(moved.number, 1);
    assert_eq!(table.number(&node(3)), number_of(&node(3)));
    assert_eq!(table.number(&node(1)), again.number, "still held, so still its number");
}

#[test]
fn an_unlinked_inode_is_no_longer_found_by_name() {
    let table = InodeTable::new();
    let old = table.reference(node(1));
    table.unlink(&old);
    assert!(table.find(&node(1)).is_none());
    let new = table.reference(node(1));
    assert_ne!(new.number, old.number);
    assert!(table.get(old.number).is_some_and(|found| Arc::ptr_eq(&found, &old)));
    table.forget(old.number, 1);
    assert!(Arc::ptr_eq(&table.find(&node(1)).unwrap(), &new));
    let mut seen = 0;
    table.for_each(|_| seen += 1);
    assert_eq!((seen, table.len()), (2, 2));
}

#[test]
fn an_inode_is_small() {
    // docs/performance.md has the sum: a kernel that knows a million cells makes the daemon keep as many of these.
    assert!(size_of::<Inode>() <= 384, "{} bytes", size_of::<Inode>());
}
