//! Inserts or removes one table of a TOML text, and writes everything else back unchanged.

use serde_json::{Map, Value};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, TableLike};

use super::entry::{Entry, Field};

pub(super) fn parse(text: &str) -> Result<Value, String> {
    Ok(table_value(read(text)?.as_table()))
}

pub(super) fn insert(text: &str, table: &str, name: &str, entry: &Entry) -> Result<String, String> {
    let mut document = read(text)?;
    let tables = document.entry(table).or_insert_with(|| {
        let mut implicit = Table::new();
        implicit.set_implicit(true);
        Item::Table(implicit)
    });
    let is_inline = tables.is_inline_table();
    let tables = tables
        .as_table_like_mut()
        .ok_or("expected a table but found something else")?;
    let mut made = Table::new();
    for (field, value) in &entry.0 {
        made.insert(field, item(value));
    }
    let made = if is_inline {
        Item::Value(made.into_inline_table().into())
    } else {
        Item::Table(made)
    };
    tables.insert(name, made);
    Ok(document.to_string())
}

pub(super) fn remove(text: &str, table: &str, name: &str) -> Result<String, String> {
    let mut document = read(text)?;
    if let Some(tables) = document.get_mut(table).and_then(Item::as_table_like_mut) {
        tables.remove(name);
    }
    Ok(document.to_string())
}

/// A table as it would look in an empty file.
pub(super) fn piece(table: &str, name: &str, entry: &Entry) -> String {
    insert("", table, name, entry).unwrap_or_default()
}

fn read(text: &str) -> Result<DocumentMut, String> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let place = error.span().map_or(0, |span| span.start);
        let line = text.get(..place).unwrap_or(text).matches('\n').count() + 1;
        format!("line {line}: {}", error.message())
    })
}

fn item(field: &Field) -> Item {
    match field {
        Field::Text(text) => toml_edit::value(text.as_str()),
        Field::Flag(flag) => toml_edit::value(*flag),
        Field::Number(number) => toml_edit::value(i64::from(*number)),
        Field::List(items) => toml_edit::value(items.iter().map(String::as_str).collect::<Array>()),
        Field::Pairs(pairs) => {
            let pairs = pairs.iter().map(|(name, text)| (name.as_str(), text.as_str()));
            toml_edit::value(pairs.collect::<InlineTable>())
        }
    }
}

fn table_value(table: &dyn TableLike) -> Value {
    let member = |(name, item): (&str, &Item)| (name.to_owned(), item_value(item));
    Value::Object(table.iter().map(member).collect::<Map<String, Value>>())
}

fn item_value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(value) => plain(value),
        Item::Table(table) => table_value(table),
        Item::ArrayOfTables(tables) => Value::Array(tables.iter().map(|table| table_value(table)).collect()),
    }
}

fn plain(value: &toml_edit::Value) -> Value {
    match value {
        toml_edit::Value::String(text) => Value::from(text.value().as_str()),
        toml_edit::Value::Integer(number) => Value::from(*number.value()),
        toml_edit::Value::Float(number) => Value::from(*number.value()),
        toml_edit::Value::Boolean(flag) => Value::from(*flag.value()),
        toml_edit::Value::Datetime(time) => Value::from(time.value().to_string()),
        toml_edit::Value::Array(items) => Value::Array(items.iter().map(plain).collect()),
        toml_edit::Value::InlineTable(table) => table_value(table),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_put_in_and_taken_out_and_nothing_else_moves() {
        let entry = Entry(vec![
            ("command", Field::Text("c".to_owned())),
            ("args", Field::List(vec!["mcp".to_owned()])),
            ("env", Field::Pairs(vec![("A".to_owned(), "b".to_owned())])),
        ]);
        let added = "[t.n]\ncommand = \"c\"\nargs = [\"mcp\"]\nenv = { A = \"b\" }\n";
        for before in [
            "",
            "# mine\nmodel = 'x'   # yes\n\n[other]\nlist = [ 1,2 ,\n 3 ]\n",
            "[t.o] # theirs\ncommand = 'z'\n\n[profiles.a]\nx = 1\n",
        ] {
            let with = insert(before, "t", "n", &entry).unwrap();
            assert_eq!(parse(&with).unwrap()["t"]["n"], entry.value(), "{with}");
            for line in added.lines().chain(before.lines()) {
                assert!(with.lines().any(|found| found == line), "{line} is not in {with}");
            }
            assert_eq!(remove(&with, "t", "n").unwrap(), before, "{with}");
        }
        assert_eq!(piece("t", "n", &entry), added);
        let inline = insert("t = { o = { a = 1 } }\n", "t", "n", &entry).unwrap();
        assert_eq!(parse(&inline).unwrap()["t"]["n"], entry.value(), "{inline}");
        assert_eq!(parse(&inline).unwrap()["t"]["o"]["a"], 1);
        assert!(insert("t = 1", "t", "n", &entry).is_err());
        assert!(
            insert("\nt = ", "t", "n", &entry)
                .unwrap_err()
                .starts_with("line 2"),
            "the line is said"
        );
    }
}
