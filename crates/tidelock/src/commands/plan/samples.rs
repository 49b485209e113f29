//! Plans for tests, with every field set.

use protocol::{
    CheckState, DiffSummary, Plan, PlanCheck, PlanCommand, PlanConflict, PlanConflictHunk, PlanLeftOut,
    PlanOverlap, PlanOverlapPath, PlanRefused, PlanState, SandboxStrategy,
};

pub(in crate::commands) fn check(command: &str, state: CheckState) -> PlanCheck {
    PlanCheck {
        command: command.to_owned(),
        state,
        job: None,
        text: None,
        at: None,
    }
}

pub(in crate::commands) fn overlap(conflicts: bool) -> PlanOverlap {
    PlanOverlap {
        plan: "plan_01ARZ3NDEKTSV4RRFFQ69G5OTH".to_owned(),
        title: "another piece of work".to_owned(),
        paths: vec![
            PlanOverlapPath {
                path: "src/lib.rs".to_owned(),
                conflicts,
                lines: if conflicts { vec![3, 17] } else { Vec::new() },
            },
            PlanOverlapPath {
                path: "README.md".to_owned(),
                conflicts: false,
                lines: Vec::new(),
            },
        ],
    }
}

pub(in crate::commands) fn conflict(kind: &str) -> PlanConflict {
    PlanConflict {
        path: "src/main.rs".to_owned(),
        other: None,
        kind: kind.to_owned(),
        text: "as the daemon says it".to_owned(),
        hunks: Vec::new(),
    }
}

pub(in crate::commands) fn content_conflict() -> PlanConflict {
    PlanConflict {
        hunks: vec![
            PlanConflictHunk {
                line: 12,
                base: "fn old() {\n}\n".to_owned(),
                ours: "fn mine() {\n}\n".to_owned(),
                theirs: "fn its() {\n    nothing();\n}\n".to_owned(),
            },
            PlanConflictHunk {
                line: 40,
                base: String::new(),
                ours: "a\n".to_owned(),
                theirs: (1..=20).map(|number| format!("line {number}\n")).collect(),
            },
        ],
        ..conflict("content")
    }
}

/// A plan with every field set. Its times can't be parsed, so that the output is the same every day.
pub(in crate::commands) fn plan(state: PlanState) -> Plan {
    Plan {
        machine: None,
        id: "plan_01ARZ3NDEKTSV4RRFFQ69G5FAV".to_owned(),
        state,
        version: 7,
        title: "mend the parser".to_owned(),
        workspace: "workspace_01ARZ3NDEKTSV4RRFFQ69G5FAW".to_owned(),
        root: "/home/me/project".to_owned(),
        parent: None,
        children: Vec::new(),
        opened_by: "me".to_owned(),
        opened_at: "then".to_owned(),
        changed_at: "later".to_owned(),
        strategy: SandboxStrategy::Overlay,
        sandbox_root: "/home/me/project".to_owned(),
        base: "b1".to_owned(),
        fingerprint: "f1".to_owned(),
        entries: 5,
        changesets: 2,
        summary: DiffSummary {
            files: 3,
            added_lines: Some(20),
            removed_lines: Some(4),
        },
        running: Vec::new(),
        checks: vec![check("cargo test", CheckState::Missing)],
        refused: None,
        overlaps: Vec::new(),
        left_out: Vec::new(),
        branches: Vec::new(),
        not_carried: Vec::new(),
        remarks: Vec::new(),
        unrecorded: None,
        rescued: Vec::new(),
        notice: None,
    }
}

pub(in crate::commands) fn busy_plan() -> Plan {
    Plan {
        parent: Some("plan_01ARZ3NDEKTSV4RRFFQ69G5PAR".to_owned()),
        children: vec!["plan_01ARZ3NDEKTSV4RRFFQ69G5CHD".to_owned()],
        running: vec![PlanCommand {
            job: "job_01JCZ8T6V8Y3N5K2M4Q7R9S1TX".to_owned(),
            actor: "an agent".to_owned(),
            since: "just now".to_owned(),
        }],
        checks: vec![
            PlanCheck {
                job: Some("job_01JCZ8T6V8Y3N5K2M4Q7R9S1TY".to_owned()),
                text: Some("exit code 1".to_owned()),
                at: Some("a while ago".to_owned()),
                ..check("cargo test", CheckState::Failed)
            },
            check("cargo clippy", CheckState::Outdated),
        ],
        refused: Some(PlanRefused {
            what: "apply".to_owned(),
            by: "me".to_owned(),
            at: "an hour ago".to_owned(),
            conflicts: vec![content_conflict(), conflict("deleted_by_workspace")],
        }),
        overlaps: vec![overlap(true)],
        left_out: vec![PlanLeftOut {
            path: "vendor/lib".to_owned(),
            why: "repository".to_owned(),
            work: false,
        }],
        notice: Some("the workspace is gone".to_owned()),
        ..plan(PlanState::Open)
    }
}
