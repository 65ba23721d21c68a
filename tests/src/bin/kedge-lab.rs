//! Starts one part of the lab and keeps it until Ctrl-C or SIGTERM: for the suites' shared PostgreSQL and Kubernetes, and for trying things by
//! hand. It prints what a client needs as lines NAME=VALUE.
#![allow(clippy::unwrap_used, reason = "the lab is test code")]

use std::env;
use std::process::ExitCode;

use kedge_tests::lab::git_server::GitServer;
use kedge_tests::lab::gitea::Gitea;
use kedge_tests::lab::kubernetes::Kubernetes;
use kedge_tests::lab::postgres::{Fsync, Postgres};
use nix::sys::signal::{SigSet, Signal};

const USAGE: &str = "Start one part of the lab and keep it until Ctrl-C or SIGTERM.

Usage: kedge-lab postgres
       kedge-lab kubernetes
       kedge-lab gitea [REPOSITORY…]
       kedge-lab git [REPOSITORY…]
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (part, names) = arguments.split_first().map_or(("", &[][..]), |(part, names)| (part.as_str(), names));
    // Blocked before any thread starts, so that they wait for us instead of ending the process.
    let ends = SigSet::from_iter([Signal::SIGINT, Signal::SIGTERM]);
    ends.thread_block().unwrap();
    let wait = || {
        ends.wait().unwrap();
    };
    match part {
        "postgres" => {
            let Some(postgres) = Postgres::start(Fsync::Off) else { return ExitCode::FAILURE };
            println!("KEDGE_TEST_POSTGRES={}", postgres.url("postgres"));
            wait();
        }
        "kubernetes" => {
            let Some(kubernetes) = Kubernetes::start() else { return ExitCode::FAILURE };
            println!("KEDGE_TEST_KUBERNETES={}", kubernetes.folder().display());
            println!("KUBECONFIG={}", kubernetes.kubeconfig().display());
            wait();
        }
        "gitea" => {
            let Some(gitea) = Gitea::start() else { return ExitCode::FAILURE };
            println!("URL={}\nTOKEN={}", gitea.url(), gitea.token());
            for name in names {
                gitea.create_repository(name);
                println!("REPOSITORY={}", gitea.push_url(name));
            }
            wait();
        }
        "git" => {
            let server = GitServer::start();
            for name in names {
                server.create(name);
                println!("REPOSITORY={}", server.url(name));
            }
            wait();
        }
        _ => {
            eprint!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
