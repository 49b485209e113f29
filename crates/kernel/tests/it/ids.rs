//! Ids as people and programs write them.

use std::collections::BTreeSet;

use kernel::{BootId, RequestId};

#[test]
fn an_id_says_what_it_names_and_comes_back_from_text() {
    let id = BootId::generate();
    let text = id.to_string();
    assert!(
        text.starts_with("boot_") && text.len() == "boot_".len() + 26,
        "{text}"
    );
    assert_eq!(text.parse(), Ok(id));
    assert_eq!(format!("{id:?}"), text);
    assert!(RequestId::generate().to_string().starts_with("req_"));
}

#[test]
fn ids_differ_and_have_one_spelling() {
    let ids: BTreeSet<_> = (0..10_000).map(|_| RequestId::generate()).collect();
    assert_eq!(ids.len(), 10_000);

    let id = BootId::generate().to_string();
    let wrong = [
        String::new(),
        "boot_".to_owned(),
        id.to_lowercase(),
        id.replace("boot_", "req_"),
        id.replace('_', "-"),
        format!("{id}0"),
        id[..id.len() - 1].to_owned(),
        format!("boot_{}", "Z".repeat(26)),
    ];
    for text in wrong {
        let error = text.parse::<BootId>().unwrap_err();
        assert_eq!((error.text.as_str(), error.prefix), (text.as_str(), "boot"));
        assert!(
            error.to_string().contains("is not an id of the form `boot_`"),
            "{error}"
        );
    }
}
