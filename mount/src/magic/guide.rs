//! `.cellfs/guide/`: the documentation, compiled in.

/// The pages, sorted by name: made of docs/ by the build script.
pub(super) const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/guide_pages.rs"));

/// The place of a page among [`PAGES`] and its text.
pub(super) fn page(name: &[u8]) -> Option<(&'static str, &'static str)> {
    PAGES.iter().find(|(known, _)| known.as_bytes() == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pages_are_those_of_the_documentation() {
        assert!(PAGES.is_sorted_by_key(|(name, _)| *name));
        let (_, text) = page(b"semantics.md").expect("the contract is among them");
        assert!(text.starts_with("# ") && text.ends_with('\n'));
        assert!(page(b"dependencies.md").is_none() && page(b"").is_none());
    }
}
