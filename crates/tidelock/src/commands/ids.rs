//! Which of several things is meant: a whole id says it, and so does a part of one that no other has.

use crate::error::{Exit, Failure};

/// How long an id is behind what all of its kind begin with.
const BODY_LENGTH: usize = 26;
/// How many of several that are meant are named.
const NAMED: usize = 5;

/// A kind of thing that has ids.
#[derive(Debug)]
pub(super) struct Kind {
    /// What its ids begin with.
    prefix: &'static str,
    word: &'static str,
    plural: &'static str,
    /// The code if there is none.
    not_found: &'static str,
    /// The code if there are several.
    ambiguous: &'static str,
    /// Where to find it.
    advice: &'static str,
    /// How much of an id must be given: less is more likely a slip.
    least: usize,
}

pub(super) static JOB: Kind = Kind {
    prefix: "job_",
    word: "job",
    plural: "jobs",
    not_found: "job_not_found",
    ambiguous: "job_ambiguous",
    advice: "`tidelock job list` shows the jobs; jobs that ended long ago are deleted",
    least: 1,
};
pub(super) static PLAN: Kind = Kind {
    prefix: "plan_",
    word: "plan",
    plural: "plans",
    not_found: "plan_not_found",
    ambiguous: "plan_ambiguous",
    advice: "`tidelock plan list --all` shows the plans",
    least: 4,
};
pub(super) static CHANGESET: Kind = Kind {
    prefix: "changeset_",
    word: "changeset",
    plural: "changesets",
    not_found: "changeset_not_found",
    ambiguous: "changeset_ambiguous",
    advice: "`tidelock plan changesets` shows the changesets of a plan",
    least: 4,
};
pub(super) static RESCUED: Kind = Kind {
    prefix: "rescued_",
    word: "piece of rescued content",
    plural: "pieces of rescued content",
    not_found: "rescued_not_found",
    ambiguous: "rescued_ambiguous",
    advice: "`tidelock workspace rescued` shows what is kept",
    least: 4,
};
pub(super) static SESSION: Kind = Kind {
    prefix: "session_",
    word: "session",
    plural: "sessions",
    not_found: "session_not_found",
    ambiguous: "session_ambiguous",
    advice: "`tidelock session list --all` shows the sessions",
    least: 4,
};
pub(super) static TURN: Kind = Kind {
    prefix: "turn_",
    word: "turn",
    plural: "turns",
    not_found: "turn_not_found",
    ambiguous: "turn_ambiguous",
    advice: "`tidelock session show` shows the turns of a session",
    least: 4,
};
pub(super) static PERMISSION: Kind = Kind {
    prefix: "permission_",
    word: "open question",
    plural: "open questions",
    not_found: "permission_not_found",
    ambiguous: "permission_ambiguous",
    advice: "`tidelock session show` shows the open questions",
    least: 4,
};

impl Kind {
    /// Whether a text is an id. If it is, nothing has to be looked for.
    pub(super) fn is_whole(&self, wanted: &str) -> bool {
        wanted.starts_with(self.prefix) && wanted.len() == self.prefix.len() + BODY_LENGTH
    }

    /// A text as a part of an id.
    pub(super) fn part<'a>(&'static self, wanted: &'a str) -> Result<Part<'a>, Failure> {
        let body = wanted.strip_prefix(self.prefix).unwrap_or(wanted);
        let least = self.least;
        if body.chars().count() >= least {
            return Ok(Part { kind: self, wanted });
        }
        let shown = wanted.escape_debug();
        let message = format!("`{shown}` is too short; give at least {least} characters of an id");
        Err(Failure::new(Exit::Usage, "usage", message)
            .advise("the last characters of an id differ the most"))
    }
}

/// A part of an id.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part<'a> {
    kind: &'static Kind,
    wanted: &'a str,
}

impl Part<'_> {
    /// Whether it is the beginning or the end of an id, with or without what all of them begin with.
    pub(super) fn is_of(self, id: &str) -> bool {
        let wanted = self.wanted.to_ascii_uppercase();
        let id = id.to_ascii_uppercase();
        let body = id.split_once('_').map_or(id.as_str(), |(_, body)| body);
        id.starts_with(&wanted) || body.starts_with(&wanted) || body.ends_with(&wanted)
    }

    /// The one that it was found in.
    pub(super) fn only(self, mut found: Vec<String>) -> Result<String, Failure> {
        let shown = self.wanted.escape_debug();
        let Kind {
            word,
            plural,
            not_found,
            ambiguous,
            advice,
            ..
        } = *self.kind;
        match found.len() {
            1 => Ok(found.remove(0)),
            0 => {
                let message = format!("no {word} has an id that begins or ends with `{shown}`");
                Err(Failure::new(Exit::Refused, not_found, message).advise(advice))
            }
            count => {
                found.truncate(NAMED);
                let more = if count > NAMED { ", ..." } else { "" };
                let named = found.join(", ");
                let message =
                    format!("{count} {plural} have an id that begins or ends with `{shown}`: {named}{more}");
                Err(Failure::new(Exit::Refused, ambiguous, message)
                    .advise("write more of the id; the ends differ the most"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_an_id_is_enough_if_it_is_clear_and_long_enough() {
        let bodies = [
            "01JCZ8T6V8Y3N5K2M4Q7R9S1TX",
            "01JCZ8T6V8Y3N5K2M4Q7R9ATTX",
            "01JD00000000000000000S1TYZ",
        ];
        for (kind, wanted, expected) in [
            (&PLAN, "S1TX", Ok(0)),
            (&PLAN, "s1tx", Ok(0)),
            (&PLAN, "01JD", Ok(2)),
            (&PLAN, "plan_01JD", Ok(2)),
            (&PLAN, "9aTtX", Ok(1)),
            (&PLAN, "01JC", Err("plan_ambiguous")),
            (&PLAN, "8T6V", Err("plan_not_found")),
            (&PLAN, "nothing", Err("plan_not_found")),
            (&PLAN, "job_01JD", Err("plan_not_found")),
            (&PLAN, "TTX", Err("usage")),
            (&PLAN, "plan_01J", Err("usage")),
            (&PLAN, "", Err("usage")),
            (&JOB, "TYZ", Ok(2)),
            (&JOB, "TX", Err("job_ambiguous")),
            (&JOB, "job_", Err("usage")),
            (&JOB, "b_01JD", Err("job_not_found")),
            (&JOB, "", Err("usage")),
            (&SESSION, "session_01JD", Ok(2)),
            (&SESSION, "session_01J", Err("usage")),
        ] {
            let ids = bodies.map(|body| format!("{}{body}", kind.prefix));
            assert!(
                ids.iter().all(|id| kind.is_whole(id)) && !kind.is_whole(wanted),
                "{wanted}"
            );
            let found = kind.part(wanted).and_then(|part| {
                let found = ids.iter().filter(|id| part.is_of(id));
                part.only(found.cloned().collect())
            });
            let found = found.as_deref().map_err(|failure| failure.code.as_str());
            assert_eq!(
                found,
                expected.map(|place: usize| ids[place].as_str()),
                "{wanted}"
            );
        }
    }
}
