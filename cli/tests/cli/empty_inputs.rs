//! Repositories and folders that hold no object: a warning, and everything else goes on.

use crate::stage::Stage;

const PROMOTED: &str = ".github/tracking/Promoted_Commit_Id";

/// Everything is on the environment's own branch, and main is what a new repository has.
fn self_contained() -> Stage {
    let stage = Stage::small();
    for (path, bytes) in crate::stage::tree(&stage.file("base")) {
        stage.write(&format!("control-plane/from-base/{path}"), bytes);
    }
    stage.remove("base");
    stage.write("base/README.md", "Our platform begins here.");
    stage
}

#[test]
fn a_base_with_a_readme_alone_is_a_warning_and_everything_is_rendered() {
    let stage = self_contained();
    let warning = ["warning[NothingFound]: BaseRepo main has no YAML object", "base-repo.yaml:"];
    stage.render().exits(0).says(&warning).says(&["wrote 10 files"]);
    let files = stage.output();
    assert_eq!(files[PROMOTED], "1f0e0d0c0b0a09080706050403020100ffeeddcc");
    assert!(files.contains_key("drone/hello-functional-test/reconciler.yaml"), "{:?}", files.keys());
    stage.validate().exits(0).shows(&warning);

    // What is gone is deleted as ever.
    stage.remove("control-plane/cluster-types/vm.yaml");
    stage.render().exits(0).says(&["deleted 4"]);
}

#[test]
fn an_application_without_a_workload_is_a_warning() {
    let stage = Stage::small();
    stage.remove("hello/workload");
    stage.write("hello/workload/README.md", "soon");
    stage.render().exits(0).says(&["warning[NothingFound]: WorkloadRegistration hello brings no Workload"]);
    assert!(stage.output().contains_key(PROMOTED));
}
