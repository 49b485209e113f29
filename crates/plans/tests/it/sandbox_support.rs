//! A workspace, sandboxes of it by every strategy that works here, and a look at what is really there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use eventlog::{BlobId, Log, SqliteOptions};
use kernel::{CancellationToken, SystemClock};
use plans::{
    Bases, Captured, Change, Entry, Known, LinkTarget, RelPath, Sandbox, SandboxSpec, Strategies, Strategy,
    Taken, Tree,
};
use process::{
    Confinement, Exit, KeeperProgram, Limits, Processes, ProcessesOptions, Spec, StandardError, Tasks,
};
use protocol::{BootId, HomeId, PlanId, SandboxStrategy};
use tokio::io::AsyncReadExt;

/// All strategies.
pub(crate) const ALL: [SandboxStrategy; 3] = [
    SandboxStrategy::Overlay,
    SandboxStrategy::GitWorktree,
    SandboxStrategy::Copy,
];

/// The workspace of most tests, with everything that a tree can have in it.
pub(crate) const WORKSPACE: &str = r#"
printf 'alpha\n' > a.txt; printf 'beta\n' > b.txt; printf 'run\n' > run.sh
mkdir -p dir/deep empty; printf 'one\n' > dir/one.txt; printf 'two\n' > dir/two.txt; printf 'three\n' > dir/deep/three.txt
ln -s a.txt link; printf 'x' > "$(printf 'caf\351.txt')"; printf 'r\r\n' > 'crlf and space'
printf 'target\n.env\n*.log\n' > .gitignore
mkdir -p target/debug; printf 'built\n' > target/debug/out; printf 'secret\n' > .env
"#;

/// A daemon's worth of services, and a workspace.
pub(crate) struct World {
    pub(crate) processes: Processes,
    pub(crate) strategies: Strategies,
    pub(crate) workspace: PathBuf,
    pub(crate) scratch: PathBuf,
    /// Another directory that commands may not write.
    pub(crate) outside: PathBuf,
    _home: tempfile::TempDir,
}

/// A sandbox of one strategy, open.
pub(crate) struct Subject {
    pub(crate) strategy: Arc<dyn Strategy>,
    pub(crate) order: SandboxSpec,
    pub(crate) sandbox: Arc<dyn Sandbox>,
    pub(crate) known: Known,
}

/// How a command ended, and what it said on both streams.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Said {
    pub(crate) exit: Exit,
    pub(crate) text: String,
}

impl World {
    /// A workspace that a script makes. It is a repository of git with one commit of everything that is not ignored.
    pub(crate) async fn of(script: &str) -> Self {
        // Old files: git trusts the stat of those, and reads new ones to be sure.
        let old = "find . -exec touch -h -d 2020-01-01 {} +";
        Self::bare(&format!(
            "{script}\n{old}\ngit init -q -b main && git add -A && git commit -q -m first"
        ))
        .await
    }

    /// A workspace that a script makes, and nothing else.
    pub(crate) async fn bare(script: &str) -> Self {
        // Not below a temporary directory: those can be written from everywhere.
        let target = env!("CARGO_TARGET_TMPDIR");
        let home = tempfile::Builder::new()
            .prefix("sandbox")
            .tempdir_in(target)
            .unwrap();
        let root = home.path().canonicalize().unwrap();
        let options = SqliteOptions {
            path: root.join("log.sqlite"),
        };
        let processes = Processes::open(ProcessesOptions {
            log: Log::open_sqlite(&options, SystemClock::shared()).unwrap(),
            home_id: HomeId::generate(),
            boot_id: BootId::generate(),
            keeper: KeeperProgram::At(env!("CARGO_BIN_EXE_sandbox-keeper").into()),
            tasks: Tasks::default(),
            clock: SystemClock::shared(),
        })
        .await
        .unwrap();
        let (workspace, outside) = (root.join("work space"), root.join("outside"));
        for directory in [&workspace, &outside, &root.join("home")] {
            fs::create_dir(directory).unwrap();
        }
        let scratch = root.join("data/plans");
        let environment = BTreeMap::from([
            ("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()),
            ("HOME".into(), root.join("home").into_os_string()),
        ]);
        let strategies = Strategies::probe(&processes, &scratch, &[], &environment)
            .await
            .unwrap();
        let world = Self {
            processes,
            strategies,
            workspace,
            scratch,
            outside,
            _home: home,
        };
        world.shell(&format!("set -e\n{script}")).await;
        world
    }

    /// Runs a script in the workspace itself, as the user would.
    pub(crate) async fn shell(&self, script: &str) -> String {
        let said = self.run(self.spec(script, &self.workspace)).await;
        assert_eq!(said.exit, Exit::Code(0), "{script}: {}", said.text);
        said.text
    }

    fn spec(&self, script: &str, directory: &Path) -> Spec {
        let variables = [
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("HOME", "/nowhere"),
            ("GIT_AUTHOR_NAME", "a"),
            ("GIT_AUTHOR_EMAIL", "a@b"),
            ("GIT_COMMITTER_NAME", "a"),
            ("GIT_COMMITTER_EMAIL", "a@b"),
        ];
        Spec {
            program: "sh".into(),
            arguments: vec!["-c".into(), script.into()],
            directory: directory.to_owned(),
            environment: variables.map(|(name, value)| (name.into(), value.into())).into(),
            owner: "test".to_owned(),
            reason: "to be looked at".to_owned(),
            generation: 1,
            limits: Limits::default(),
            confinement: Confinement::None,
            stderr: StandardError::WithOutput,
            terminal: None,
            view: None,
        }
    }

    async fn run(&self, spec: Spec) -> Said {
        let child = self.processes.spawn(spec).await.unwrap();
        drop(child.stdin());
        let mut text = Vec::new();
        child.stdout().unwrap().read_to_end(&mut text).await.unwrap();
        let exit = child.ended().await.exit;
        let text = String::from_utf8_lossy(&text).into_owned();
        Said { exit, text }
    }

    /// A base of the workspace as it is now.
    pub(crate) fn take(&self) -> Taken {
        let bases = Bases::open(self.scratch.join("bases"), u64::MAX).unwrap();
        let cache = self.scratch.join("stat-cache");
        bases
            .take(&self.workspace, &cache, &CancellationToken::new().scope())
            .unwrap()
    }

    /// The strategy, if it works here. A machine where it does not is a skip, and said.
    pub(crate) fn strategy(&self, name: SandboxStrategy) -> Option<Arc<dyn Strategy>> {
        match self.strategies.pick(Some(name), &self.workspace) {
            Ok(strategy) => Some(strategy),
            Err(error) => {
                let reason = format!("SKIPPED: sandboxes by {name}, because {error}\n");
                print!("{reason}");
                if let Some(report) = std::env::var_os("TIDELOCK_SKIP_REPORT") {
                    let mut report = fs::OpenOptions::new()
                        .append(true)
                        .create(true)
                        .open(report)
                        .unwrap();
                    report.write_all(reason.as_bytes()).unwrap();
                }
                None
            }
        }
    }

    pub(crate) fn order(&self, taken: &Taken) -> SandboxSpec {
        let plan = PlanId::generate();
        SandboxSpec {
            plan,
            workspace: self.workspace.clone(),
            base: taken.base.clone(),
            ignored: taken.ignored.clone(),
            directory: self.scratch.join("sandboxes").join(plan.to_string()),
        }
    }

    pub(crate) async fn open(&self, strategy: Arc<dyn Strategy>, taken: &Taken) -> Subject {
        let order = self.order(taken);
        strategy.create(&order).await.unwrap();
        Subject {
            sandbox: strategy.open(&order).await.unwrap(),
            strategy,
            known: Known {
                base: Arc::clone(&order.base.manifest),
                since: Arc::default(),
            },
            order,
        }
    }

    /// Runs a script in a sandbox.
    pub(crate) async fn run_in(&self, subject: &Subject, script: &str) -> Said {
        let entrance = subject.sandbox.entrance();
        let mut spec = self.spec(script, &entrance.root);
        spec.environment.extend(entrance.environment.clone());
        spec.environment
            .insert("OUTSIDE".into(), self.outside.clone().into_os_string());
        spec.environment
            .insert("WORKSPACE".into(), self.workspace.clone().into_os_string());
        let writable = entrance.writable(&spec.environment).await.unwrap();
        spec.confinement = Confinement::WriteBelow(writable);
        spec.view = entrance.view;
        self.run(spec).await
    }
}

impl Subject {
    pub(crate) fn capture(&self) -> Captured {
        self.capture_within(u64::MAX)
    }

    pub(crate) fn capture_within(&self, max_file_bytes: u64) -> Captured {
        let bounds = plans::ReadBounds {
            scope: kernel::CancellationToken::new().scope(),
            max_file_bytes,
        };
        self.sandbox.capture(&self.known, &bounds).unwrap()
    }

    /// Takes changes for known.
    pub(crate) fn record(&mut self, changes: &[Change]) {
        let since = Arc::make_mut(&mut self.known.since);
        for change in changes {
            if let Some(from) = &change.from {
                since.insert(from.clone(), None);
            }
            since.insert(change.path.clone(), change.after.clone());
        }
    }

    /// Closes the sandbox and opens it again, as the next daemon would.
    pub(crate) async fn reopen(self) -> Self {
        let Self {
            strategy,
            order,
            sandbox,
            known,
        } = self;
        drop(sandbox);
        Self {
            sandbox: strategy.open(&order).await.unwrap(),
            strategy,
            order,
            known,
        }
    }

    pub(crate) async fn remove(self) -> u64 {
        drop(self.sandbox);
        let freed = self.strategy.remove(&self.order).await.unwrap();
        assert!(!self.order.directory.exists());
        freed
    }

    /// What is known, as a whole.
    pub(crate) fn known_entries(&self) -> BTreeMap<RelPath, Entry> {
        let mut all: BTreeMap<RelPath, Entry> = self
            .known
            .base
            .iter()
            .map(|(path, entry)| (path.clone(), entry.clone()))
            .collect();
        for (path, entry) in self.known.since.iter() {
            match entry {
                Some(entry) => drop(all.insert(path.clone(), entry.clone())),
                None => drop(all.remove(path)),
            }
        }
        all
    }

    /// What is really there, but for what is ignored.
    pub(crate) fn real_entries(&self) -> BTreeMap<RelPath, Entry> {
        let ignored = ["target", ".env", "nested", ".tidelock", "hidden", "lib"].map(path);
        walk(self.sandbox.tree(), &BTreeSet::from(ignored))
    }
}

pub(crate) fn path(text: &str) -> RelPath {
    text.parse().unwrap()
}

/// Everything in a tree, found in the plainest way.
pub(crate) fn walk(tree: &Tree, but: &BTreeSet<RelPath>) -> BTreeMap<RelPath, Entry> {
    let mut all = BTreeMap::new();
    let mut pending = vec![None];
    while let Some(directory) = pending.pop() {
        for (name, _) in tree.list(directory.as_ref()).unwrap() {
            let joined = match &directory {
                Some(directory) => RelPath::join(directory, &name),
                None => RelPath::from_path(name.as_ref()),
            };
            let Ok(path) = joined else { continue };
            let is_log = path.as_bytes().ends_with(b".log");
            let is_too_deep = path.as_bytes().starts_with(b"new/000");
            if but.contains(&path) || is_log || is_too_deep || path.as_bytes().ends_with(b"fifo") {
                continue;
            }
            let entry = tree.entry(&path).unwrap().unwrap();
            if entry == Entry::Directory {
                pending.push(Some(path.clone()));
            }
            all.insert(path, entry);
        }
    }
    all
}

/// Everything below a directory of the system, byte by byte, but for what a test leaves out.
pub(crate) fn snapshot(root: &Path, is_left_out: &dyn Fn(&Path) -> bool) -> BTreeMap<PathBuf, (u32, String)> {
    let mut all = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for item in fs::read_dir(&directory).unwrap() {
            let path = item.unwrap().path();
            if is_left_out(path.strip_prefix(root).unwrap()) {
                continue;
            }
            let stat = path.symlink_metadata().unwrap();
            let content = if stat.is_dir() {
                pending.push(path.clone());
                "directory".to_owned()
            } else if stat.is_symlink() {
                format!("{:?}", fs::read_link(&path).unwrap())
            } else {
                String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
            };
            all.insert(
                path.strip_prefix(root).unwrap().to_owned(),
                (stat.mode(), content),
            );
        }
    }
    all
}

/// A change in a few words, with the content in place of its hash.
pub(crate) fn shown(change: &Change) -> String {
    let kind = format!("{:?}", change.kind()).to_lowercase();
    let from = change
        .from
        .iter()
        .map(|from| format!(" from {from}"))
        .collect::<String>();
    format!(
        "{kind} {}{from}: {} -> {}",
        change.path,
        side(change.before.as_ref()),
        side(change.after.as_ref())
    )
}

fn side(entry: Option<&Entry>) -> String {
    match entry {
        None => "-".to_owned(),
        Some(Entry::Directory) => "dir".to_owned(),
        Some(Entry::Symlink {
            target: LinkTarget(target),
        }) => format!("@{}", String::from_utf8_lossy(target)),
        Some(Entry::File { hash, size, mode }) => {
            let known = ["alpha", "beta", "run", "one", "two", "three", "new", "other"];
            let content = known
                .iter()
                .map(|word| format!("{word}\n"))
                .find(|text| BlobId::from_bytes(*blake3::hash(text.as_bytes()).as_bytes()) == *hash);
            let content = content.map_or_else(|| format!("{size}B"), |text| text.trim_end().to_owned());
            let mode = if *mode == 0o644 {
                String::new()
            } else {
                format!("/{mode:o}")
            };
            format!("{content}{mode}")
        }
    }
}
