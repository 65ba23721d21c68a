//! From `kedge init` to every other command, on the sample that it makes.

use crate::stage::{Run, Stage};

const PLACE: &str = "my sample";

fn sample() -> Stage {
    let stage = Stage::empty();
    stage.kedge(["init", PLACE]).exits(0).shows(&["Made a sample platform in my sample:"]);
    stage
}

fn on_sample(stage: &Stage, args: &[&str]) -> Run {
    let control_plane = format!("{PLACE}/control-plane.git");
    let sources = format!("{PLACE}/sources.yaml");
    stage.kedge(args.iter().copied().chain(["--control-plane", &control_plane, "--sources", &sources]))
}

#[test]
fn the_sample_is_valid_in_every_environment() {
    let run = on_sample(&sample(), &["validate"]).exits(0);
    assert_eq!(run.stdout, "");
    assert!(run.stderr.starts_with("no problems in environments dev, prod, stage ("), "{}", run.stderr);
}

#[test]
fn the_sample_renders_and_a_second_render_writes_nothing() {
    let stage = sample();
    for environment in ["dev", "stage", "prod"] {
        let out = format!("{PLACE}/rendered/{environment}");
        let args = ["render", "--environment", environment, "--out", &out];
        let first = on_sample(&stage, &args).exits(0);
        assert!(first.stderr.starts_with("wrote ") && !first.stderr.starts_with("wrote 0 files"), "{}", first.stderr);
        on_sample(&stage, &args).exits(0).says(&["wrote 0 files, deleted 0, kept "]);
    }
}

#[test]
fn the_sample_renders_without_a_sources_file_too() {
    let stage = sample();
    let control_plane = format!("{PLACE}/control-plane.git");
    let render = |out: &str, more: &[&str]| {
        let args = ["render", "-e", "dev", "-c", &control_plane, "--out", out];
        stage.kedge(args.iter().chain(more)).exits(0);
        crate::stage::tree(&stage.file(out))
    };
    let sources = format!("{PLACE}/sources.yaml");
    assert_eq!(render("fetched", &[]), render("from-sources", &["-s", &sources]));
}

#[test]
fn the_last_commit_of_the_sample_is_a_plan_with_a_change() {
    let stage = sample();
    let run = on_sample(&stage, &["plan", "--environment", "dev"]).exits(0);
    let named = on_sample(&stage, &["plan", "--environment", "dev", "--from", "dev~1", "--to", "dev"]).exits(0);
    let (header, rest) = run.stdout.split_once('\n').unwrap();
    let (named_header, named_rest) = named.stdout.split_once('\n').unwrap();
    assert_eq!(rest, named_rest);
    assert!(!rest.starts_with("0 of "), "{rest}");
    let commit = header.strip_prefix("plan for dev: ").and_then(|rest| rest.get(..10)).unwrap();
    assert!(named_header.starts_with(&format!("plan for dev: dev~1 ({commit}) → dev (")), "{named_header}");
    let first = on_sample(&stage, &["plan", "--environment", "dev", "--to", "dev~1"]).exits(0);
    assert!(first.stdout.contains(" added\n"), "before the first commit there is nothing: {}", first.stdout);
}

#[test]
fn a_value_of_the_sample_is_explained_with_its_files() {
    let run = on_sample(&sample(), &["explain", "drone/hello-functional-test", "DATABASE_URL", "--environment", "dev"]);
    run.exits(0).shows(&["DATABASE_URL = ", "overridden", "wins", ".yaml:"]);
}

#[test]
fn a_missing_label_of_the_sample_is_named() {
    let run = on_sample(&sample(), &["explain", "drone/hello-uat", "--environment", "stage"]);
    run.exits(0).shows(&["drone/hello-uat in stage: not assigned", "label `"]);
}

#[test]
fn an_environment_that_does_not_exist_lists_those_that_do() {
    let run = on_sample(&sample(), &["render", "--environment", "qa", "--out", "out"]);
    run.exits(1).says(&["Error: there is no environment `qa` in", "Hint: the environments are dev, prod, stage"]);
}

#[test]
fn a_revision_that_does_not_exist_lists_the_branches() {
    let stage = sample();
    let control_plane = format!("{PLACE}/control-plane.git@devv");
    let run = stage.kedge(["render", "-e", "dev", "-c", &control_plane, "--out", "out"]);
    run.exits(1)
        .says(&["Error: there is no branch, tag or commit `devv`", "Hint: its branches are dev, main, prod, stage"]);
}

#[test]
fn a_side_of_a_plan_that_is_no_revision_is_wrong_usage() {
    let run = on_sample(&sample(), &["plan", "-e", "dev", "--to", "devv"]);
    run.exits(2)
        .says(&["Error: there is no branch, tag or commit `devv`", "Hint: its branches are dev, main, prod, stage"]);
}

#[test]
fn a_revision_behind_an_at_is_read() {
    let stage = sample();
    let render = |revision: &str, out: &str| {
        let control_plane = format!("{PLACE}/control-plane.git{revision}");
        stage
            .kedge(["render", "-e", "dev", "-c", &control_plane, "-s", "my sample/sources.yaml", "--out", out])
            .exits(0);
        crate::stage::tree(&stage.file(out))
    };
    assert_eq!(render("", "head"), render("@dev", "dev"));
    assert_ne!(render("", "head"), render("@dev~1", "before"));
}

#[test]
fn a_problem_that_environments_share_is_listed_once() {
    let stage = sample();
    // Without the application every environment misses the same repository.
    stage.edit("my sample/sources.yaml", "    path: hello.git\n", "    path: gone.git\n");
    let run = on_sample(&stage, &["validate"]).exits(1);
    assert_eq!(run.stdout.matches("WorkloadRegistration hello can't be loaded").count(), 1, "{}", run.stdout);
}

#[test]
fn an_environment_that_cannot_be_read_does_not_hide_the_others() {
    let stage = sample();
    stage.remove("my sample/control-plane.git/refs/heads/stage");
    let run = on_sample(&stage, &["validate"]).exits(1);
    let run = run.shows(&["error[EnvironmentUnreadable]: environment `stage` can't be read", "= in: stage"]);
    assert!(run.stderr.contains("1 error in environments dev, prod, stage (5 assignments)"), "{}", run.stderr);
}

#[test]
fn init_refuses_a_folder_that_is_in_use() {
    let stage = sample();
    stage.kedge(["init", PLACE]).exits(1).says(&["Error: `my sample` exists and isn't empty", "Hint: "]);
}

/// A checkout of the control plane's dev branch, made with the `git` program; none where there is no such program.
fn checkout(stage: &Stage, test: &str) -> bool {
    let clone = format!("{PLACE}/control-plane.git");
    let mut git = std::process::Command::new("git");
    git.current_dir(stage.path()).args(["clone", "-q", "--branch", "dev", &clone, "checkout"]);
    match git.status() {
        Ok(status) => assert!(status.success()),
        Err(_) => crate::stage::skip(test, "there is no git program"),
    }
    stage.file("checkout").exists()
}

#[test]
fn a_checkout_is_validated_with_its_files_as_they_are() {
    let stage = sample();
    if !checkout(&stage, "sample::a_checkout_is_validated_with_its_files_as_they_are") {
        return;
    }
    let validate = || {
        let mut command = stage.command();
        command.current_dir(stage.file("checkout")).args(["validate", "-s", "../my sample/sources.yaml"]);
        crate::stage::run(&mut command)
    };
    validate().exits(0).says(&["no problems in environment dev (3 assignments)"]);
    stage.write("checkout/new.yaml", "a: [");
    validate().exits(1).shows(&["--> new.yaml:"]);
}

#[test]
fn an_output_inside_a_checkout_of_the_control_plane_is_refused() {
    let stage = sample();
    if !checkout(&stage, "sample::an_output_inside_a_checkout_of_the_control_plane_is_refused") {
        return;
    }
    let args = ["render", "-e", "dev", "-c", "checkout", "-s", "my sample/sources.yaml", "--out", "checkout/out"];
    stage.kedge(args).exits(1).says(&["`checkout/out` is inside the control plane `checkout`"]);
    assert!(!stage.file("checkout/out").exists());
}

#[test]
fn a_branch_that_is_no_environment_is_validated_with_a_note() {
    let stage = sample();
    if !checkout(&stage, "sample::a_branch_that_is_no_environment_is_validated_with_a_note") {
        return;
    }
    let git = |args: &[&str]| {
        let mut git = std::process::Command::new("git");
        assert!(git.current_dir(stage.file("checkout")).args(args).status().unwrap().success());
    };
    let validate = |more: &[&str]| {
        stage.kedge(["validate", "checkout", "-s", "my sample/sources.yaml"].iter().chain(more)).exits(0)
    };
    let note = |name: &str| {
        format!(
            "note: `{name}` isn't an environment; name one with --environment (dev, prod, stage) to check its assignments\n"
        )
    };
    git(&["switch", "-q", "-c", "feature"]);
    validate(&[]).says(&[&note("feature"), "in environment feature (0 assignments)"]);
    git(&["checkout", "-q", "--detach"]);
    validate(&[]).says(&[&note("checkout")]);
    assert!(!validate(&["-e", "dev"]).stderr.contains("note:"));
}

#[test]
fn edits_of_a_checkout_are_planned_against_its_branch() {
    let stage = sample();
    if !checkout(&stage, "sample::edits_of_a_checkout_are_planned_against_its_branch") {
        return;
    }
    let plan = |more: &[&str]| {
        let args = ["plan", "-e", "dev", "-c", "checkout", "-s", "my sample/sources.yaml"];
        stage.kedge(args.iter().chain(more)).exits(0)
    };
    let run = plan(&["--to", "checkout"]);
    assert!(run.stdout.starts_with("plan for dev: dev (") && run.stdout.contains(") → checkout\n"), "{}", run.stdout);
    assert!(run.stdout.ends_with("\n0 of 3 assignments on 0 of 3 cluster types\n"));
    stage.remove("checkout/scheduling/lines.yaml");
    let run = plan(&["--from", "dev", "--to", "checkout"])
        .shows(&["- factory-line/hello-line-test removed\n", "1 of 3 assignments"]);
    let body = |text: &str| text.split_once('\n').unwrap().1.to_owned();
    assert_eq!(body(&run.stdout), body(&plan(&["--to", "./checkout"]).stdout));
    // A clone has the other branches as those of `origin` only.
    let args = ["render", "-e", "stage", "-c", "checkout", "-s", "my sample/sources.yaml", "--out", "out"];
    stage.kedge(args).exits(0);
}

#[test]
fn every_example_of_the_help_works_on_the_sample() {
    let stage = sample();
    if !checkout(&stage, "sample::every_example_of_the_help_works_on_the_sample") {
        return;
    }
    let mut seen = 0;
    for command in [&["-h"][..], &["validate", "-h"], &["plan", "-h"], &["explain", "-h"], &["render", "-h"]] {
        // In a narrow terminal too: a wrapped line can't be copied.
        let help = crate::stage::run(stage.command().env("COLUMNS", "80").args(command)).exits(0).stdout;
        let (_, examples) = help.split_once("\nExamples:\n").unwrap();
        // What asks a hub is tested with one.
        let examples = examples.split("With a hub:").next().unwrap();
        // A whole fleet runs until it is ended: the suite `up` does that.
        let is_short = |line: &&str| line.split(' ').next() != Some("up") && !line.contains(" --hub");
        for line in examples.lines().filter_map(|line| line.strip_prefix("    kedge ")).filter(is_short) {
            // Those that name a repository are for its folder, the others for a checkout.
            let folder = if line.contains("control-plane.git") { PLACE } else { "checkout" };
            let mut command = stage.command();
            command.current_dir(stage.file(folder)).args(line.split(' '));
            let run = crate::stage::run(&mut command);
            assert_eq!(run.code, 0, "kedge {line}\n{}{}", run.stdout, run.stderr);
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen}");
}
