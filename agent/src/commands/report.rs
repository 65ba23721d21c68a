//! `kedge-agent report`: another reconciler (Ansible, Zarf, a script) tells what it did. Called by `main`.

use super::error::{CommandError, Exit};
use super::output::print;
use super::person;
use crate::clock::{Clock as _, SystemClock};
use crate::external::External;
use crate::overview::Overview;
use crate::paths::Paths;

/// Report the result of another reconciler.
///
/// For assignments that Kedge schedules and somebody else applies, such as an Ansible playbook: the result goes into this host's
/// status, and to the hub at the next check-in. It is kept on disk first, so it works without a network.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  At the end of a playbook:
    kedge-agent report --assignment hello-prod --revision \"$(git rev-parse HEAD)\" --result ok

  When it failed:
    kedge-agent report --assignment hello-prod --revision \"$commit\" --result failed --message 'no disk space'")]
pub struct ReportArgs {
    /// The assignment's name, without the cluster type
    #[arg(long, value_name = "NAME")]
    assignment: String,
    /// What was applied: a commit, or what the reconciler calls it
    #[arg(long)]
    revision: String,
    /// How it went
    #[arg(long, value_enum)]
    result: Outcome,
    /// A message for people, mainly for failures
    #[arg(long, value_name = "TEXT", default_value = "")]
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Outcome {
    Ok,
    Failed,
}

pub fn run(args: &ReportArgs, paths: &Paths) -> Result<Exit, CommandError> {
    // A host that hasn't joined has nobody to tell.
    person::identity(paths)?;
    let overview = Overview::read(paths)?;
    let name = match overview.find(&args.assignment) {
        Ok(assignment) => assignment.name.as_str(),
        // Kept all the same: a playbook may be done before the host hears that it should be.
        Err(error) => {
            eprint!("{}", CommandError::from(error).to_text().replacen("Error:", "Warning:", 1));
            args.assignment.as_str()
        }
    };
    let ok = args.result == Outcome::Ok;
    let put = External::of(paths).put(name, &args.revision, ok, &args.message, SystemClock.now());
    put.map_err(|error| CommandError::failed("the result can't be kept", error))?;
    let word = if ok { "ok" } else { "failed" };
    print(&format!("{} at {}: {word}; the hub learns of it with the next contact\n", name, args.revision))?;
    Ok(Exit::Success)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::commands::sample;
    use crate::link::fake::Authority;

    #[test]
    fn a_result_is_kept_for_the_next_contact() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        let args = |revision: &str, result| ReportArgs {
            assignment: "hello-prod".to_owned(),
            revision: revision.to_owned(),
            result,
            message: "no disk space".to_owned(),
        };
        assert!(matches!(run(&args("abc", Outcome::Ok), &paths), Err(CommandError::NotJoined)));
        sample::join(&paths, &Authority::new(), "https://127.0.0.1:1");
        run(&args("abc", Outcome::Ok), &paths).unwrap();
        run(&args("def", Outcome::Failed), &paths).unwrap();
        let kept = External::of(&paths).read().unwrap().remove("hello-prod").unwrap();
        assert_eq!((kept.revision.as_str(), kept.ok, kept.last_ok.as_deref()), ("def", false, Some("abc")));
    }
}
