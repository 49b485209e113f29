//! Ids: a ULID with a prefix that says what it names, one type for each kind of thing.
//!
//! They sort by the time at which they were made, can be told apart in a log, and cannot be mixed up in code.

use std::{
    fmt,
    str::FromStr,
    time::{Duration, SystemTime},
};

use ulid::Ulid;

use crate::random::random_bytes;

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

fn ulid_at(time: SystemTime) -> Ulid {
    // A clock before 1970 is wrong anyway; the id is then only as good as its randomness.
    let since_epoch = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or(Duration::ZERO);
    let millis = u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX);
    Ulid::from_parts(millis, u128::from_le_bytes(random_bytes()))
}

/// A millisecond later.
fn ulid_after(other: Ulid) -> Ulid {
    let later = other.timestamp_ms().saturating_add(1);
    Ulid::from_parts(later, u128::from_le_bytes(random_bytes()))
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
