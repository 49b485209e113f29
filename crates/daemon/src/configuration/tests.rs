//! Accepted configurations, and the errors for rejected ones.

use ::context::{CommandSettings, ContextSettings, StrategySettings, TokenizerName};
use protocol::RulePermission;

use super::*;

#[test]
fn everything_that_can_be_written_is_read() {
    let text = r#"
        [sessions]
        default_agent = "opencode"
        after_crash = "wait"
        permission_timeout_seconds = 60
        turn_timeout_seconds = 61
        tool_timeout_seconds = 62
        max_turns = 7
        rules = [{ tool = "shell", pattern = "git push*", permission = "ask" }]

        [model]
        base_url = "http://127.0.0.1:8080/v1"
        key_env = "SOME_KEY"
        model = "some-model"
        context_tokens = 1000
        opening_context_tokens = 500
        max_steps = 1
        max_tokens = 2
        max_time_seconds = 3
        max_cost = 0.5
        input_price = 3
        output_price = 15.0
        request_timeout_seconds = 4
        idle_timeout_seconds = 5
        max_retries = 6

        [agents.opencode]
        command = ["opencode", "acp"]
        description = "An agent"
        environment = { A = "b" }
        write_below = ["/var/lib/opencode"]

        [mcp]
        apply = "never"

        [plans]
        keep_days = 7
        keep_mb = 8
        max_sandboxes = 9

        [context]
        budget_tokens = 1
        deadline_ms = 2
        tokenizer = "cl100k"
        workers = 3
        index_limit_mb = 4

        [context.strategies.repo-map]
        enabled = false
        timeout_ms = 5
        weight = 0.6

        [[context.commands]]
        name = "mine"
        command = ["find-it", "--json"]
        timeout_ms = 7
        weight = 8
    "#;
    let read = parse(text).unwrap().configuration;
    assert_eq!(read.model.output_price, Some(15.0));
    assert_eq!(read.model.input_price, Some(3.0));
    assert_eq!(
        read.agents,
        BTreeMap::from([(
            "opencode".to_owned(),
            AgentSection {
                command: vec!["opencode".to_owned(), "acp".to_owned()],
                description: "An agent".to_owned(),
                environment: BTreeMap::from([("A".to_owned(), "b".to_owned())]),
                write_below: vec![PathBuf::from("/var/lib/opencode")],
            }
        )])
    );
    let milliseconds = Duration::from_millis;
    let repo_map = StrategySettings {
        enabled: false,
        timeout: milliseconds(5),
        weight_percent: 60,
    };
    let expected = ContextSettings {
        budget_tokens: 1,
        patience: milliseconds(2),
        tokenizer: TokenizerName::Cl100k,
        workers: 3,
        index_limit_bytes: 4 * 1024 * 1024,
        strategies: BTreeMap::from([("repo-map".to_owned(), repo_map)]),
        commands: vec![CommandSettings {
            name: "mine".to_owned(),
            command: vec!["find-it".to_owned(), "--json".to_owned()],
            timeout: milliseconds(7),
            weight_percent: 800,
        }],
    };
    assert_eq!(read.context.settings(), expected);
    assert_eq!(read.mcp.apply(), ApplyWord::Never);
    let plans = read.plans.settings(::plans::PlansSettings::default());
    assert_eq!(
        (plans.keep_for, plans.keep_bytes, plans.max_sandboxes),
        (Duration::from_secs(7 * 24 * 60 * 60), 8 * 1024 * 1024, 9)
    );
    let settings = read.sessions.settings("opencode".to_owned());
    let rule = PermissionRule {
        tool: "shell".to_owned(),
        pattern: Some("git push*".to_owned()),
        permission: RulePermission::Ask,
    };
    let seconds = Duration::from_secs;
    assert_eq!(
        (settings.after_crash, settings.rules),
        (AfterCrash::Wait, vec![rule])
    );
    assert_eq!(
        (
            settings.permission_timeout,
            settings.turn_timeout,
            settings.tool_timeout,
            settings.max_turns
        ),
        (Some(seconds(60)), seconds(61), seconds(62), 7)
    );
    assert_eq!(parse("").unwrap(), Written::default());
    assert_eq!(ContextSection::default().settings(), ContextSettings::default());
}

#[test]
fn a_mistake_is_told_with_its_place() {
    for (text, expected) in [
        (
            "[model]\nmodle = \"a\"\n",
            "line 2, column 1: there is no key `modle` in `model`; did you mean `model`?",
        ),
        (
            "[modle]\n",
            "line 1, column 2: there is no key `modle`; did you mean `model`?",
        ),
        ("[sessions]\nmax_turns = \"many\"\n", "line 2, column 13: "),
        (
            "[sessions]\nafter_crash = \"never\"\n",
            "line 2, column 15: unknown variant `never`, expected ",
        ),
        (
            "[sessions]\nrules = [{ tool = \"*\", permission = \"no\" }]\n",
            "line 2, column ",
        ),
        ("[sessions\n", "line 1, column "),
        ("[sessions]\nmax_turns = 0\n", "`sessions.max_turns` must be"),
        (
            "[model]\nkey_env = \"A\"\nkey_file = \"/b\"\n",
            "`model` has both `key_env` and `key_file`",
        ),
        (
            "[model]\nkey_file = \"b\"\n",
            "`model.key_file` is not an absolute",
        ),
        (
            "[model]\nmax_cost = -1.0\n",
            "a price or a cost of `model` is less",
        ),
        (
            "[agents.model]\ncommand = [\"a\"]\n",
            "`agents.model`: there is an agent of this name",
        ),
        (
            "[agents.\"a b\"]\ncommand = [\"a\"]\n",
            "`agents.a b`: a name has",
        ),
        (
            "[agents.a]\ncommand = []\n",
            "`agents.a.command` names no program",
        ),
        ("[agents.a]\n", "line 1, column "),
        (
            "[agents.a]\ncommand = [\"a\"]\nwrite_below = [\"b\"]\n",
            "`agents.a.write_below` has `b`, which is not an absolute",
        ),
        (
            "[context]\nbudget = 1\n",
            "line 2, column 1: there is no key `budget` in `context`; did you mean `budget_tokens`?",
        ),
        (
            "[context]\nbudget_tokens = 1000001\n",
            "`context.budget_tokens` is 1000001; the limit is 1000000",
        ),
        (
            "[context]\ndeadline_ms = 0\n",
            "`context.deadline_ms` is 0, and must lie between 1 and 120000",
        ),
        (
            "[context]\ntokenizer = \"words\"\n",
            "line 2, column 13: unknown variant `words`, expected ",
        ),
        (
            "[context]\nworkers = 65\n",
            "`context.workers` is 65, and must lie between 1 and 64",
        ),
        (
            "[context]\nindex_limit_mb = 0\n",
            "`context.index_limit_mb` must be",
        ),
        (
            "[context.strategies.keywrod]\n",
            "`context.strategies.keywrod`: there is no strategy of this name, only: keyword, ",
        ),
        (
            "[context.strategies.keyword]\ntimeout_ms = 120001\n",
            "`context.strategies.keyword.timeout_ms` is 120001, and must lie",
        ),
        (
            "[context.strategies.keyword]\nweight = -0.5\n",
            "`context.strategies.keyword.weight` is -0.5, and must lie between 0 and 100",
        ),
        (
            "[context.strategies.keyword]\nweight = nan\n",
            "`context.strategies.keyword.weight` is NaN",
        ),
        ("[[context.commands]]\nname = \"a\"\n", "line 1, column "),
        (
            "[[context.commands]]\nname = \"a\"\ncommand = [\"\"]\n",
            "`context.commands.a.command` names no program",
        ),
        (
            "[[context.commands]]\nname = \"recent\"\ncommand = [\"a\"]\n",
            "`context.commands.recent`: there is a strategy of this name",
        ),
        (
            "[[context.commands]]\nname = \"a/b\"\ncommand = [\"a\"]\n",
            "`context.commands.a/b`: a name has",
        ),
        (
            "[[context.commands]]\nname = \"a\"\ncommand = [\"a\"]\nweight = 101\n",
            "`context.commands.a.weight` is 101, and",
        ),
    ] {
        let found = parse(text).unwrap_err();
        assert!(found.starts_with(expected), "{text}: {found}");
    }
}

#[test]
fn a_file_need_not_be_there_but_must_be_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    assert_eq!(load(Some(&path)).unwrap(), Written::default());
    assert_eq!(load(None).unwrap(), Written::default());
    assert!(matches!(
        load(Some(directory.path())).unwrap_err(),
        ConfigurationError::Unreadable { .. }
    ));
    std::fs::write(&path, "[agents]\na = 1\n").unwrap();
    let ConfigurationError::Invalid { path: named, what } = load(Some(&path)).unwrap_err() else {
        panic!("it is readable");
    };
    assert_eq!(named, path);
    assert!(what.starts_with("line 2, column 5: "), "{what}");
}
#[test]
fn the_table_has_the_keys_that_are_read_and_no_others() {
    // serde's error message for an unknown key lists the valid ones.
    let fields_of = |section: &str, written: &str| -> Vec<String> {
        let error = toml::from_str::<Configuration>(written).unwrap_err();
        let said = error.message().to_owned();
        let (_, expected) = said
            .split_once("expected ")
            .unwrap_or_else(|| panic!("{section}: {said}"));
        let mut fields: Vec<String> = expected
            .split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect();
        fields.sort();
        fields
    };
    for (section, written) in [
        ("", "zzz = 1"),
        ("sessions", "[sessions]\nzzz = 1"),
        ("model", "[model]\nzzz = 1"),
        ("agents.NAME", "[agents.a]\nzzz = 1"),
        ("context", "[context]\nzzz = 1"),
        ("context.strategies.NAME", "[context.strategies.recent]\nzzz = 1"),
        ("context.commands[]", "[[context.commands]]\nzzz = 1"),
    ] {
        let mut table: Vec<String> = KEYS
            .iter()
            .filter_map(|key| match section {
                "" => Some(key.path),
                section => key.path.strip_prefix(section)?.strip_prefix('.'),
            })
            .filter_map(|rest| Some(rest.split('.').next()?.trim_end_matches("[]").to_owned()))
            .collect();
        table.sort();
        table.dedup();
        assert_eq!(table, fields_of(section, written), "{section}");
    }
    let rule = PermissionRule {
        tool: "a".to_owned(),
        pattern: Some("b".to_owned()),
        permission: RulePermission::Ask,
    };
    let rule = serde_json::to_value(rule).unwrap();
    let mut fields: Vec<&str> = rule.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["pattern", "permission", "tool"]);
}

#[test]
fn every_word_of_the_table_can_be_written() {
    for key in KEYS {
        let Kind::OneOf(words) = key.kind else { continue };
        for word in words {
            let text = match key.path {
                "sessions.rules[].permission" => {
                    format!("sessions.rules = [{{ tool = \"*\", permission = \"{word}\" }}]")
                }
                path => format!("{path} = \"{word}\""),
            };
            assert!(parse(&text).is_ok(), "{text}");
        }
        assert!(
            words.iter().any(|word| key.usual() == *word) || key.usual().is_null(),
            "{key:?}"
        );
    }
}

#[test]
fn names_and_passwords_of_an_address_are_not_shown() {
    for (address, expected) in [
        ("http://host:1/v1", "http://host:1/v1"),
        (
            "postgres://me:se@cret@db/work?a=b@c",
            "postgres://(not shown)@db/work?a=b@c",
        ),
        ("http://host/a@b", "http://host/a@b"),
        ("nonsense", "nonsense"),
    ] {
        assert_eq!(redact(address), expected);
    }
}
