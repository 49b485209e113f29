//! What the table of small projects says is so.

use std::fs;

use crate::fixtures::{FIXTURES, Place, Says};
use crate::servers_tree::{Tree, names};

/// The word at a place.
fn word(text: &str, place: Place) -> String {
    let line = text.lines().nth(place.line as usize - 1).unwrap();
    let rest = line.chars().skip(place.column as usize - 1);
    rest.take_while(|character| character.is_alphanumeric() || "_*".contains(*character))
        .collect()
}

#[test]
fn every_place_of_a_fixture_has_its_symbol() {
    for fixture in FIXTURES {
        let tree = Tree::new();
        fixture.copy_to(&tree.workspace());
        let read = |file: &str| fs::read_to_string(tree.workspace().join(file)).unwrap();
        let symbol = word(&read(fixture.asked.file), fixture.asked);
        assert!(symbol.len() > 3, "{}: {symbol:?}", fixture.name);
        for place in fixture.references {
            assert_eq!(word(&read(place.file), *place), symbol, "{place:?}");
        }
        if !symbol.starts_with('*') {
            assert_eq!(word(&read(fixture.definition.file), fixture.definition), symbol);
        }
        for mistake in fixture.mistakes {
            let changed = mistake.make(&read(mistake.file));
            assert!(changed.lines().count() >= mistake.line as usize);
            let (Says::Code(text) | Says::Message(text)) = mistake.says;
            assert!(!text.is_empty());
        }
    }
}

#[test]
fn the_registry_finds_every_server_of_a_fixture_with_no_configuration() {
    for fixture in FIXTURES {
        let servers = fixture
            .servers
            .iter()
            .chain(fixture.mistakes.iter().flat_map(|mistake| mistake.servers));
        for server in servers {
            let tree = Tree::new();
            fixture.copy_to(&tree.workspace());
            let registry = tree.registry(crate::servers_tree::nothing);
            let known = registry.workspace(&tree.workspace()).unwrap();
            let definition = known
                .definitions()
                .iter()
                .find(|known| *known.name == **server)
                .unwrap();
            tree.programs(&[&format!("bin/{}", definition.commands[0].program)]);
            let selection = tree.select(fixture.asked.file);
            let (primary, supplements) = names(&selection);
            let found: Vec<String> = primary.into_iter().chain(supplements).collect();
            assert_eq!(found, [*server], "{}", fixture.name);
            let mut chosen = selection.primary.iter().chain(&selection.supplements);
            assert!(
                chosen.all(|chosen| *chosen.root == *tree.workspace()),
                "{selection:?}"
            );
        }
    }
}
