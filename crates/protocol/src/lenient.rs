//! Unknown fields, in types that requests share with stored data.
//!
//! A request rejects unknown fields, because they are typos. Reading an event or a head of the log ignores
//! them, because a newer daemon may have written them. So a shared type has `deny_unknown_fields`, and its
//! fields in events and heads have `deserialize_with = "lenient"`.

use serde::de::{DeserializeOwned, Error as _, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};
use serde_json::{Error, Value};

/// Deserializes a struct and ignores unknown fields.
pub fn lenient<'de, T: DeserializeOwned, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    T::deserialize(KnownMembers(value)).map_err(D::Error::custom)
}

/// Deserializes a list of structs and ignores unknown fields.
pub fn lenient_list<'de, T: DeserializeOwned, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    let values = Vec::<Value>::deserialize(deserializer)?;
    let read = values
        .into_iter()
        .map(|value| T::deserialize(KnownMembers(value)));
    read.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// A value that hides the fields a struct doesn't have.
struct KnownMembers(Value);

impl<'de> Deserializer<'de> for KnownMembers {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        mut self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if let Value::Object(members) = &mut self.0 {
            members.retain(|member, _| fields.contains(&member.as_str()));
        }
        self.0.deserialize_struct(name, fields, visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.0.deserialize_any(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit unit_struct newtype_struct
        seq tuple tuple_struct map enum identifier ignored_any
    }
}
