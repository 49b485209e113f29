//! Resolves what the user typed: a whole id, a unique part of one, or the name of the newest.
//!
//! The daemon resolves what was typed. A whole id needs no lookup: the operation itself reports whether it exists.

use protocol::{IdMatches, is_part_of_id};

use crate::client::{Client, path_segment};
use crate::error::{Exit, Failure};
use crate::paths::current_directory;

const BODY_LENGTH: usize = 26;
const NAMED: usize = 5;
/// The name of the newest plan or session of the current directory.
const NEWEST: &str = "@";

#[derive(Debug)]
pub(super) struct Kind {
    /// Its name for the daemon; its ids start with it.
    name: &'static str,
    word: &'static str,
    plural: &'static str,
    advice: &'static str,
    /// The minimum length of a partial id: anything shorter is more likely a typo.
    least: usize,
    newest: Option<Newest>,
}

#[derive(Debug)]
struct Newest {
    name: &'static str,
    /// The message if there is none; the directory follows if the name depends on one.
    none: &'static str,
    advice: &'static str,
}

pub(super) static JOB: Kind = Kind {
    name: "job",
    word: "job",
    plural: "jobs",
    advice: "`tidelock job list` shows the jobs; jobs that ended long ago are deleted",
    least: 1,
    newest: Some(Newest {
        name: "last",
        none: "there are no jobs yet",
        advice: "submit one with `tidelock job run -- COMMAND`",
    }),
};
pub(super) static PLAN: Kind = Kind {
    name: "plan",
    word: "plan",
    plural: "plans",
    advice: "`tidelock plan list --all` shows the plans",
    least: 4,
    newest: Some(Newest {
        name: NEWEST,
        none: "there is no plan for the workspace of",
        advice: "open one with `tidelock plan new` or `tidelock exec -- COMMAND`",
    }),
};
pub(super) static CHANGESET: Kind = Kind {
    name: "changeset",
    word: "changeset",
    plural: "changesets",
    advice: "`tidelock plan changesets` shows the changesets of a plan",
    least: 4,
    newest: None,
};
pub(super) static RESCUED: Kind = Kind {
    name: "rescued",
    word: "piece of rescued content",
    plural: "pieces of rescued content",
    advice: "`tidelock workspace rescued` shows what is kept",
    least: 4,
    newest: None,
};
pub(super) static SESSION: Kind = Kind {
    name: "session",
    word: "session",
    plural: "sessions",
    advice: "`tidelock session list --all` shows the sessions",
    least: 4,
    newest: Some(Newest {
        name: NEWEST,
        none: "there is no session for",
        advice: "open one with `tidelock run PROMPT`",
    }),
};
pub(super) static TURN: Kind = Kind {
    name: "turn",
    word: "turn",
    plural: "turns",
    advice: "`tidelock session show` shows the turns of a session",
    least: 4,
    newest: None,
};
pub(super) static PERMISSION: Kind = Kind {
    name: "permission",
    word: "open question",
    plural: "open questions",
    advice: "`tidelock session show` shows the open questions",
    least: 4,
    newest: None,
};

impl Kind {
    pub(super) fn find(&self, wanted: &str, client: &Client) -> Result<String, Failure> {
        match &self.newest {
            Some(newest) if newest.name == wanted => self.newest(newest, client),
            _ => self.resolve(wanted, "", client),
        }
    }

    /// Like `find`, for a thing that belongs to another one: a turn of a session, a changeset of a plan.
    pub(super) fn find_of(&self, wanted: &str, owner: &str, client: &Client) -> Result<String, Failure> {
        self.resolve(wanted, &format!("&of={}", path_segment(owner)), client)
    }

    fn resolve(&self, wanted: &str, query: &str, client: &Client) -> Result<String, Failure> {
        if self.is_whole(wanted) {
            return Ok(wanted.to_owned());
        }
        self.check_length(wanted)?;
        self.only(wanted, self.ask(wanted, query, client)?)
    }

    fn newest(&self, newest: &Newest, client: &Client) -> Result<String, Failure> {
        let (found, none) = match newest.name {
            NEWEST => {
                let (found, here) = self.newest_here("", client)?;
                (found, format!("{} {here}", newest.none))
            }
            name => {
                let found = self.ask(name, "", client)?.ids.into_iter().next();
                (found, newest.none.to_owned())
            }
        };
        found.ok_or_else(|| Failure::new(Exit::Refused, &self.code("not_found"), none).advise(newest.advice))
    }

    /// The newest thing of the current directory, and that directory in display form.
    pub(super) fn newest_here(
        &self,
        query: &str,
        client: &Client,
    ) -> Result<(Option<String>, String), Failure> {
        let here = current_directory()?.display().to_string();
        let query = format!("&directory={}{query}", path_segment(&here));
        let found = self.ask(NEWEST, &query, client)?;
        Ok((found.ids.into_iter().next(), here))
    }

    fn ask(&self, text: &str, query: &str, client: &Client) -> Result<IdMatches, Failure> {
        client.fetch(&format!(
            "/v1/ids/{}?kind={}{query}",
            path_segment(text),
            self.name
        ))
    }

    pub(super) fn pick(&self, wanted: &str, ids: Vec<String>) -> Result<String, Failure> {
        self.check_length(wanted)?;
        let ids: Vec<String> = ids.into_iter().filter(|id| is_part_of_id(wanted, id)).collect();
        let total = ids.len() as u64;
        self.only(wanted, IdMatches { ids, total })
    }

    fn code(&self, what: &str) -> String {
        format!("{}_{what}", self.name)
    }

    /// Whether a text is a whole id and needs no lookup.
    pub(super) fn is_whole(&self, wanted: &str) -> bool {
        self.body_of(wanted).is_some_and(|body| body.len() == BODY_LENGTH)
    }

    fn body_of<'a>(&self, wanted: &'a str) -> Option<&'a str> {
        wanted.strip_prefix(self.name)?.strip_prefix('_')
    }

    /// Rejects what is too short for a partial id.
    pub(super) fn check_length(&self, wanted: &str) -> Result<(), Failure> {
        let least = self.least;
        if self.body_of(wanted).unwrap_or(wanted).chars().count() >= least {
            return Ok(());
        }
        let shown = wanted.escape_debug();
        let message = format!("`{shown}` is too short; give at least {least} characters of an id");
        Err(Failure::new(Exit::Usage, "usage", message)
            .advise("the last characters of an id differ the most"))
    }

    fn only(&self, wanted: &str, mut found: IdMatches) -> Result<String, Failure> {
        let shown = wanted.escape_debug();
        let Kind {
            word, plural, advice, ..
        } = self;
        match found.total {
            1 if !found.ids.is_empty() => Ok(found.ids.remove(0)),
            0 => {
                let message = format!("no {word} has an id that begins or ends with `{shown}`");
                Err(Failure::new(Exit::Refused, &self.code("not_found"), message).advise(*advice))
            }
            total => {
                found.ids.truncate(NAMED);
                let more = if total > found.ids.len() as u64 {
                    ", ..."
                } else {
                    ""
                };
                let named = found.ids.join(", ");
                let message =
                    format!("{total} {plural} have an id that begins or ends with `{shown}`: {named}{more}");
                Err(Failure::new(Exit::Refused, &self.code("ambiguous"), message)
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
            let ids = bodies.map(|body| format!("{}_{body}", kind.name));
            assert!(
                ids.iter().all(|id| kind.is_whole(id)) && !kind.is_whole(wanted),
                "{wanted}"
            );
            let found = kind.pick(wanted, ids.to_vec());
            let found = found.as_deref().map_err(|failure| failure.code.as_str());
            assert_eq!(
                found,
                expected.map(|place: usize| ids[place].as_str()),
                "{wanted}"
            );
        }
    }
}
