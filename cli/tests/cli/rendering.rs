//! `kedge render` on a small platform of our own: Kalypso's rules, and what happens to the folder.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;

use crate::stage::{Stage, fixture, run, tree};

const PROMOTED: &str = ".github/tracking/Promoted_Commit_Id";

#[test]
fn the_small_platform_is_rendered_byte_for_byte() {
    let stage = Stage::small();
    let run = stage.render().exits(0);
    let wanted: BTreeMap<String, String> = tree(&fixture("small-expected"))
        .into_iter()
        .map(|(path, bytes)| (path, String::from_utf8(bytes).unwrap()))
        .collect();
    assert_eq!(stage.output(), wanted);
    insta::assert_snapshot!(run.stderr, @"wrote 10 files, deleted 0, kept 0 unchanged");
    assert_eq!(run.stdout, "");
}

#[test]
fn a_second_render_touches_nothing() {
    let stage = Stage::small();
    stage.render().exits(0);
    let times = || -> Vec<_> {
        let paths = tree(&stage.file("out")).into_keys();
        paths.map(|path| fs::metadata(stage.file("out").join(path)).unwrap().modified().unwrap()).collect()
    };
    let before = times();
    stage.render().exits(0).says(&["wrote 0 files, deleted 0, kept 10 unchanged"]);
    assert_eq!(before, times());
}

#[test]
fn what_is_gone_is_deleted_and_what_is_not_ours_stays() {
    let stage = Stage::small();
    stage.render().exits(0);
    stage.write("out/README.md", "our GitOps repository");
    stage.write("out/vm/hello-functional-test/notes.md", "mine");
    stage.write("out/drone/extra/kustomization.yaml", "mine");
    stage.write("out/.github/workflows/ci.yaml", "mine");
    stage.remove("control-plane/cluster-types/vm.yaml");
    stage.remove("control-plane/cluster-types/idle.yaml");
    stage.render().exits(0).says(&["deleted 5"]);
    let files = stage.output();
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert_eq!(
        names,
        [
            PROMOTED,
            ".github/workflows/ci.yaml",
            "README.md",
            "drone/README.md",
            "drone/extra/kustomization.yaml",
            "drone/hello-functional-test/namespace.yaml",
            "drone/hello-functional-test/platform-config.yaml",
            "drone/hello-functional-test/reconciler.yaml",
            "vm/hello-functional-test/notes.md",
        ]
    );
    assert!(!stage.file("out/idle").exists(), "an emptied folder goes");
}

#[test]
fn a_changed_writer_replaces_the_other_file() {
    let stage = Stage::small();
    stage.render().exits(0);
    stage.edit("control-plane/cluster-types/vm.yaml", "configType: env", "configType: configmap");
    stage.render().exits(0).says(&["wrote 1 file, deleted 1"]);
    assert!(stage.output().contains_key("vm/hello-functional-test/platform-config.yaml"));
    assert!(!stage.output().contains_key("vm/hello-functional-test/platform-config.sh"));
}

#[test]
fn a_dry_run_lists_the_files_and_writes_none() {
    let stage = Stage::small();
    let run =
        stage.kedge(["render", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "--out", "out", "--dry-run"]);
    let run = run.exits(0).shows(&["write drone/README.md\n", "write vm/hello-functional-test/platform-config.sh\n"]);
    assert!(run.stderr.contains("would write 10 files, delete 0, keep 0 unchanged"), "{}", run.stderr);
    assert!(!stage.file("out").exists());
}

#[test]
fn json_says_what_was_written() {
    let stage = Stage::small();
    let run =
        stage.kedge(["render", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "--out", "out", "-o", "json"]);
    let value: serde_json::Value = serde_json::from_str(&run.exits(0).stdout).unwrap();
    assert_eq!(value["written"].as_array().unwrap().len(), 10);
    assert_eq!(value["assignments"], 2);
    assert_eq!(value["problems"], serde_json::json!([]));
}

#[test]
fn an_output_that_is_not_ours_is_refused_before_anything_is_written() {
    let stage = Stage::small();
    stage.write("out/src/main.c", "int main;");
    stage.render().exits(1).says(&[
        "Error: the output folder `out` isn't ours: it holds `src`",
        "Hint: name an empty or new folder, or a checkout of the platform's GitOps repository",
    ]);
    assert_eq!(stage.output().len(), 1);
}

#[test]
fn an_output_that_is_a_file_is_refused() {
    let stage = Stage::small();
    stage.write("out", "");
    stage.render().exits(1).says(&["Error: the output `out` is a file, not a folder", "Hint: "]);
}

#[test]
fn a_link_in_the_output_is_never_written_through() {
    let stage = Stage::small();
    stage.render().exits(0);
    stage.remove("out/drone/hello-functional-test");
    fs::create_dir(stage.file("elsewhere")).unwrap();
    symlink(stage.file("elsewhere"), stage.file("out/drone/hello-functional-test")).unwrap();
    stage
        .render()
        .exits(1)
        .says(&["Error: `out/drone/hello-functional-test` is a symbolic link; kedge doesn't write through links"]);
    assert!(tree(&stage.file("elsewhere")).is_empty());
}

#[test]
fn a_full_disk_leaves_nothing_half_written() {
    let stage = Stage::small();
    let out = stage.file("out");
    fs::create_dir(&out).unwrap();
    let Some(_mounted) = SmallDisk::mount(&out, "64k") else {
        return crate::stage::skip("rendering::a_full_disk_leaves_nothing_half_written", "mounting a tmpfs needs root");
    };
    stage.render().exits(0);
    let before = stage.output();
    let long = "x".repeat(90_000);
    stage.edit("base/configs/common.yaml", "ENABLED: \"yes\"", &format!("ENABLED: {long}"));
    stage.render().exits(1).says(&[
        "can't be written; nothing was changed",
        "Caused by: No space left on device",
        "Hint: make room",
    ]);
    assert_eq!(stage.output(), before);
    assert_eq!(fs::read_dir(&out).unwrap().count(), 4, "no staging folder is left");
    stage.edit("base/configs/common.yaml", &long, "short");
    stage.render().exits(0);
    assert!(stage.output()["vm/hello-functional-test/platform-config.sh"].contains("'short'"));
}

/// A small file system, gone when dropped.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: &std::path::Path, size: &str) -> Option<SmallDisk> {
        let mut mount = std::process::Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(path);
        mount.output().is_ok_and(|output| output.status.success()).then(|| SmallDisk(path.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_readme_of_another_text_is_replaced_in_the_folder_of_a_cluster_type_only() {
    let stage = Stage::small();
    stage.render().exits(0);
    stage.write("out/drone/README.md", "mine");
    stage.write("out/notes/README.md", "mine");
    stage.write("out/notes/hello/namespace.yaml", "mine");
    stage.render().exits(0).says(&["wrote 1 file, deleted 0"]);
    assert_eq!(stage.read("out/drone/README.md"), stage.read("out/vm/README.md"));
    assert_eq!(
        (stage.read("out/notes/README.md"), stage.read("out/notes/hello/namespace.yaml")),
        ("mine".into(), "mine".into())
    );
}

#[test]
fn json_that_holds_terminal_commands_is_escaped() {
    let stage = Stage::small();
    stage.edit("control-plane/configs/west.yaml", "  REGION: west\n", "  REGION: \"\\x9b2J\\u202e\"\n");
    let args =
        ["explain", "drone/hello-functional-test", "REGION", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml"];
    let run = stage.kedge(args.iter().chain(&["-o", "json"])).exits(0);
    assert!(run.stdout.contains("\\u009b2J\\u202e"), "{}", run.stdout);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(value["configuration"]["REGION"]["value"], "\u{9b}2J\u{202e}");
}

#[test]
fn output_through_a_closed_pipe_is_no_error() {
    let stage = Stage::small();
    let program = env!("CARGO_BIN_EXE_kedge");
    let mut shell = std::process::Command::new("bash");
    let script = format!("set -o pipefail; '{program}' completions bash | head -c 1 >/dev/null");
    let run = run(shell.current_dir(stage.path()).args(["-c", &script]));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
}

#[test]
fn output_that_cannot_be_printed_is_an_error() {
    let stage = Stage::small();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let mut command = stage.command();
    command.args(["completions", "bash"]).stdout(full);
    run(&mut command).exits(1).says(&["Error: the output can't be printed\nCaused by: No space left on device"]);
}

#[test]
fn old_writers_need_no_template() {
    let stage = Stage::small();
    stage.remove("base/templates/config.yaml");
    stage.write(
        "base/configs/common.yaml",
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    platform-config: \"true\"\ndata:\n  ENABLED: \"yes\"\n",
    );
    stage.edit("control-plane/configs/west.yaml", "  LIMITS: |\n    cpu: 500m\n    extra: [two]\n", "");
    stage.edit("control-plane/cluster-types/vm.yaml", "configType: env", "configType: envFile");
    stage.render().exits(0);
    let files = stage.output();
    insta::assert_snapshot!(files["vm/hello-functional-test/platform-config.sh"], @r#"
    export ENABLED="yes"
    export REGION="8080"
    "#);
    insta::assert_snapshot!(files["drone/hello-functional-test/platform-config.yaml"], @r#"
    apiVersion: v1
    data:
      DATABASE_URL: mysql://west:3306
      ENABLED: "yes"
      REGION: west
    kind: ConfigMap
    metadata:
      name: platform-config
      namespace: dev-drone-hello-functional-test
    "#);
}

#[test]
fn an_output_inside_or_around_the_control_plane_is_refused() {
    let stage = Stage::small();
    let render = |out: &str| {
        stage.kedge(["render", "-e", "dev", "-c", "control-plane", "-s", "sources.yaml", "--out", out]).exits(1)
    };
    for out in ["control-plane/out", "control-plane", "control-plane/new/../out"] {
        render(out).says(&[
            "is inside the control plane `control-plane`",
            "Hint: write to a folder beside it: what is written would be read as input by the next run",
        ]);
    }
    render(".").says(&["Error: the control plane `control-plane` is inside the output folder `.`"]);
    assert!(!stage.file("control-plane/out").exists() && !stage.file("control-plane/new").exists());
}

#[test]
fn a_first_render_that_was_killed_is_done_by_the_next() {
    let stage = Stage::small();
    stage.write("out/.kedge-tmp-4711-0/0", "half");
    std::fs::create_dir_all(stage.file("out/drone/hello-functional-test")).unwrap();
    std::fs::create_dir_all(stage.file("out/vm")).unwrap();
    stage.render().exits(0);
    assert!(!stage.file("out/.kedge-tmp-4711-0").exists());
    assert!(stage.file("out/drone/README.md").is_file());
    stage.render().exits(0).says(&["wrote 0 files, deleted 0"]);
}
