//! What `.gitattributes` says about merging holds when a plan is applied.

use crate::plan_stage::Project;

const BEFORE: [(&str, &str); 4] = [
    (".gitattributes", "*.log merge=union\n*.lock -merge\n"),
    ("changes.log", "first\n"),
    ("a.lock", "1\n2\n3\n4\n5\n"),
    ("plain.txt", "first\n"),
];

#[test]
fn a_union_takes_the_lines_of_both() {
    let project = Project::with_git(&BEFORE);
    let plan = project.open(&[]);
    project.work(&plan, "echo theirs >> changes.log; echo new > new.log");
    project.write("changes.log", "first\nours\n");
    project.write("new.log", "old\n");
    project.run(&["plan", "apply", &plan]).expect(0);
    assert_eq!(project.tree()["changes.log"], "first\nours\ntheirs\n");
    assert_eq!(project.tree()["new.log"], "old\nnew\n");
    // The same without the attribute.
    let plan = project.open(&[]);
    project.work(&plan, "echo theirs >> plain.txt");
    project.write("plain.txt", "first\nours\n");
    project.run(&["plan", "apply", &plan]).expect(1);
}

#[test]
fn a_file_that_is_not_to_be_merged_is_a_conflict() {
    let project = Project::with_git(&BEFORE);
    let plan = project.open(&[]);
    project.work(&plan, "sed -i s/1/one/ a.lock");
    project.write("a.lock", "1\n2\n3\n4\nfive\n");
    let refused = project.run(&["plan", "apply", &plan, "--json"]).expect(1).json();
    assert_eq!(refused["conflicts"][0]["kind"], "binary", "{refused}");
    // A refresh goes by it too.
    let refused = project
        .run(&["plan", "refresh", &plan, "--json"])
        .expect(1)
        .json();
    assert_eq!(refused["conflicts"][0]["kind"], "binary", "{refused}");
}
