//! The service file: parameters of an address under a name, as `[name]` and lines of `parameter=value`.

use std::{fs, io::ErrorKind, path::PathBuf};

/// The parameters of a service, from the first file that has it.
pub(super) fn read(name: &str, files: &[PathBuf]) -> Result<Vec<(String, String)>, String> {
    for file in files {
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(format!(
                    "the service file {} cannot be read: {error}",
                    file.display()
                ));
            }
        };
        if let Some(found) = find(name, &text) {
            return found.map_err(|line| {
                format!(
                    "line {line} of the service file {} is not of the form name=value",
                    file.display()
                )
            });
        }
    }
    let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
    let places = if files.is_empty() {
        "there is no service file; name one with PGSERVICEFILE".to_owned()
    } else {
        format!("it was looked for in {}", files.join(" and "))
    };
    Err(format!("the service `{name}` is not defined; {places}"))
}

/// The parameters below a heading, or the number of an invalid line.
fn find(name: &str, text: &str) -> Option<Result<Vec<(String, String)>, usize>> {
    let lines = (1_usize..).zip(text.lines().map(str::trim));
    let mut below = lines.skip_while(|(_, line)| line.strip_prefix('[') != Some(&format!("{name}]")));
    below.next()?;
    Some(
        below
            .take_while(|(_, line)| !line.starts_with('['))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
            .map(|(number, line)| {
                let (parameter, value) = line.split_once('=').ok_or(number)?;
                Ok((parameter.trim_end().to_owned(), value.to_owned()))
            })
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_is_the_lines_below_its_name() {
        let text = "# ours\n[other]\nhost=no\n\n[work]\n# the big one\nhost=db.test\nport=5433\npassword= a=b\n[last]\nodd\n";
        let owned = |pairs: &[(&str, &str)]| -> Vec<_> {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        let expected = owned(&[("host", "db.test"), ("port", "5433"), ("password", " a=b")]);
        assert_eq!(find("work", text), Some(Ok(expected)));
        assert_eq!(find("last", text), Some(Err(11)));
        assert_eq!(find("absent", text), None);
        let error = read("absent", &[PathBuf::from("/nowhere/pg_service.conf")]).unwrap_err();
        assert_eq!(
            error,
            "the service `absent` is not defined; it was looked for in /nowhere/pg_service.conf"
        );
    }
}
