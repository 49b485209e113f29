//! The list of all tools.

use super::change::{Delete, Move, Write};
use super::context::Context;
use super::edit::Edit;
use super::language::Language;
use super::list::List;
use super::plan_diff::PlanDiff;
use super::read::Read;
use super::search::Search;
use super::shell::Shell;
use super::tool::{Kind, Tool};
use crate::ports::Ports;

/// In the order in which they are presented to a model.
const KINDS: [Kind; 11] = [
    Kind::of::<Read>(),
    Kind::of::<List>(),
    Kind::of::<Search>(),
    Kind::of::<Context>(),
    Kind::of::<Edit>(),
    Kind::of::<Write>(),
    Kind::of::<Move>(),
    Kind::of::<Delete>(),
    Kind::of::<Shell>(),
    Kind::of::<Language>(),
    Kind::of::<PlanDiff>(),
];

/// The tools available with these ports: `language` needs language servers that answer questions, and `context` needs a
/// finder.
pub(super) fn kinds(ports: &Ports) -> Vec<Kind> {
    let can_ask = !ports.languages.verbs().is_empty();
    let can_find = ports.context.can_find();
    KINDS
        .into_iter()
        .filter(|kind| can_ask || kind.name != Language::NAME)
        .filter(|kind| can_find || kind.name != Context::NAME)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use async_trait::async_trait;
    use bytes::Bytes;
    use serde::de::value::Error;
    use serde::de::{Deserialize, Deserializer, Visitor};
    use serde_json::{Value, json};
    use tokio::sync::mpsc;

    use super::super::parameters::{Need, Parameter, Takes};
    use super::*;
    use crate::ports::{
        ContextFinder, ContextFound, ContextOrder, FinderError, LanguageError, LanguageOrder, Languages,
        Shell as ShellPort, ShellEnd, ShellError, ShellOrder,
    };

    /// Collects the field names of a struct instead of deserializing it.
    struct Fields<'a>(&'a mut Option<BTreeSet<&'static str>>);

    impl<'de> Deserializer<'de> for Fields<'_> {
        type Error = Error;

        fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
            Err(serde::de::Error::custom("not a struct"))
        }

        fn deserialize_struct<V: Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            _: V,
        ) -> Result<V::Value, Error> {
            *self.0 = Some(fields.iter().copied().collect());
            Err(serde::de::Error::custom("only asked"))
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    fn fields<T: for<'de> Deserialize<'de>>() -> BTreeSet<&'static str> {
        let mut fields = None;
        assert!(T::deserialize(Fields(&mut fields)).is_err());
        fields.unwrap()
    }

    #[derive(Debug)]
    struct NoPorts;

    #[async_trait]
    impl ShellPort for NoPorts {
        async fn run(&self, _: ShellOrder, _: mpsc::Sender<Bytes>) -> Result<ShellEnd, ShellError> {
            unreachable!("nothing is called")
        }
    }

    #[async_trait]
    impl Languages for NoPorts {
        fn verbs(&self) -> Vec<&'static str> {
            vec!["hover", "symbols"]
        }

        async fn ask(&self, _: LanguageOrder) -> Result<String, LanguageError> {
            unreachable!("nothing is called")
        }
    }

    #[async_trait]
    impl ContextFinder for NoPorts {
        async fn find(&self, _: ContextOrder) -> Result<ContextFound, FinderError> {
            unreachable!("nothing is called")
        }
    }

    fn example(takes: &Takes) -> Value {
        match takes {
            Takes::Text => json!("text"),
            Takes::Texts => json!(["text"]),
            Takes::Number { most, .. } | Takes::Capped { most, .. } => json!(most),
            Takes::YesOrNo => json!(true),
            Takes::OneOf(words) => json!(words[0]),
        }
    }

    /// The table and the struct agree on names, types, and what may be missing.
    fn agree<T: Tool>(ports: &Ports) {
        let table = T::parameters(ports);
        let names: BTreeSet<&str> = table.iter().map(|parameter| parameter.name).collect();
        assert_eq!(names, fields::<T::Arguments>(), "{}", T::NAME);
        assert_eq!(names.len(), table.len(), "{}", T::NAME);
        let object = |keep: &dyn Fn(&Parameter) -> bool| {
            let kept = table.iter().filter(|parameter| keep(parameter));
            let pairs = kept.map(|parameter| (parameter.name.to_owned(), example(&parameter.takes)));
            Value::Object(pairs.collect())
        };
        let takes = |value: Value| serde_json::from_value::<T::Arguments>(value).is_ok();
        assert!(takes(object(&|_| true)), "{}", T::NAME);
        for missing in &table {
            let taken = takes(object(&|parameter| parameter.name != missing.name));
            assert_eq!(
                taken,
                missing.need == Need::Optional,
                "{} {}",
                T::NAME,
                missing.name
            );
        }
    }

    #[test]
    fn tables_and_structs_agree() {
        let ports = Ports {
            shell: Arc::new(NoPorts),
            finisher: Arc::new(crate::ports::NoPlanFinisher),
            languages: Arc::new(NoPorts),
            context: Arc::new(NoPorts),
        };
        agree::<Read>(&ports);
        agree::<List>(&ports);
        agree::<Search>(&ports);
        agree::<Context>(&ports);
        agree::<Edit>(&ports);
        agree::<Write>(&ports);
        agree::<Move>(&ports);
        agree::<Delete>(&ports);
        agree::<Shell>(&ports);
        agree::<Language>(&ports);
        agree::<PlanDiff>(&ports);
        let names: BTreeSet<&str> = kinds(&ports).iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
    }
}
