//! What is ignored, by git's own rules.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use kernel::CancellationToken;
use plans::{Bases, IgnoreRules, IgnoreSources, RelPath, WhyLeftOut};

use crate::base_support::{Site, files_of, git, left_out_of, path, texts};

/// What git itself would carry: what is tracked and there, and what is untracked and not ignored.
fn carried_by_git(directory: &Path) -> Vec<String> {
    let output = Command::new("git")
        .args([
            "-c",
            "core.quotePath=false",
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(directory)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let paths = text
        .split_terminator('\0')
        .filter(|path| directory.join(path).exists());
    let paths: BTreeSet<&str> = paths.collect();
    paths.into_iter().map(ToOwned::to_owned).collect()
}

/// Rules, files and what the base has of them, each line a case of git's documentation.
#[test]
fn the_rules_are_those_of_git() {
    let rules = "\
# a comment
*.log
!important.log
/only-root
build/
doc/*.txt
**/deep/**/leaf
a/**/b
trailing-space \n\
kept\\ \n\
\\#hash
\\!bang
[abc].x
no/slash/at/end
*.o
!keep/*.o
dir-only/
$dollar
";
    let files = [
        "x.log",
        "important.log",
        "sub/x.log",
        "only-root",
        "sub/only-root",
        "build/out",
        "sub/build/out",
        "sub2/build",
        "doc/a.txt",
        "doc/sub/a.txt",
        "m/deep/n/leaf",
        "deep/leaf",
        "a/b",
        "a/x/y/b",
        "a/x/c",
        "trailing-space",
        "kept ",
        "#hash",
        "!bang",
        "a.x",
        "d.x",
        "no/slash/at/end",
        "q/no/slash/at/end",
        "z.o",
        "keep/z.o",
        "dir-only",
        "e/dir-only/f",
        "$dollar",
        "nested/own",
        "nested/x.log",
        "nested/deep2/other",
        "excluded-by-info",
        "build2/x.log",
    ];
    let site = Site::with_git();
    site.write(".gitignore", rules);
    site.write("nested/.gitignore", "own\n!x.log\nother\n!/deep2/other\n");
    // Rules inside of what is ignored do not count.
    site.write("build/.gitignore", "!out\n");
    site.write(".git/info/exclude", "excluded-by-info\n");
    for file in files {
        site.write(file, "");
    }
    site.write("build/tracked", "");
    site.write("build/tracked-and-gone", "");
    site.git(&[
        "add",
        "--force",
        "build/tracked",
        "build/tracked-and-gone",
        "x.log",
    ]);
    fs::remove_file(site.at("build/tracked-and-gone")).unwrap();

    let taken = site.take();
    assert_eq!(files_of(&taken.base.manifest), carried_by_git(&site.workspace()));

    // The same rules for paths in any order.
    let sources = Arc::new(IgnoreSources::of_workspace(&site.workspace()).unwrap());
    let read = |directory: Option<&RelPath>| {
        let directory = directory.map_or(site.workspace(), |path| site.workspace().join(path.as_path()));
        Ok(fs::read(directory.join(".gitignore")).ok())
    };
    let sources = || Ok(Arc::clone(&sources));
    let mut ignores = IgnoreRules::load(&sources, &read);
    for file in files
        .iter()
        .rev()
        .chain(&["build/tracked", "build/.gitignore", "nested/.gitignore"])
    {
        let is_part = taken.base.manifest.get(&path(file)).is_some();
        assert_eq!(
            ignores.is_ignored(&path(file), false).unwrap(),
            !is_part,
            "{file}"
        );
    }
    for (directory, expected) in [
        ("build", false),
        ("sub/build", true),
        ("e/dir-only", true),
        ("sub", false),
    ] {
        assert_eq!(
            ignores.is_ignored(&path(directory), true).unwrap(),
            expected,
            "{directory}"
        );
    }
}

#[test]
fn what_is_ignored_is_told_outermost_first() {
    let site = Site::with_git();
    site.write(".gitignore", "target/\n.env\n*.secret\nbuild/\n");
    site.write("target/debug/x/y", "");
    site.write("sub/target/x", "");
    site.write(".env", "K=V");
    site.write("sub/a.secret", "");
    site.write("sub/large.secret", vec![0; 1024 * 1024 + 1]);
    site.write("build/tracked/deep/f", "");
    site.write("build/tracked/other", "");
    site.write("build/untracked/g", "");
    site.write("build/h", "");
    site.git(&["add", "--force", "build/tracked/deep/f"]);

    let taken = site.take();

    assert_eq!(
        files_of(&taken.base.manifest),
        [".gitignore", "build/tracked/deep/f"]
    );
    assert_eq!(
        texts(&taken.ignored.directories),
        ["build/untracked", "sub/target", "target"]
    );
    assert_eq!(
        texts(&taken.ignored.files),
        [".env", "build/h", "build/tracked/other", "sub/a.secret"]
    );
    assert_eq!(
        left_out_of(&taken),
        [("sub/large.secret".to_owned(), WhyLeftOut::TooMany)]
    );

    // When nothing tracked is left in it, the directory is ignored whole.
    fs::remove_file(site.at("build/tracked/deep/f")).unwrap();
    let taken = site.take();
    assert_eq!(
        texts(&taken.ignored.directories),
        ["build", "sub/target", "target"]
    );
    assert_eq!(taken.base.manifest.get(&path("build")), None);
}

#[test]
fn more_than_a_sandbox_takes_over_is_left_out() {
    let site = Site::new();
    site.write(".gitignore", "ignored*\n");
    for number in 0..40 {
        site.write(&format!("d{number:02}/ignored-directory/f"), "");
    }
    for number in 0..1010 {
        site.write(&format!("ignored{number:04}"), "");
    }
    let taken = site.take();
    assert_eq!(
        (taken.ignored.directories.len(), taken.ignored.files.len()),
        (32, 1000)
    );
    let left_out = left_out_of(&taken);
    assert_eq!(left_out.len(), 18);
    assert!(left_out.iter().all(|(_, why)| *why == WhyLeftOut::TooMany));
    assert_eq!(left_out[0].0, "d32/ignored-directory");
    assert_eq!(left_out[17].0, "ignored1009");
}

#[test]
fn worktreeinclude_names_what_is_wanted_all_the_same() {
    let site = Site::with_git();
    site.write(".gitignore", ".env*\nsecrets/\ncache/\nout/\nlocal/\n");
    site.write(
        ".worktreeinclude",
        ".env\n.env.*\n!.env.production\nsecrets/\n!secrets/private\nout/keep/*.json\n",
    );
    for file in [
        ".env",
        ".env.local",
        ".env.production",
        "sub/.env",
        "secrets/a",
        "secrets/deep/b",
        "secrets/private",
        "cache/.env",
        "out/keep/x.json",
        "out/keep/x.bin",
        "out/drop/x.json",
        "local/out/keep/x.json",
        "visible",
    ] {
        site.write(file, "");
    }
    let taken = site.take();
    let expected = [
        ".env",
        ".env.local",
        ".gitignore",
        ".worktreeinclude",
        "out/keep/x.json",
        "secrets/a",
        "secrets/deep/b",
        "sub/.env",
        "visible",
    ];
    assert_eq!(files_of(&taken.base.manifest), expected);
    // A mere name does not reach into a directory that is ignored whole.
    assert_eq!(texts(&taken.ignored.directories), ["cache", "local", "out/drop"]);
    assert_eq!(
        texts(&taken.ignored.files),
        [".env.production", "out/keep/x.bin", "secrets/private"]
    );
}

#[test]
fn a_directory_without_git_has_its_rules_too() {
    let site = Site::new();
    site.write(".gitignore", "target\n");
    site.write("sub/.gitignore", "*.tmp\n");
    for file in ["target/x", "sub/a.tmp", "b.tmp", "sub/c"] {
        site.write(file, "");
    }
    let taken = site.take();
    assert_eq!(
        files_of(&taken.base.manifest),
        [".gitignore", "b.tmp", "sub/.gitignore", "sub/c"]
    );
    assert_eq!(texts(&taken.ignored.directories), ["target"]);
}

#[test]
fn a_workspace_may_be_a_part_of_a_repository_or_a_worktree_of_it() {
    let site = Site::with_git();
    site.write(".gitignore", "*.log\n/inner/deep/by-root\n");
    site.write("inner/.gitignore", "/deep/by-inner\n!kept.log\n");
    for file in [
        "by-root",
        "by-inner",
        "a.log",
        "kept.log",
        "forced.log",
        "f",
        "by-deep",
    ] {
        site.write(&format!("inner/deep/{file}"), "");
    }
    site.write("inner/deep/.gitignore", "by-deep\n");
    site.git(&["add", "--force", "inner/deep/forced.log"]);
    let cache = site.directory.path().join("cache-of-inner");
    let scope = CancellationToken::new().scope();
    let take = |bases: &Bases, at: &Path| bases.take(at, &cache, &scope).unwrap();
    let deep = site.at("inner/deep");
    let taken = take(&site.bases, &deep);
    assert_eq!(files_of(&taken.base.manifest), carried_by_git(&deep));
    assert_eq!(
        files_of(&taken.base.manifest),
        [".gitignore", "f", "forced.log", "kept.log"]
    );

    site.git(&["add", ".gitignore", "inner"]);
    site.git(&["commit", "--quiet", "-m", "all"]);
    site.write(".git/info/exclude", "by-info\n");
    let worktree = site.directory.path().join("worktree");
    site.git(&["worktree", "add", "--quiet", worktree.to_str().unwrap()]);
    for file in ["by-info", "x.log", "y"] {
        fs::write(worktree.join(file), "").unwrap();
    }
    let taken = take(&site.bases, &worktree);
    assert_eq!(files_of(&taken.base.manifest), carried_by_git(&worktree));
    assert!(taken.base.manifest.get(&path("inner/deep/forced.log")).is_some());

    // A repository that ignores the workspace has nothing to say about it.
    site.write("x.log/f", "");
    let taken = take(&site.bases, &site.at("x.log"));
    assert_eq!(files_of(&taken.base.manifest), ["f"]);
}

#[test]
fn the_users_own_excludes_count() {
    let site = Site::with_git();
    let excludes = site.directory.path().join("my-excludes");
    fs::write(&excludes, "*.mine\n").unwrap();
    site.git(&["config", "core.excludesFile", excludes.to_str().unwrap()]);
    site.git(&["config", "core.ignoreCase", "true"]);
    for file in ["a.mine", "b.MINE", "c"] {
        site.write(file, "");
    }
    let taken = site.take();
    assert_eq!(files_of(&taken.base.manifest), carried_by_git(&site.workspace()));
    assert_eq!(files_of(&taken.base.manifest), ["c"]);
}

#[test]
fn an_index_that_only_git_can_read_is_read_by_git() {
    let site = Site::new();
    git(&site.workspace(), &["init", "--quiet", "--object-format=sha256"]);
    site.write(".gitignore", "*.log\n");
    for file in ["tracked.log", "untracked.log", "f"] {
        site.write(file, "");
    }
    site.git(&["add", "--force", "tracked.log"]);
    let taken = site.take();
    assert_eq!(files_of(&taken.base.manifest), [".gitignore", "f", "tracked.log"]);
}
