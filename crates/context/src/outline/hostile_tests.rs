//! Malicious sources, and files that aren't source code at all.

use kernel::{CancellationToken, Cause, Scope};
use proptest::prelude::{ProptestConfig, Strategy as _, any, prop_oneof, proptest};

use super::{Outline, outline};
use crate::path::TreePath;

const FILES: [&str; 10] = [
    "a.rs", "a.py", "a.js", "a.ts", "a.tsx", "a.go", "a.c", "a.h", "a.cpp", "A.java",
];

/// Code with a bit of everything, to cut and mix.
const PIECES: [&str; 9] = [
    "/// Doc.\n#[a]\npub struct A<T> where T: B { x: u8, }\nimpl A { fn f(&self) { g!(h(1)); } }\n",
    "@d\nclass A(B):\n    x: int = 1\n    def f(self):\n        return g(1)\n",
    "export const a = () => { b(); }, c = 1;\nclass A extends B { #x() {} }\n",
    "interface A { b: string; c(): void }\nenum E { X, Y = 1 }\nnamespace N { }\n",
    "package a\nconst (\n\tA, B = 1, 2\n)\nfunc (s *S) F() { g.H() }\n",
    "#define A(x) \\\n  (x)\ntypedef struct a { int *b; } a;\nint *f(void)\n{ return g(); }\n",
    "template <class T> class A : B<T> { ~A(); T &f() const; };\nvoid A::g() { }\n",
    "/** Doc. */\npublic class A { enum B { C } @D int f(String s) { return g(); } }\n",
    "fn \u{e4}\u{1f600}() {}\r\n\t\"\\\"'`{(<[",
];

fn outline_of(path: &str, text: &str, scope: &Scope) -> Option<Outline> {
    outline(&TreePath::new(path).unwrap(), text, scope)
}

fn check(path: &str, text: &str) {
    let scope = CancellationToken::new().scope();
    let Some(found) = outline_of(path, text, &scope) else {
        return;
    };
    // On a very slow machine, a hostile source may run out of time.
    if let Some(again) = outline_of(path, text, &scope) {
        assert_eq!(again, found, "the same each time");
    }
    let lines = u32::try_from(text.split('\n').count()).unwrap();
    for (place, definition) in found.definitions.iter().enumerate() {
        assert!(!definition.name.is_empty() && text.contains(&definition.name));
        assert!(definition.lines.contains(definition.signature), "{definition:?}");
        assert!(
            definition.lines.last() <= lines,
            "{definition:?} of {lines} lines"
        );
        if let Some(parent) = definition.parent {
            assert!((parent as usize) < place, "{definition:?}");
            let parent = &found.definitions[parent as usize];
            assert!(
                parent.lines.contains(definition.signature),
                "{definition:?} in {parent:?}"
            );
        }
    }
    assert!(found.references.is_sorted_by(|one, other| one.name < other.name));
    assert!(found.references.iter().all(|reference| reference.count > 0));
}

#[test]
fn what_is_deep_long_or_endless_ends() {
    let long = 2_000;
    let sources = [
        "(".repeat(long),
        "[{".repeat(long / 2),
        "fn a() {".repeat(long / 8),
        "class A { ".repeat(long / 10),
        "class A:\n ".repeat(100),
        "function f(){var a=1,b=(c)=>d(c);return b}".repeat(long / 42),
        "a b ".repeat(long / 4),
        "#if X\n".repeat(long / 6),
        "/*".repeat(long / 2),
        "\"".repeat(long + 1),
        "`${".repeat(long / 3),
        "A<".repeat(long / 2),
        "\n".repeat(long),
        "// x\n".repeat(long / 5),
        String::new(),
    ];
    for path in FILES {
        for text in &sources {
            check(path, text);
        }
    }
}

#[test]
fn a_megabyte_of_brackets_ends() {
    check("a.rs", &"(".repeat(1024 * 1024));
}

#[test]
fn a_large_file_is_cut_off_and_a_larger_one_not_looked_at() {
    let scope = CancellationToken::new().scope();
    let many: String = (0..6_000)
        .map(|number| format!("fn f{number}() {{ g{number}() }}\n"))
        .collect();
    let found = outline_of("a.rs", &many, &scope).unwrap();
    assert_eq!((found.definitions.len(), found.references.len()), (4096, 4096));
    assert_eq!(found.definitions[4095].name, "f4095");
    assert_eq!(outline_of("a.rs", &"\n".repeat(1024 * 1024 + 1), &scope), None);
}

#[test]
fn what_stands_on_an_endless_line_is_left_out() {
    let scope = CancellationToken::new().scope();
    let line = "function f(){g()}".repeat(1000);
    let found = outline_of("a.js", &format!("{line}\nfunction h() {{}}\n"), &scope).unwrap();
    let names: Vec<&str> = found.definitions.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["h"]);
}

#[test]
fn a_cancelled_scope_ends_it_and_the_next_file_is_not_the_worse_for_it() {
    let token = CancellationToken::new();
    let scope = token.scope();
    let before = outline_of("a.rs", PIECES[0], &scope);
    token.cancel(Cause::new("test", "enough"));
    assert_eq!(outline_of("a.rs", &"((".repeat(100_000), &scope), None);
    let after = outline_of("a.rs", PIECES[0], &CancellationToken::new().scope());
    assert!(before.is_some());
    assert_eq!(before, after);
}

#[test]
fn a_scope_that_is_cancelled_meanwhile_ends_it() {
    let token = CancellationToken::new();
    let scope = token.scope();
    // A source that takes long: its brackets are never closed.
    let text = "fn a() { b![".repeat(80_000);
    let found = std::thread::scope(|threads| {
        let parsing = threads.spawn(|| outline_of("a.rs", &text, &scope));
        token.cancel(Cause::new("test", "enough"));
        parsing.join().unwrap()
    });
    assert_eq!(found, None);
    check("a.rs", PIECES[0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_bytes_have_an_outline_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let text = String::from_utf8_lossy(&bytes);
        for path in FILES {
            check(path, &text);
        }
    }

    #[test]
    fn cut_and_mixed_sources_have_an_outline(pieces in proptest::collection::vec(piece(), 1..8)) {
        let text = pieces.concat();
        for path in FILES {
            check(path, &text);
        }
    }
}

/// A part of a piece of code, or something that opens and never closes.
fn piece() -> impl proptest::strategy::Strategy<Value = String> {
    let cut = (0..PIECES.len(), any::<u16>(), any::<u16>()).prop_map(|(piece, from, to)| {
        let letters: Vec<char> = PIECES[piece].chars().collect();
        let from = usize::from(from) % letters.len();
        let to = from + usize::from(to) % (letters.len() - from + 1);
        letters[from..to].iter().collect()
    });
    let whole = (0..PIECES.len()).prop_map(|piece| PIECES[piece].to_owned());
    prop_oneof![cut, whole]
}
