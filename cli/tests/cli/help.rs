//! What the program says about itself.

use crate::stage::Stage;

const COMMANDS: [&str; 31] = [
    "up",
    "init",
    "validate",
    "plan",
    "explain",
    "render",
    "login",
    "open",
    "status",
    "drift",
    "get",
    "describe",
    "compare",
    "token",
    "bundle",
    "person",
    "access",
    "cluster",
    "hold",
    "unhold",
    "publish",
    "rollout",
    "promote",
    "policy",
    "evidence",
    "restart",
    "reapply",
    "history",
    "audit",
    "completions",
    "man",
];

#[test]
fn the_overview_lists_the_commands_in_the_order_of_a_day() {
    let run = Stage::empty().kedge(["--help"]).exits(0);
    let places: Vec<usize> = COMMANDS.iter().map(|name| run.stdout.find(&format!("\n  {name} ")).unwrap()).collect();
    assert!(places.is_sorted(), "{}", run.stdout);
    insta::assert_snapshot!(Stage::empty().kedge(["-h"]).exits(0).stdout, @r"
    Decide what runs where in a fleet, and with which configuration

    Usage: kedge <COMMAND>

    Commands:
      up           Start a whole fleet on this machine to try Kedge
      init         Create a sample platform to try Kedge
      validate     Show every problem of a control plane
      plan         Show what a change would do: assignments, configuration keys and files
      explain      Explain why an assignment exists and where its values come from
      render       Write the GitOps files of an environment to a folder
      login        Remember a hub and an access token
      open         Open the hub's page in a browser
      status       Show the fleet at a glance: what runs, what moves, what is wrong
      drift        Compare what should run with what runs, over the whole fleet
      get          Show what the hub knows: clusters, assignments, problems and more
      describe     Show one object in full detail
      compare      Compare two environments, two cluster types, or one of them at two times
      token        Create, list and revoke join tokens for new clusters, and sign join requests from
                   files
      bundle       Create and inspect bundles for clusters without a network
      person       Add, list, change and remove people
      access       Create, list and revoke access tokens for people and programs
      cluster      Move, relabel, set, replace, retire or revoke a cluster
      hold         Hold an assignment on a cluster: nothing changes it there
      unhold       Release a hold of an assignment on a cluster
      publish      Confirm a publish that waits because it removes most of a cluster type
      rollout      Follow and control rollouts
      promote      Show promotions, and start, approve or override one
      policy       Show the promotion policy in force, or approve a looser one
      evidence     List and export the evidence of promotions and rollouts
      restart      Restart a workload on every cluster that the selectors name
      reapply      Retry failed content on every cluster that the selectors name
      history      Show what happened, newest first
      audit        Show who changed what on the hub, newest first
      completions  Print a completion script for a shell
      man          Print the manual page, or write one for each command
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Examples:
      See a whole fleet on this machine:
        kedge up --open

      Make a sample platform and look around:
        kedge init demo

      In a checkout, check a change, see what it would do, and know why:
        kedge validate
        kedge plan -e dev --from dev --to .
        kedge explain -e dev drone/hello-functional-test

      Write the files of an environment:
        kedge render -e dev -c control-plane.git --out gitops

      With a hub: log in, see what is wrong, add a cluster, follow what runs:
        kedge login https://hub.example:7480 --token-file token
        kedge status
        kedge get problems
        kedge token create -e dev --cluster-type drone
        kedge get clusters --watch
        kedge describe assignment drone/hello-functional-test -e dev
        kedge compare stage prod

      Follow a change through the rings, and wait until every cluster has it:
        kedge promote
        kedge rollout status -e prod --workload hello --wait

      For hosts without a network: deliver by file, and import their status:
        kedge bundle export -e prod --cluster-type press -o press.kedge
        kedge status import press-7.kedge

    Exit codes: 0 success, 1 failed or invalid, 2 wrong usage, 3 done, but something was quarantined,
    left
    out or isn't complete yet.
    ");
}

#[test]
fn every_command_has_help_with_examples() {
    for command in COMMANDS {
        let run = Stage::empty().kedge([command, "--help"]).exits(0);
        let first = run.stdout.lines().next().unwrap();
        assert!(first.ends_with('.') || first.len() < 100, "{first}");
        assert!(run.stdout.contains("\nExamples:\n"), "{}", run.stdout);
    }
}

#[test]
fn the_help_of_render_is_stable() {
    insta::assert_snapshot!(Stage::empty().kedge(["render", "--help"]).exits(0).stdout, @r"
    Write the GitOps files of an environment to a folder.

    Only files that differ are written; Kedge's own files that are no longer needed are deleted, all
    others are left alone. An assignment that can't be rendered keeps the files it has. While an input
    of the platform fails to load nothing is deleted.

    Exits with 0, with 3 when something was quarantined or left out, and with 1 when the command failed.

    Usage: kedge render [OPTIONS] --environment <NAME> --out <DIR>

    Options:
      -e, --environment <NAME>
              The environment; of a Git repository, one that `.environments/` on main names

      -c, --control-plane <PATH[@REV]>
              A folder that is the environment's branch, or a Git repository, whose revision defaults to
              that branch
              
              [default: .]

      -s, --sources <FILE>
              A file that lists where each repository is; nothing is fetched then

          --cache <DIR>
              Where fetched repositories are kept [default: kedge/git in the user's cache folder]

          --out <DIR>
              The folder to write to: new, empty, or one that kedge wrote

          --dry-run
              Print what would be written and deleted, and change nothing

      -o, --output <FORMAT>
              How to print what was done
              
              [default: text]
              [possible values: text, json, yaml]

      -h, --help
              Print help (see a summary with '-h')

    Examples:
      Render the branch of dev into a checkout of the GitOps repository:
        kedge render -e dev -c control-plane.git --out gitops

      See what would be written:
        kedge render -e dev -c control-plane.git --out gitops --dry-run

      Render without a network, with repositories from a file:
        kedge render -e dev -c control-plane.git -s sources.yaml --out out

      Render an old commit:
        kedge render -e dev -c control-plane.git@dev~1 --out out
    ");
}

#[test]
fn the_version_is_one_line() {
    let run = Stage::empty().kedge(["--version"]).exits(0);
    assert_eq!(run.stdout, format!("kedge {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn completions_exist_for_each_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        Stage::empty().kedge(["completions", shell]).exits(0).shows(&["kedge", "render", "describe"]);
    }
}

#[test]
fn manual_pages_are_printed_or_written_one_a_command() {
    let stage = Stage::empty();
    stage.kedge(["man"]).exits(0).shows(&[
        ".TH kedge 1",
        "kedge\\-render(1)",
        ".SH EXAMPLES\n.nf\n",
        ".SH \"EXIT STATUS\"\n",
    ]);
    stage.kedge(["man", "--out", "man/man1"]).exits(0);
    for command in COMMANDS {
        assert!(
            stage.read(&format!("man/man1/kedge-{command}.1")).contains(&format!("kedge\\-{command}")),
            "{command}"
        );
    }
    for page in ["kedge", "kedge-token-create", "kedge-cluster-move", "kedge-publish-confirm", "kedge-rollout-status"] {
        assert!(stage.file(&format!("man/man1/{page}.1")).is_file(), "{page}");
    }
}

#[test]
fn what_people_type_has_examples_that_are_understood() {
    for command in [
        &["token", "list"][..],
        &["token", "revoke"],
        &["access", "list"],
        &["access", "revoke"],
        &["access", "whoami"],
        &["person", "list"],
        &["person", "set"],
        &["person", "remove"],
        &["bundle", "show"],
    ] {
        let args: Vec<&str> = command.iter().copied().chain(["--help"]).collect();
        let example = format!("kedge {}", command.join(" "));
        let run = Stage::empty().kedge(args).exits(0);
        let examples = run.stdout.split_once("Examples:").map(|(_, examples)| examples).unwrap_or_default();
        assert!(examples.contains(&example), "{}", run.stdout);
    }
    let run = Stage::empty().kedge(["cluster", "set", "--help"]).exits(0);
    assert!(run.stdout.contains("--relay on") && !run.stdout.contains("--relay true"), "{}", run.stdout);
    let run = Stage::empty().kedge(["login", "--help"]).exits(0);
    assert!(run.stdout.contains("/var/lib/kedge-hub/admin-token"), "{}", run.stdout);
}
