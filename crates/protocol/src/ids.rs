//! Ids: a ULID with a prefix that says what it names, one type for each kind of thing.
//!
//! They sort by the time at which they were made, can be told apart in a log, and cannot be mixed up in code.

use std::{
    borrow::Cow,
    fmt,
    str::FromStr,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use ulid::Ulid;
use utoipa::openapi::{Object, RefOr, Schema, schema::Type};
use utoipa::{PartialSchema, ToSchema};

/// A text that is not an id of the kind that was asked for.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is not an id of the form `{prefix}_` followed by 26 letters and digits")]
pub struct IdError {
    /// What was given.
    pub text: String,
    /// The prefix of the kind of id that was asked for.
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Ulid);

        impl $name {
            /// A new id, of now.
            pub fn generate() -> Self {
                Self(ulid_at(SystemTime::now()))
            }

            /// A new id that sorts after another one, even if the clock was set back since that was made.
            pub fn generate_after(other: Self) -> Self {
                let new = ulid_at(SystemTime::now());
                Self(if new > other.0 { new } else { ulid_after(other.0) })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, concat!($prefix, "_{}"), self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, formatter)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                parse(text, $prefix).map(Self)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = Cow::<str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        // On the wire an id is a plain text.
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                Object::with_type(Type::String).into()
            }
        }

        impl ToSchema for $name {}
    };
}

id!(
    /// One life of the daemon, from its start to its end.
    BootId, "boot"
);
id!(
    /// One home of daemons, over all their lives.
    HomeId, "home"
);
id!(
    /// One job, from its submission to its end.
    JobId, "job"
);
id!(
    /// Names a plan: one isolated piece of work on a workspace.
    PlanId, "plan"
);
id!(
    /// Names a changeset: the changes of one actor inside a plan.
    ChangesetId, "changeset"
);
id!(
    /// Names content of a user that an apply or undo had to keep beside the workspace.
    RescuedId, "rescued"
);
id!(
    /// Names a workspace: a directory that agents work on.
    WorkspaceId, "workspace"
);
id!(
    /// Names a session: a conversation with an agent.
    SessionId, "session"
);
id!(
    /// Names a turn: one prompt and everything that followed.
    TurnId, "turn"
);
id!(
    /// Names a question to the user: whether an agent may do something.
    PermissionId, "permission"
);
id!(
    /// One request to the daemon; it stands in the answer and in the log.
    RequestId, "req"
);

fn random() -> u128 {
    let mut bytes = [0; 16];
    let filled = getrandom::fill(&mut bytes);
    assert!(
        filled.is_ok(),
        "the operating system gives no randomness: {filled:?}"
    );
    u128::from_le_bytes(bytes)
}

fn ulid_at(time: SystemTime) -> Ulid {
    // A clock before 1970 is wrong anyway; the id is then only as good as its randomness.
    let since_epoch = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    Ulid::from_parts(millis, random())
}

/// A millisecond later.
fn ulid_after(other: Ulid) -> Ulid {
    let later = other.timestamp_ms().saturating_add(1);
    Ulid::from_parts(later, random())
}

fn parse(text: &str, prefix: &'static str) -> Result<Ulid, IdError> {
    let bad = || IdError {
        text: text.to_owned(),
        prefix,
    };
    let body = text
        .strip_prefix(prefix)
        .and_then(|rest| rest.strip_prefix('_'))
        .ok_or_else(bad)?;
    let ulid = Ulid::from_string(body).map_err(|_| bad())?;
    // One id has one spelling, so that ids can be compared as text.
    if ulid.to_string() == body {
        Ok(ulid)
    } else {
        Err(bad())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{BootId, RequestId};

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
}
