//! The two forms of an address: `postgres://…`, and `host=… user=…`. Both become a list of parameters.
//!
//! The rules are libpq's. Error messages never repeat a value, which may be part of a password.

use percent_encoding::percent_decode_str;

/// The parameters of an address, in order. If a name occurs twice, the last one counts.
pub(super) fn parse(address: &str) -> Result<Vec<(String, String)>, String> {
    let address = address.trim();
    for scheme in ["postgres://", "postgresql://"] {
        if let Some(rest) = address.strip_prefix(scheme) {
            return parse_url(rest);
        }
    }
    if address.contains("://") || !address.contains('=') {
        return Err("it is not of the form postgres://user@host/database".to_owned());
    }
    parse_words(address)
}

fn parse_url(rest: &str) -> Result<Vec<(String, String)>, String> {
    let mut parameters = Vec::new();
    let mut add = |name: &str, text: &str| -> Result<(), String> {
        if !text.is_empty() {
            parameters.push((name.to_owned(), decode(text)?));
        }
        Ok(())
    };
    // Only up to the first `/`, so that a password may contain a `?`.
    let before_path = rest.split('/').next().unwrap_or(rest);
    let rest = match before_path.split_once('@') {
        None => rest,
        Some((account, _)) => {
            let (user, password) = account.split_once(':').unwrap_or((account, ""));
            add("user", user)?;
            add("password", password)?;
            &rest[account.len() + 1..]
        }
    };
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (servers, database) = place.split_once('/').unwrap_or((place, ""));
    let (hosts, ports) = split_servers(servers)?;
    add("host", &hosts)?;
    add("port", &ports)?;
    add("dbname", database)?;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair
            .split_once('=')
            .ok_or("after its `?` there is something that is not of the form name=value")?;
        // The spelling of Java drivers.
        if (name, text) == ("ssl", "true") {
            add("sslmode", "require")?;
        } else {
            add(&decode(name)?, text)?;
        }
    }
    Ok(parameters)
}

/// Hosts and ports, each joined by commas. The ports are empty if no host has one.
fn split_servers(servers: &str) -> Result<(String, String), String> {
    if servers.contains('@') {
        return Err("a `@` in a user or a password has to be written as %40".to_owned());
    }
    let (mut hosts, mut ports) = (Vec::new(), Vec::new());
    for server in servers.split(',') {
        let (host, port) = match server.strip_prefix('[') {
            Some(rest) => {
                let (host, after) = rest.split_once(']').ok_or("a `[` has no `]`")?;
                (host, after.strip_prefix(':').unwrap_or(after))
            }
            None => server.split_once(':').unwrap_or((server, "")),
        };
        hosts.push(host);
        ports.push(port);
    }
    let has_ports = ports.iter().any(|port| !port.is_empty());
    Ok((
        hosts.join(","),
        if has_ports { ports.join(",") } else { String::new() },
    ))
}

fn decode(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if !decoded.contains('\0') => Ok(decoded.into_owned()),
        _ => Err("a part of it, written with %, is not text".to_owned()),
    }
}

/// Parses `name=value` and `name = 'a value'`, with `\` before a quote or a backslash.
fn parse_words(address: &str) -> Result<Vec<(String, String)>, String> {
    let mut parameters = Vec::new();
    let mut rest = address.trim_start();
    while !rest.is_empty() {
        let (name, after) = rest
            .split_once('=')
            .ok_or("it has a word that is not of the form name=value")?;
        let name = name.trim_end();
        if name.contains(char::is_whitespace) {
            return Err("it has a word that is not of the form name=value".to_owned());
        }
        let (value, after) = take_value(after.trim_start())?;
        parameters.push((name.to_owned(), value));
        rest = after.trim_start();
    }
    Ok(parameters)
}

fn take_value(text: &str) -> Result<(String, &str), String> {
    let quoted = text.strip_prefix('\'');
    let body = quoted.unwrap_or(text);
    let mut value = String::new();
    let mut characters = body.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            '\'' if quoted.is_some() => return Ok((value, &body[at + 1..])),
            blank if quoted.is_none() && blank.is_whitespace() => return Ok((value, &body[at..])),
            other => value.push(other),
        }
    }
    match quoted {
        Some(_) => Err("a quote in it is not closed".to_owned()),
        None => Ok((value, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(address: &str, expected: Result<&[(&str, &str)], &str>) {
        let found = parse(address);
        match (&found, expected) {
            (Ok(found), Ok(expected)) => {
                let found: Vec<_> = found
                    .iter()
                    .map(|(name, value)| (name.as_str(), value.as_str()))
                    .collect();
                assert_eq!(found, expected, "{address}");
            }
            (Err(error), Err(part)) => assert!(error.contains(part), "{address}: {error}"),
            _ => panic!("{address}: {found:?}"),
        }
    }

    #[test]
    fn urls_are_read_as_libpq_reads_them() {
        check("postgres://", Ok(&[]));
        check(
            "postgresql://me:p%40ss?w@db.test:5433/work?sslmode=verify-full&options=-c%20x%3D1",
            Ok(&[
                ("user", "me"),
                ("password", "p@ss?w"),
                ("host", "db.test"),
                ("port", "5433"),
                ("dbname", "work"),
                ("sslmode", "verify-full"),
                ("options", "-c x=1"),
            ]),
        );
        check(
            "postgres://one,two:5433,[::1]:7/work",
            Ok(&[("host", "one,two,::1"), ("port", ",5433,7"), ("dbname", "work")]),
        );
        check(
            "postgres://me@%2Frun%2Fpostgresql/work?ssl=true",
            Ok(&[
                ("user", "me"),
                ("host", "/run/postgresql"),
                ("dbname", "work"),
                ("sslmode", "require"),
            ]),
        );
        check("postgres:///?host=db", Ok(&[("host", "db")]));
        check("postgres://me:p@ss@db/work", Err("%40"));
        check("postgres://me@db/work?sslmode", Err("name=value"));
        check("postgres://me@db/%FF", Err("not text"));
        check("postgres://[::1/work", Err("no `]`"));
        check("mysql://me@db/work", Err("postgres://"));
        check("db", Err("postgres://"));
        check("", Err("postgres://"));
    }

    #[test]
    fn words_are_read_as_libpq_reads_them() {
        check(
            r"host = db  user=me password='it''s'",
            Err("not of the form name=value"),
        );
        check(
            r"host = db  user=me password='a \'b\' \\' dbname=a\ b",
            Ok(&[
                ("host", "db"),
                ("user", "me"),
                ("password", r"a 'b' \"),
                ("dbname", "a b"),
            ]),
        );
        check("host=db password='open", Err("not closed"));
        check("host=db me", Err("name=value"));
    }
}
