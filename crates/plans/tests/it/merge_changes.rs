//! The rules of the merge, path by path.

use plans::{Change, Conflict, ConflictKind, Entry, Merged, merge_all, merge_changes};

use crate::merge_kit::{Files, Store, link, path};

/// What a merge did, in short: the tree after it and what was combined, or the conflicts.
#[derive(Debug, Eq, PartialEq)]
enum Came {
    To(Vec<(String, String)>),
    Combined(Vec<(String, String)>, &'static [&'static str]),
    Conflicts(Vec<(&'static str, ConflictKind, Option<&'static str>)>),
}

/// The entries of the cases, by name.
struct Names(Store);

impl Names {
    fn entry(&mut self, name: &str) -> Entry {
        match name {
            "dir" => Entry::Directory,
            "nul" => self.0.file(b"a\0b"),
            "nul2" => self.0.file(b"a\0c"),
            "nul3" => self.0.file(b"a\0d"),
            _ => match name.split_once(':') {
                Some(("link", target)) => link(target),
                Some(("x", text)) => self.0.file_with(text, 0o755),
                Some(("600", text)) => self.0.file_with(text, 0o600),
                Some(("710", text)) => self.0.file_with(text, 0o710),
                _ => self.0.file(name),
            },
        }
    }

    fn tree(&mut self, entries: &str) -> Files {
        let entries = entries
            .split_whitespace()
            .map(|entry| entry.split_once('=').unwrap());
        let entries = entries.map(|(name, what)| (path(name), self.entry(&what.replace(',', "\n"))));
        Files(entries.collect())
    }

    fn show(&self, merged: &Merged, tree: &Files) -> Vec<(String, String)> {
        let content = |entry: &Entry| match entry {
            Entry::Directory => "dir".to_owned(),
            Entry::Symlink { target } => format!("link:{}", String::from_utf8_lossy(&target.0)),
            Entry::File { hash, mode, .. } => {
                let content = merged.made.get(hash).or(self.0.0.get(hash)).unwrap();
                let text = String::from_utf8_lossy(content).replace('\n', ",");
                if *mode == 0o644 {
                    text
                } else {
                    format!("{mode:o}:{text}")
                }
            }
        };
        tree.0
            .iter()
            .map(|(path, entry)| (path.to_string(), content(entry)))
            .collect()
    }
}

fn tree(entries: &str) -> Vec<(String, String)> {
    let entries = entries
        .split_whitespace()
        .map(|entry| entry.split_once('=').unwrap());
    entries
        .map(|(name, what)| (name.to_owned(), what.to_owned()))
        .collect()
}

/// Merges what a plan made of a base into what the workspace made of it. `renames` says which of the plan's new paths had
/// which old ones.
fn merge(base: &str, ours: &str, theirs: &str, renames: &[(&str, &str)]) -> Came {
    let mut names = Names(Store::default());
    let (base, mut ours, theirs) = (names.tree(base), names.tree(ours), names.tree(theirs));
    let mut changes = base.changes_to(&theirs);
    for (old, new) in renames {
        changes.retain(|change| change.path != path(old));
        let change = changes
            .iter_mut()
            .find(|change| change.path == path(new))
            .unwrap();
        (change.from, change.before) = (Some(path(old)), base.0.get(&path(old)).cloned());
    }
    let merged = merge_changes(&changes, &ours, &names.0.0).unwrap();
    if !merged.conflicts.is_empty() {
        let conflicts = merged.conflicts.iter().map(|conflict| {
            let leak = |path: &plans::RelPath| &*path.to_string().leak();
            (
                leak(&conflict.path),
                conflict.kind,
                conflict.other.as_ref().map(leak),
            )
        });
        return Came::Conflicts(conflicts.collect());
    }
    ours.carry_out(&merged.effects);
    let shown = names.show(&merged, &ours);
    let combined: Vec<&str> = merged
        .combined
        .iter()
        .map(|path| &*path.to_string().leak())
        .collect();
    match combined.is_empty() {
        true => Came::To(shown),
        false => Came::Combined(shown, combined.leak()),
    }
}

#[test]
fn each_path_for_itself() {
    use ConflictKind::{
        Binary, BothAdded, Content, DeletedByPlan, DeletedByWorkspace, DirectoryAndFile, Type,
    };
    let to = |entries: &str| Came::To(tree(entries));
    let combined = |entries: &str, paths| Came::Combined(tree(entries), paths);
    let conflict = |kind| Came::Conflicts(vec![("f", kind, None)]);
    for (base, ours, theirs, expected) in [
        // Only one side did something, or both did the same.
        ("f=a", "f=a", "f=b", to("f=b")),
        ("f=a", "f=b", "f=a", to("f=b")),
        ("f=a", "f=b", "f=b", to("f=b")),
        ("f=a", "f=a", "", to("")),
        ("f=a", "", "", to("")),
        ("", "", "f=a", to("f=a")),
        ("", "f=a", "f=a", to("f=a")),
        ("f=a", "f=a", "f=link:t", to("f=link:t")),
        ("f=nul", "f=nul", "f=nul2", to("f=a\0c")),
        // Both changed the text.
        ("f=a,b,c", "f=A,b,c", "f=a,b,C", combined("f=A,b,C", &["f"])),
        ("f=a,b,c", "f=A,b,c", "f=X,b,c", conflict(Content)),
        ("f=nul", "f=nul2", "f=nul3", conflict(Binary)),
        ("f=a", "f=nul2", "f=b", conflict(Binary)),
        // Permissions go their own way.
        ("f=a", "f=b", "f=x:a", combined("f=755:b", &["f"])),
        ("f=a", "f=x:a", "f=b", combined("f=755:b", &["f"])),
        ("f=a", "f=x:a", "f=600:a", combined("f=711:a", &["f"])),
        ("f=x:a,b,c", "f=A,b,c", "f=x:a,b,C", combined("f=A,b,C", &["f"])),
        // One deleted what the other changed.
        ("f=a", "", "f=b", conflict(DeletedByWorkspace)),
        ("f=a", "f=b", "", conflict(DeletedByPlan)),
        ("f=a", "f=x:a", "", conflict(DeletedByPlan)),
        // Both made something.
        ("", "f=a", "f=b", conflict(BothAdded)),
        ("", "f=a", "f=x:a", conflict(BothAdded)),
        ("", "f=link:a", "f=link:b", conflict(BothAdded)),
        // Types and symlinks are whole.
        ("f=link:a", "f=link:b", "f=link:c", conflict(Type)),
        ("f=link:a", "f=link:b", "f=link:b", to("f=link:b")),
        ("f=a", "f=link:a", "f=b", conflict(Type)),
        ("f=a", "f=b", "f=link:a", conflict(Type)),
        // Directories against files.
        ("f=a", "f=dir f/x=a", "f=b", conflict(DirectoryAndFile)),
        ("", "f=dir f/x=a", "f=b", conflict(DirectoryAndFile)),
        ("", "f=a", "f=dir", conflict(DirectoryAndFile)),
        ("f=a", "f=dir f/x=a", "", to("f=dir f/x=a")),
        ("f=dir", "f=a", "", to("f=a")),
        ("f=dir", "f=a", "f=b", conflict(BothAdded)),
    ] {
        assert_eq!(
            merge(base, ours, theirs, &[]),
            expected,
            "{base} | {ours} | {theirs}"
        );
    }
}

#[test]
fn paths_and_what_is_around_them() {
    use ConflictKind::{DeletedByPlan, DeletedByWorkspace, DirectoryAndFile};
    let to = |entries: &str| Came::To(tree(entries));
    for (base, ours, theirs, expected) in [
        // What is missing on the way is made.
        ("", "", "d=dir d/e=dir d/e/f=a", to("d=dir d/e=dir d/e/f=a")),
        ("d=dir", "", "d=dir d/f=a", to("d=dir d/f=a")),
        (
            "d=dir d/e=dir",
            "",
            "d=dir d/e=dir d/e/f=a",
            to("d=dir d/e=dir d/e/f=a"),
        ),
        // What is there already is fine.
        ("", "d=dir d/g=b", "d=dir d/f=a", to("d=dir d/f=a d/g=b")),
        // A directory goes if nothing is left in it.
        ("d=dir d/f=a", "d=dir d/f=a", "", to("")),
        ("d=dir d/f=a", "d=dir", "", to("")),
        ("d=dir d/f=a", "d=dir d/f=a d/g=b", "", to("d=dir d/g=b")),
        (
            "d=dir d/e=dir d/e/f=a",
            "d=dir d/e=dir d/e/f=a d/e/g=b",
            "",
            to("d=dir d/e=dir d/e/g=b"),
        ),
        (
            "d=dir d/f=a",
            "d=dir d/f=b",
            "",
            Came::Conflicts(vec![("d/f", DeletedByPlan, None)]),
        ),
        // A file where a directory was, and the other way round.
        ("d=dir d/f=a", "d=dir d/f=a", "d=b", to("d=b")),
        ("d=dir d/f=a", "", "d=b", to("d=b")),
        ("d=a", "d=a", "d=dir d/f=b", to("d=dir d/f=b")),
        ("d=a", "", "d=dir d/f=b", to("d=dir d/f=b")),
        (
            "d=dir d/f=a",
            "d=dir d/f=a d/g=b",
            "d=b",
            Came::Conflicts(vec![("d", DirectoryAndFile, None)]),
        ),
        // Below what is a file by now.
        (
            "d=dir",
            "d=a",
            "d=dir d/f=b",
            Came::Conflicts(vec![("d/f", DirectoryAndFile, Some("d"))]),
        ),
        (
            "d=dir d/f=a",
            "d=link:elsewhere",
            "d=dir d/f=a d/g=b",
            Came::Conflicts(vec![("d/g", DirectoryAndFile, Some("d"))]),
        ),
        (
            "",
            "d=a",
            "d=dir d/f=b",
            Came::Conflicts(vec![("d", DirectoryAndFile, None)]),
        ),
        (
            "d=dir d/f=a",
            "d=x",
            "d=dir d/f=b",
            Came::Conflicts(vec![("d/f", DeletedByWorkspace, None)]),
        ),
        // A change to what the workspace has moved names the new place.
        (
            "f=a",
            "g=a",
            "f=b",
            Came::Conflicts(vec![("f", DeletedByWorkspace, Some("g"))]),
        ),
    ] {
        assert_eq!(
            merge(base, ours, theirs, &[]),
            expected,
            "{base} | {ours} | {theirs}"
        );
    }
}

#[test]
fn renames() {
    use ConflictKind::{
        BothAdded, BothRenamed, Content, DeletedByPlan, DeletedByWorkspace, DirectoryAndFile, Type,
    };
    let to = |entries: &str| Came::To(tree(entries));
    let conflict = |kind, other| Came::Conflicts(vec![("new", kind, other)]);
    for (ours, theirs, expected) in [
        ("old=a,b,c", "new=a,b,c", to("new=a,b,c")),
        ("old=a,b,c", "new=a,b,C", to("new=a,b,C")),
        (
            "old=A,b,c",
            "new=a,b,c",
            Came::Combined(tree("new=A,b,c"), &["new"]),
        ),
        (
            "old=A,b,c",
            "new=a,b,C",
            Came::Combined(tree("new=A,b,C"), &["new"]),
        ),
        (
            "old=a,b,C",
            "new=a,b,C",
            Came::Combined(tree("new=a,b,C"), &["new"]),
        ),
        ("old=A,b,c", "new=X,b,c", conflict(Content, Some("old"))),
        ("old=link:a", "new=X,b,c", conflict(Type, Some("old"))),
        (
            "old=dir old/x=a",
            "new=X,b,c",
            conflict(DirectoryAndFile, Some("old")),
        ),
        // The workspace has moved it as well, or deleted it.
        ("", "new=a,b,C", conflict(DeletedByWorkspace, Some("old"))),
        ("mine=a,b,c", "new=a,b,C", conflict(BothRenamed, Some("mine"))),
        ("new=a,b,c", "new=a,b,C", to("new=a,b,C")),
        ("new=a,b,C", "new=a,b,C", to("new=a,b,C")),
        (
            "new=x:a,b,c",
            "new=a,b,C",
            Came::Combined(tree("new=755:a,b,C"), &["new"]),
        ),
        // The new path is taken.
        ("old=a,b,c new=z", "new=a,b,c", conflict(BothAdded, Some("old"))),
        ("new=z", "new=a,b,c", conflict(BothAdded, Some("old"))),
        (
            "old=a,b,c new=dir",
            "new=a,b,c",
            conflict(DirectoryAndFile, Some("old")),
        ),
        ("old=a,b,c new=a,b,c", "new=a,b,c", to("new=a,b,c")),
        (
            "old=z new=a,b,c",
            "new=a,b,c",
            Came::Conflicts(vec![("old", DeletedByPlan, None)]),
        ),
    ] {
        assert_eq!(
            merge("old=a,b,c", ours, theirs, &[("old", "new")]),
            expected,
            "{ours} | {theirs}"
        );
    }
    let expected = Came::Combined(tree("new=link:b"), &["new"]);
    assert_eq!(
        merge("old=link:a", "old=link:b", "new=link:a", &[("old", "new")]),
        expected
    );
    // Into a directory that has to be made, out of one that goes.
    let expected = to("e=dir e/g=a");
    assert_eq!(
        merge("d=dir d/f=a", "d=dir d/f=a", "e=dir e/g=a", &[("d/f", "e/g")]),
        expected
    );
    let expected = Came::Combined(tree("d=dir d/mine=m e=dir e/g=b"), &["e/g"]);
    assert_eq!(
        merge(
            "d=dir d/f=a",
            "d=dir d/f=b d/mine=m",
            "e=dir e/g=a",
            &[("d/f", "e/g")]
        ),
        expected
    );
}

#[test]
fn a_conflict_has_all_three_sides() {
    let mut store = Store::default();
    let (base, ours, theirs) = (
        store.file("a\n"),
        store.file("b\n"),
        store.file_with("c\n", 0o755),
    );
    let change = Change {
        path: path("f"),
        before: Some(base.clone()),
        after: Some(theirs.clone()),
        from: None,
    };
    let merged = merge_changes(&[change], &Files::of(&[("f", &ours)]), &store.0).unwrap();
    let expected = Conflict {
        path: path("f"),
        kind: ConflictKind::Content,
        base: Some(base),
        ours: Some(ours),
        theirs: Some(theirs),
        other: None,
        hunks: vec![protocol::PlanConflictHunk {
            line: 1,
            base: "a\n".into(),
            ours: "b\n".into(),
            theirs: "c\n".into(),
        }],
    };
    assert_eq!((merged.conflicts, merged.effects), (vec![expected], vec![]));
}

#[test]
fn a_set_of_plans_is_merged_one_on_top_of_the_other() {
    let mut names = Names(Store::default());
    let base = names.tree("f=a,b,c,d,e g=a");
    let plans = [
        "f=A,b,c,d,e g=a d=dir d/x=1",
        "f=a,b,C,d,e g=a d=dir d/y=2",
        "f=a,b,c,d,E",
    ];
    let lists = plans.map(|plan| base.changes_to(&names.tree(plan)));
    let mut ours = names.tree("f=a,b,c,d,e,f g=a");
    let lists: Vec<&[Change]> = lists.iter().map(Vec::as_slice).collect();
    // The last one conflicts with the workspace only.
    let merged = merge_all(&lists, &ours, &names.0.0).unwrap();
    let conflicts: Vec<_> = merged
        .conflicts
        .iter()
        .map(|one| (one.list, one.conflict.path.to_string(), one.conflict.kind))
        .collect();
    assert_eq!(conflicts, [(2, "f".to_owned(), ConflictKind::Content)]);

    let merged = merge_all(&lists[..2], &ours, &names.0.0).unwrap();
    assert_eq!((merged.conflicts, merged.combined), (vec![], vec![path("f")]));
    // Step by step comes to the same as all at once.
    let mut steps = ours.clone();
    merged.each.iter().for_each(|effects| steps.carry_out(effects));
    ours.carry_out(&merged.effects);
    assert_eq!(steps, ours);
    let made = Merged {
        made: merged.made,
        ..Merged::default()
    };
    let expected = tree("d=dir d/x=1 d/y=2 f=A,b,C,d,e,f g=a");
    assert_eq!(names.show(&made, &ours), expected);
}

#[test]
fn plans_of_a_set_are_in_each_others_way() {
    let mut names = Names(Store::default());
    let base = names.tree("f=a g=a d=dir d/x=1");
    let of = |names: &mut Names, tree: &str| base.changes_to(&names.tree(tree));
    let (first, second) = (
        of(&mut names, "f=b g=a e=dir e/y=2"),
        of(&mut names, "f=c d=dir d/x=1 d/z=3 e=9"),
    );
    let lists = [first.as_slice(), second.as_slice()];
    let merged = merge_all(&lists, &base, &names.0.0).unwrap();
    let conflicts: Vec<_> = merged
        .conflicts
        .iter()
        .map(|one| (one.list, one.conflict.path.to_string(), one.conflict.kind))
        .collect();
    let expected = [
        (1, "e".to_owned(), ConflictKind::DirectoryAndFile),
        (1, "f".to_owned(), ConflictKind::Content),
    ];
    assert_eq!(conflicts, expected);
    // The second puts a file into what the first deleted: the directory stays. If it deletes the rest, it goes.
    for (first, second, expected) in [
        ("f=a g=a", "f=a g=a d=dir d/x=1 d/z=3", "d=dir d/z=3 f=a g=a"),
        ("f=a g=a d=dir", "f=a g=a", "f=a g=a"),
        ("f=a g=a d=dir d/x=1 d/y=2", "f=a g=a", "d=dir d/y=2 f=a g=a"),
    ] {
        let (first, second) = (of(&mut names, first), of(&mut names, second));
        let merged = merge_all(&[&first, &second], &base, &names.0.0).unwrap();
        let mut after = base.clone();
        after.carry_out(&merged.effects);
        assert_eq!(names.show(&Merged::default(), &after), tree(expected));
    }
}
