//! The page of what to believe, `docs/generated/fidelity.md`, says what the replays say.

use crate::replayed::{root, verdict};
use kontig_oracle::fidelity::{Page, markdown};

#[test]
fn the_page_is_what_the_replays_come_to() {
    let root = root();
    let page = Page::replayed_by(verdict, &root, &[]).unwrap_or_else(|e| panic!("{e}"));
    let made = markdown::page(&page);
    let file = root.join(markdown::FILE);
    let committed = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut pairs = committed.lines().zip(made.lines()).enumerate();
    if let Some((i, (old, new))) = pairs.find(|(_, (old, new))| old != new) {
        panic!("{}: line {}:\n  is        {old}\n  should be {new}\nrun: {}", markdown::FILE, i + 1, markdown::MAKE);
    }
    assert_eq!(committed, made, "run: {}", markdown::MAKE);
}
