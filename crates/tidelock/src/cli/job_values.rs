//! Values of `tidelock job` that have a shape of their own.

use crate::units::parse_bytes;

/// With which others a job shares a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lane {
    pub(crate) name: String,
    pub(crate) limit: u16,
}

/// Reads `NAME` or `NAME:LIMIT`. A name may have colons in it: the limit is what stands behind the last one, if that is
/// a number.
///
/// # Errors
/// A sentence for the user when there is no name, or the number is not a limit.
pub(super) fn parse_lane(text: &str) -> Result<Lane, String> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (name, limit) = match text.rsplit_once(':') {
        Some((name, limit)) if is_number(limit) => {
            let limit = limit.parse().ok().filter(|limit| *limit > 0);
            (name, limit.ok_or("the limit of a lane lies between 1 and 65535")?)
        }
        _ => (text, 1),
    };
    if name.is_empty() {
        return Err("the name of the lane is missing; write NAME or NAME:LIMIT".to_owned());
    }
    Ok(Lane {
        name: name.to_owned(),
        limit,
    })
}

/// A variable of the environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Variable {
    /// It shall have this value.
    Set { name: String, value: String },
    /// It shall have the value that it has here.
    Kept { name: String },
}

/// Reads `NAME=VALUE` or `NAME`.
///
/// # Errors
/// A sentence for the user when there is no name.
pub(super) fn parse_variable(text: &str) -> Result<Variable, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value)),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("the name of the variable is missing; write NAME=VALUE or NAME".to_owned());
    }
    let name = name.to_owned();
    Ok(match value {
        Some(value) => Variable::Set {
            name,
            value: value.to_owned(),
        },
        None => Variable::Kept { name },
    })
}

/// What a process may use at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobLimit {
    AddressSpace(u64),
    FileSize(u64),
    OpenFiles(u64),
    Processes(u64),
    CpuSeconds(u64),
}

/// Reads `NAME=VALUE`.
///
/// # Errors
/// A sentence for the user when there is no limit of that name, or the value is none.
pub(super) fn parse_limit(text: &str) -> Result<JobLimit, String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("the value is missing; write NAME=VALUE, such as open-files=256".to_owned());
    };
    let count = || {
        let parsed = value.parse::<u64>();
        parsed.map_err(|_| format!("`{value}` is not a whole number"))
    };
    match name {
        "address-space" => parse_bytes(value).map(JobLimit::AddressSpace),
        "file-size" => parse_bytes(value).map(JobLimit::FileSize),
        "open-files" => count().map(JobLimit::OpenFiles),
        "processes" => count().map(JobLimit::Processes),
        "cpu-seconds" => count().map(JobLimit::CpuSeconds),
        _ => Err(format!(
            "there is no limit `{name}`; there are address-space, file-size, open-files, processes and cpu-seconds"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_lane_is_the_number_at_its_end() {
        let lane = |name: &str, limit| {
            Ok(Lane {
                name: name.to_owned(),
                limit,
            })
        };
        for (text, expected) in [
            ("cargo", lane("cargo", 1)),
            ("cargo:3", lane("cargo", 3)),
            ("cargo:/home/me", lane("cargo:/home/me", 1)),
            ("cargo:/home/me:2", lane("cargo:/home/me", 2)),
            ("a:1:2", lane("a:1", 2)),
            ("a:b2", lane("a:b2", 1)),
            ("a:", lane("a:", 1)),
            ("a:+1", lane("a:+1", 1)),
            ("7", lane("7", 1)),
            ("a:65535", lane("a", 65_535)),
            (
                "a:0",
                Err("the limit of a lane lies between 1 and 65535".to_owned()),
            ),
            (
                "a:65536",
                Err("the limit of a lane lies between 1 and 65535".to_owned()),
            ),
            (
                "",
                Err("the name of the lane is missing; write NAME or NAME:LIMIT".to_owned()),
            ),
            (
                ":3",
                Err("the name of the lane is missing; write NAME or NAME:LIMIT".to_owned()),
            ),
        ] {
            assert_eq!(parse_lane(text), expected, "{text}");
        }
    }

    #[test]
    fn a_variable_has_a_value_or_is_kept() {
        let set = |name: &str, value: &str| {
            Some(Variable::Set {
                name: name.to_owned(),
                value: value.to_owned(),
            })
        };
        let kept = |name: &str| {
            Some(Variable::Kept {
                name: name.to_owned(),
            })
        };
        for (text, expected) in [
            ("A=b", set("A", "b")),
            ("A=", set("A", "")),
            ("A=b=c", set("A", "b=c")),
            ("A", kept("A")),
            ("=b", None),
            ("", None),
        ] {
            assert_eq!(parse_variable(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn limits_have_a_name_and_a_value() {
        for (text, expected) in [
            ("address-space=2G", Ok(JobLimit::AddressSpace(2 << 30))),
            ("file-size=64", Ok(JobLimit::FileSize(64))),
            ("open-files=256", Ok(JobLimit::OpenFiles(256))),
            ("processes=9", Ok(JobLimit::Processes(9))),
            ("cpu-seconds=60", Ok(JobLimit::CpuSeconds(60))),
            ("open-files", Err("the value is missing")),
            ("open-files=2K", Err("`2K` is not a whole number")),
            ("address-space=x", Err("`x` is not a size")),
            ("threads=3", Err("there is no limit `threads`")),
        ] {
            match (parse_limit(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(beginning)) => assert!(found.starts_with(beginning), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
