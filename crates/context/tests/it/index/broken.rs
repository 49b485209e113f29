//! What is on disk may be broken: then it is made anew.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Site, check, up_to_date};

/// In how many places each file is broken.
const PLACES: usize = 8;

#[derive(Clone, Copy, Debug)]
enum Harm {
    Flip,
    Cut,
    Remove,
    Grow,
}

#[tokio::test]
async fn whatever_is_broken_the_answers_are_right() {
    let site = Site::new();
    for number in 0..300 {
        site.write(
            &format!("{}/{number}.rs", number % 5),
            format!("fn f{number}() {{ needle(); }}\n"),
        );
    }
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    site.close(index).await;
    for name in ["manifest.json", ".segment"] {
        for place in 0..PLACES {
            for harm in [Harm::Flip, Harm::Cut, Harm::Remove, Harm::Grow] {
                // What was in a broken segment may lie in memory now.
                if let Some(file) = find(&site, name) {
                    break_it(&file, place, harm);
                }
                let index = site.open();
                let snapshot = up_to_date(&index).await;
                check(&snapshot, &site.root(), &["needle", "f17()", "fn f299"]);
                site.close(index).await;
                if !matches!(harm, Harm::Flip | Harm::Cut) && place > 0 {
                    break;
                }
            }
        }
    }
    // Rubbish that nobody named is removed.
    fs::write(site.directory().join("new-1234"), "rubbish").unwrap();
    fs::write(site.directory().join("ffff.segment"), "rubbish").unwrap();
    let index = site.open();
    check(&up_to_date(&index).await, &site.root(), &["needle"]);
    assert!(!site.directory().join("new-1234").exists());
    assert!(!site.directory().join("ffff.segment").exists());
    site.close(index).await;
}

fn find(site: &Site, name: &str) -> Option<PathBuf> {
    let mut entries = fs::read_dir(site.directory()).unwrap().flatten();
    let entry = entries.find(|entry| entry.file_name().to_str().unwrap().ends_with(name));
    entry.map(|entry| entry.path())
}

fn break_it(file: &Path, place: usize, harm: Harm) {
    let mut bytes = fs::read(file).unwrap();
    let at = (bytes.len() - 1) * place / (PLACES - 1);
    match harm {
        Harm::Flip => bytes[at] ^= 0x10,
        Harm::Cut => bytes.truncate(at),
        Harm::Grow => bytes.push(0),
        Harm::Remove => {
            fs::remove_file(file).unwrap();
            return;
        }
    }
    fs::write(file, bytes).unwrap();
}
