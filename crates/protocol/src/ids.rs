//! Ids: a ULID with a prefix for the kind of object, one type per kind.
//!
//! Ids sort by creation time, are easy to tell apart in a log, and can't be mixed up in code.

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

/// The text isn't an id of the expected kind.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{text}` is not an id of the form `{prefix}_` followed by 26 letters and digits")]
pub struct IdError {
    /// The text that was given.
    pub text: String,
    /// The prefix of the expected kind of id.
    pub prefix: &'static str,
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
        pub struct $name(Ulid);

        impl $name {
            /// Creates an id with the current time.
            pub fn generate() -> Self {
                Self(ulid_at(SystemTime::now()))
            }

            /// Creates an id that sorts after `other`, even if the clock was set back in between.
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

        // On the wire an id is a plain string.
        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                Object::with_type(Type::String).into()
            }
        }

        impl ToSchema for $name {}
    };
}

id!(
    /// The id of a run of the daemon, from start to end.
    BootId, "boot"
);
id!(
    /// The id of a home, which stays the same across all runs of its daemons.
    HomeId, "home"
);
id!(
    /// The id of a job, from submission to end.
    JobId, "job"
);
id!(
    /// The id of a plan: one isolated piece of work on a workspace.
    PlanId, "plan"
);
id!(
    /// The id of a changeset: the changes of one actor inside a plan.
    ChangesetId, "changeset"
);
id!(
    /// The id of user content that an apply or undo had to save outside the workspace.
    RescuedId, "rescued"
);
id!(
    /// The id of a workspace: a directory that agents work on.
    WorkspaceId, "workspace"
);
id!(
    /// The id of a session: a conversation with an agent.
    SessionId, "session"
);
id!(
    /// The id of a turn: one prompt and everything that followed.
    TurnId, "turn"
);
id!(
    /// The id of a permission request: the user is asked whether an agent may do something.
    PermissionId, "permission"
);
id!(
    /// The id of a request to the daemon. It appears in the response and in the log.
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

/// Creates a ULID one millisecond later than `other`.
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
