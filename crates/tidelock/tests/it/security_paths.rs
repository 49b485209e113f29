//! Tricks in every path parameter of every route, and in the paths that a query carries: a clear refusal, and nothing outside
//! is read or written.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::World;
use crate::plan_stage::Project;
use crate::security_stage::Target;

/// Stands in files that nobody may be shown.
const SECRET: &str = "the secret of another place";

/// Values that are no id, as they stand in the first line of a request.
fn tricks(outside: &Path) -> Vec<String> {
    let outside = outside.display().to_string();
    let encoded = outside.replace('/', "%2F");
    [
        "..",
        ".",
        "%2e%2e",
        "%2E%2e%2f%2e%2E%2fetc%2fpasswd",
        "..%2f..%2f..%2f..%2fetc%2fpasswd",
        "..%5c..%5cetc%5cpasswd",
        "..%252f..%252fetc%252fpasswd",
        "%2fetc%2fpasswd",
        "%2Fproc%2Fself%2Fenviron",
        "file:%2f%2f%2fetc%2fpasswd",
        "%00",
        "a%00.txt",
        "%ff%fe",
        "%c0%ae%c0%ae%c0%af",
        "%0d%0aX-Injected:%20yes",
        "%1b%5b2J",
        "%e2%80%ae",
        "%",
        "%zz",
        "*",
        "'%20OR%201=1--",
        "$(touch%20x)",
        "-1",
        "18446744073709551616",
        "job_%2e%2e",
        "%20",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([encoded, "a".repeat(10_000), "%2e%2e%2f".repeat(1_000)])
    .collect()
}

/// Every file below a directory with its text, but for the daemon's own.
fn image(world: &World) -> BTreeMap<String, String> {
    fn collect(directory: &Path, home: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            if path == home {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                collect(&path, home, files);
            } else {
                let text = fs::read(&path).unwrap_or_default();
                files.insert(
                    path.display().to_string(),
                    String::from_utf8_lossy(&text).into_owned(),
                );
            }
        }
    }
    let mut files = BTreeMap::new();
    collect(world.path(), &world.path().join("home"), &mut files);
    files
}

/// Every route with a parameter in its path.
fn routes(target: &Target) -> Vec<(String, String)> {
    let described = target.ask("GET", "/openapi.json", "");
    let described: Value = serde_json::from_str(&described.body).unwrap();
    let mut found = Vec::new();
    for (path, item) in described["paths"].as_object().unwrap() {
        for method in ["get", "put", "post", "delete"] {
            if item.get(method).is_some() && path.contains('{') {
                found.push((method.to_uppercase(), path.clone()));
            }
        }
    }
    assert!(found.len() > 40, "{found:?}");
    // The page has paths of its own.
    for path in [
        "/sessions/{id}",
        "/live/sessions/{id}",
        "/live/sessions/{id}/conversation",
        "/jobs/{id}",
        "/live/jobs/{id}",
        "/plans/{id}",
        "/live/plans/{id}",
        "/plans/{id}/discard",
        "/servers/{id}",
        "/live/servers/{id}",
        "/assets/{file}",
    ] {
        found.push(("GET".to_owned(), path.to_owned()));
    }
    found
}

/// A path with every parameter replaced.
fn filled(path: &str, value: &str) -> String {
    let segments = path
        .split('/')
        .map(|segment| if segment.starts_with('{') { value } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

#[test]
fn no_path_parameter_leads_anywhere() {
    let target = Target::new();
    let outside = target.world.path().join("outside");
    fs::write(&outside, SECRET).unwrap();
    let before = image(&target.world);
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    for (method, route) in routes(&target) {
        // Breakers have whatever name somebody likes, so they may be there; all others are not.
        let is_named_freely = route.starts_with("/v1/breakers/");
        for trick in tricks(&outside) {
            let path = filled(&route, &trick);
            let reply = target.ask(&method, &path, "{}");
            *statuses.entry(reply.status).or_default() += 1;
            let is_refused = (400..500).contains(&reply.status);
            assert!(
                is_refused || is_named_freely && reply.status == 200,
                "{method} {path:.120}: {reply:?}"
            );
            // A target that is not one of HTTP is refused before anybody could explain it.
            assert!(
                !reply.body.is_empty() || matches!(reply.status, 400 | 431) || !is_refused,
                "{method} {path:.120}: {reply:?}"
            );
            assert_eq!(reply.header("x-injected"), None, "{method} {path:.120}");
            for known in [SECRET, "root:x:0", "PATH="] {
                assert!(!reply.body.contains(known), "{method} {path:.120}: {reply:?}");
            }
        }
    }
    assert_eq!(image(&target.world), before, "something was written");
    assert!(
        statuses.get(&404).is_some_and(|count| *count > 500),
        "{statuses:?}"
    );
    target.answers_others();
}

#[test]
fn no_path_in_a_query_or_a_body_leads_out_of_a_plan() {
    let project = Project::with_git(&[("a.txt", "a\n"), ("sub/b.txt", "b\n")]);
    let outside = project.world.path().canonicalize().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), SECRET).unwrap();
    // Links that lead out, before the plan begins and made in its sandbox.
    symlink(&outside, project.root.join("door")).unwrap();
    symlink(outside.join("secret.txt"), project.root.join("window.txt")).unwrap();
    symlink("/proc/self/root", project.root.join("magic")).unwrap();
    let plan = project.open(&[]);
    project.work(&plan, &format!("ln -s {} later", outside.display()));
    let Project { world, root } = project;
    let target = Target::of(world);
    let file = |path: &str| target.ask("GET", &format!("/v1/plans/{plan}/file?path={path}"), "");
    assert_eq!(file("sub/b.txt").status, 200);
    let encoded = outside.display().to_string().replace('/', "%2F");
    for path in [
        "..%2Foutside%2Fsecret.txt".to_owned(),
        "../outside/secret.txt".to_owned(),
        "sub/../../outside/secret.txt".to_owned(),
        format!("{encoded}%2Fsecret.txt"),
        "%2Fetc%2Fpasswd".to_owned(),
        "door/secret.txt".to_owned(),
        "window.txt".to_owned(),
        "later/secret.txt".to_owned(),
        format!("magic{encoded}%2Fsecret.txt"),
        "magic/etc/passwd".to_owned(),
        "a.txt%00.png".to_owned(),
        ".git/config".to_owned(),
        "a".repeat(10_000),
        "a/".repeat(3_000),
    ] {
        let reply = file(&path);
        // Where a link leads may be said; what is there may not.
        if reply.body.contains("\"kind\":\"symlink\"") {
            assert!(!reply.body.contains("\"text\""), "{path:.100}: {reply:?}");
            continue;
        }
        assert!((400..500).contains(&reply.status), "{path:.100}: {reply:?}");
        assert!(!reply.code().is_empty(), "{path:.100}: {reply:?}");
        for known in [SECRET, "root:x:0", "repositoryformatversion"] {
            assert!(!reply.body.contains(known), "{path:.100}: {reply:?}");
        }
    }
    // Context, by a file to look at and by words that stand only outside.
    for question in [
        json!({ "query": SECRET, "directory": root }),
        json!({ "query": "secret", "directory": root, "focus": ["../outside/secret.txt"] }),
        json!({ "query": "secret", "directory": root, "focus": [outside.join("secret.txt")] }),
        json!({ "query": "secret", "directory": root, "focus": ["door/secret.txt", "window.txt"] }),
        json!({ "query": "secret", "plan": plan, "focus": ["later/secret.txt", "magic/etc/passwd"] }),
    ] {
        let reply = target.ask("POST", "/v1/context", &question.to_string());
        let answer: Value = serde_json::from_str(&reply.body).unwrap();
        assert!(reply.status < 500, "{question}: {reply:?}");
        let fragments = answer["fragments"].to_string();
        assert!(!fragments.contains("of another place"), "{question}: {reply:?}");
    }
    target.answers_others();
}
