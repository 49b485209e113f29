//! Stop words, and other forms of the remaining words.

/// Words of English, and of questions about code, that are too common to search for.
const STOP_WORDS: &str = "\
    a about above after again all also am an and any anything are aren as at be because been before being below \
    between both but by call called can class code codebase could currently defined definition did didn do does \
    doesn doing don done down during each either etc every explain few file files find for from function functions \
    further get gets give given gives had happen happens has hasn have having he help her here hers him his how i if \
    implement implementation implemented implements in instead into is isn it its itself just like ll look looking \
    made make makes making many may me method methods might more most much must my need needs no nor not now of off \
    on once one only or other our out over own part place please re responsible return returns same see she should \
    show so some something such tell than that the their them then there these they thing this those through to too \
    two under until up us use used uses using ve very want was we were what when where whether which while who whose \
    why will with without won work works would you your";

/// `word` is in lower case.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.split(' ').any(|empty| empty == word)
}

/// The shortest stem. A shorter one would match too many other words.
const SHORTEST_STEM: usize = 4;

/// Suffixes, longest first, and their replacements. The result is a common prefix of a word's forms, not necessarily
/// a word.
const ENDINGS: &[(&str, &str)] = &[
    ("izations", "iz"),
    ("ization", "iz"),
    ("ations", ""),
    ("ation", ""),
    ("ities", "it"),
    ("ings", ""),
    ("ions", ""),
    ("ness", ""),
    ("able", ""),
    ("ing", ""),
    ("ion", ""),
    ("ies", ""),
    ("ied", ""),
    ("ers", ""),
    ("ors", ""),
    ("ity", "it"),
    ("ed", ""),
    ("er", ""),
    ("or", ""),
    ("es", ""),
    ("ly", ""),
    ("s", ""),
    ("e", ""),
    ("y", ""),
];

/// The common prefix of a word's forms: `pars` for `parsing`, `parser` and `parse`. `None` if that is the word
/// itself, or too short.
pub(crate) fn stem_of(word: &str) -> Option<String> {
    if !word.bytes().all(|byte| byte.is_ascii_lowercase()) || word.ends_with("ss") {
        return None;
    }
    let mut endings = ENDINGS.iter();
    let (rest, place) = endings.find_map(|(ending, place)| {
        let rest = word.strip_suffix(ending)?;
        (rest.len() + place.len() >= SHORTEST_STEM).then_some((rest, place))
    })?;
    let mut stem = format!("{rest}{place}");
    // `stopping` leaves `stopp`, which isn't a prefix of `stop`, but `passing` leaves `pass`, which is right.
    let doubled = stem
        .as_bytes()
        .windows(2)
        .last()
        .is_some_and(|two| two[0] == two[1]);
    if doubled && !stem.ends_with("ss") && !stem.ends_with("ee") && stem.len() > SHORTEST_STEM {
        stem.pop();
    }
    Some(stem)
}

#[cfg(test)]
mod tests {
    use super::{is_stop_word, stem_of};

    #[test]
    fn words_of_questions_say_nothing() {
        let says_nothing: Vec<&str> = "where is the a parser of your ar"
            .split(' ')
            .filter(|word| is_stop_word(word))
            .collect();
        assert_eq!(says_nothing.join(" "), "where is the a of your");
    }

    #[test]
    fn forms_of_a_word_begin_alike() {
        for (words, stem) in [
            ("parsing parser parse parsers parses", "pars"),
            ("cancelled cancelling canceled cancellation", "cancel"),
            ("stopping stopped", "stop"),
            ("files", "file"),
            ("passing passed passes", "pass"),
            ("retries retried", "retr"),
            ("tokens", "token"),
            ("serialization serializing serializer serialize", "serializ"),
        ] {
            for word in words.split(' ') {
                assert_eq!(stem_of(word).as_deref(), Some(stem), "{word}");
            }
        }
        for word in ["", "s", "its", "class", "go", "ünder", "utf8s", "token"] {
            assert_eq!(stem_of(word), None, "{word}");
        }
    }
}
