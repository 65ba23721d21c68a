//! `kedge promote`: which commit of main is where, and letting one in. Called by `main`.

use anyhow::Result;
use kedge_model::command::quote;
use serde_json::{Map, Value, json};

use crate::error::{Exit, UsageError};
use crate::get::columns::{moment, text};
use crate::hub::HubArgs;
use crate::output::{Format, Table, print_json, print_text, print_yaml, say};

/// Show where commits of main are, and let one into an environment
///
/// `kedge promote` shows the whole chain, `kedge promote ENVIRONMENT` one environment; neither changes anything. `approve` agrees to
/// the commit that waits, where the policy asks people. `start` lets it begin now, although its window is closed. `override` lets it
/// in although the environments before it haven't passed, with a reason that stays in the evidence for ever.
#[derive(Clone, Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  Where is everything, and what waits for what?
    kedge promote
    kedge promote prod

  Agree to what waits:
    kedge promote approve prod --reason \"release meeting\"

  Let it begin now, outside its window:
    kedge promote start prod --reason \"agreed with the line\"

  Let a commit in, whatever the environments before it say:
    kedge promote override prod --commit 4f2a91c --reason \"fire at the customer's, agreed with Ada\""
)]
pub struct PromoteArgs {
    #[command(subcommand)]
    action: Option<PromoteAction>,

    /// The environment to show [default: the whole chain]
    #[arg(value_name = "ENVIRONMENT")]
    environment: Option<String>,

    /// Options of the form that acted without saying so: refused with the command that does it now.
    #[command(flatten)]
    before: BeforeArgs,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT", global = true)]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum PromoteAction {
    /// Let the commit that waits begin now, outside its window
    #[command(after_help = "\
Examples:
  kedge promote start prod")]
    Start(ActionArgs),
    /// Agree to the commit that waits, where the policy asks people
    #[command(after_help = "\
Examples:
  kedge promote approve prod --reason \"seen in stage\"")]
    Approve(ActionArgs),
    /// Let a commit in although the environments before it haven't passed
    #[command(after_help = "\
Examples:
  kedge promote override prod --reason \"stage is down, the fix is urgent\"")]
    Override(ActionArgs),
}

#[derive(Clone, Debug, clap::Args)]
struct ActionArgs {
    /// The environment that it enters
    #[arg(value_name = "ENVIRONMENT")]
    environment: String,

    /// A commit of main [default: the one that waits]
    #[arg(long, value_name = "SHA")]
    commit: Option<String>,

    /// Why; it stays in the evidence, and an override needs it
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,
}

#[derive(Clone, Debug, clap::Args)]
struct BeforeArgs {
    #[arg(long, hide = true)]
    show: bool,
    #[arg(long, hide = true)]
    approve: bool,
    #[arg(long = "override", hide = true)]
    overrides: bool,
    #[arg(long, hide = true)]
    commit: Option<String>,
    #[arg(long, hide = true)]
    reason: Option<String>,
}

/// Show the promotion policy in force, or agree to a looser one
///
/// A policy can't loosen its own gate: one that is looser than the one in force waits here for an approval, and this says why.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge policy
  kedge policy --approve --reason \"the lab has no night shift any more\"")]
pub struct PolicyArgs {
    /// Agree to the looser policy that waits
    #[arg(long)]
    approve: bool,

    /// Why; it stays with the policy
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    reason: String,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

pub fn run(args: &PromoteArgs) -> Result<Exit> {
    if let Some(action) = &args.action {
        return action.run(args);
    }
    if let Some(error) = args.before.refuse(args.environment.as_deref()) {
        return Err(error.into());
    }
    let hub = args.hub.open()?;
    match &args.environment {
        None => shown(&hub.get(&["promotions"], &[])?.document, args.output, chain),
        Some(environment) => shown(&hub.get(&["promotions", environment], &[])?.document, args.output, one),
    }
}

impl PromoteAction {
    fn run(&self, args: &PromoteArgs) -> Result<Exit> {
        let (PromoteAction::Start(action) | PromoteAction::Approve(action) | PromoteAction::Override(action)) = self;
        let overrides = matches!(self, PromoteAction::Override(_));
        if overrides && action.reason.trim().is_empty() {
            return Err(UsageError::new("an override needs a reason", "say why with --reason").into());
        }
        let hub = args.hub.open()?;
        let mut body = Map::from_iter([("reason".to_owned(), json!(action.reason))]);
        body.extend(action.commit.as_ref().map(|commit| ("commit".to_owned(), json!(commit))));
        let approves = matches!(self, PromoteAction::Approve(_));
        if !approves {
            body.insert("override".to_owned(), json!(overrides));
        }
        let path = ["promotions", &action.environment, "approve"];
        let document = hub.post(&path[..if approves { 3 } else { 2 }], &Value::Object(body))?.document;
        say(&standing(&document));
        shown(&document, args.output, one)
    }
}

impl BeforeArgs {
    /// Showing needs none of them: who gives one wanted to act.
    fn refuse(&self, environment: Option<&str>) -> Option<UsageError> {
        let verb = if self.approve {
            "approve"
        } else if self.overrides {
            "override"
        } else if self.commit.is_some() || self.reason.is_some() {
            "start"
        } else {
            return None;
        };
        let environment = quote(environment.unwrap_or("ENVIRONMENT"));
        let commit = self.commit.as_ref().map(|commit| format!(" --commit {}", quote(commit))).unwrap_or_default();
        Some(UsageError::new(
            "`kedge promote ENVIRONMENT` only shows where commits are",
            format!("to act: kedge promote {verb} {environment}{commit} --reason TEXT"),
        ))
    }
}

pub fn policy(args: &PolicyArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    let document = match args.approve {
        true => hub.post(&["policy", "approve"], &json!({"reason": args.reason}))?.document,
        false => hub.get(&["promotions"], &[])?.document,
    };
    shown(&document, args.output, policies)
}

fn shown(document: &Value, output: Format, as_text: fn(&Value) -> String) -> Result<Exit> {
    match output {
        Format::Json => print_json(document)?,
        Format::Yaml => print_yaml(document)?,
        Format::Text => print_text(&as_text(document))?,
    }
    Ok(Exit::Success)
}

fn chain(document: &Value) -> String {
    let items: Vec<&Value> = document["items"].as_array().into_iter().flatten().collect();
    if items.is_empty() {
        return "no PromotionPolicy is in force: nothing is promoted\n".to_owned();
    }
    let mut table = Table::default();
    table.row(["ENVIRONMENT", "AFTER", "COMMIT", "STATE", "SUBJECT", "WAITS FOR"].map(str::to_owned));
    for item in items {
        let newest = to_look_at(item);
        let after: Vec<String> = item["after"].as_array().into_iter().flatten().map(text).collect();
        let waits: Vec<String> = newest["waitsFor"].as_array().into_iter().flatten().map(text).collect();
        table.row([
            text(&item["environment"]),
            if after.is_empty() { "-".to_owned() } else { after.join(", ") },
            short(&newest["commit"]),
            text(&newest["state"]),
            text(&newest["subject"]),
            waits.join("; "),
        ]);
    }
    table.to_text("") + &remarks(document)
}

/// A policy that waits or can't be read is news for whoever looks at the chain.
fn remarks(document: &Value) -> String {
    let mut out = String::new();
    for (field, word) in
        [("waiting", "a looser policy waits for an approval"), ("broken", "the newest policy can't be used")]
    {
        if document[field].is_object() {
            let given = document[field]["approvals"].as_str().map(|given| format!("; {given}")).unwrap_or_default();
            let (why, commit) = (reasons(&document[field]), short(&document[field]["commit"]));
            out.push_str(&format!("{word}: {why} ({commit}){given}\n"));
        }
    }
    out
}

fn one(document: &Value) -> String {
    let mut out = format!("{}\n", standing(document));
    if document["refused"].is_object() {
        let refused = &document["refused"];
        out.push_str(&format!(
            "its branch names {}, which isn't followed: {} (by {}, {})\n",
            short(&refused["commit"]),
            text(&refused["why"]),
            text(&refused["by"]),
            moment(&refused["at"])
        ));
    }
    if let Some(trouble) = document["trouble"].as_str() {
        out.push_str(&format!("{trouble}\n"));
    }
    let mut table = Table::default();
    table.row(["COMMIT", "STATE", "SUBJECT", "AUTHOR", "ENTERED", "PASSED", "ROLLOUT", "NOTES"].map(str::to_owned));
    for promotion in document["promotions"].as_array().into_iter().flatten() {
        let mut notes: Vec<String> = promotion["waitsFor"].as_array().into_iter().flatten().map(text).collect();
        notes.extend(promotion["why"].as_str().map(str::to_owned));
        let skipped = promotion["skipped"].as_array().map_or(0, Vec::len);
        if skipped > 0 {
            let all: Vec<String> = promotion["skipped"].as_array().into_iter().flatten().map(short).collect();
            notes.push(format!("took over {}", all.join(", ")));
        }
        for word in promotion["words"].as_array().into_iter().flatten() {
            let reason = word["reason"].as_str().map(str::trim).filter(|reason| !reason.is_empty());
            let reason = reason.map(|reason| format!(": {}", text(&json!(reason)))).unwrap_or_default();
            notes.push(format!("{} by {}{reason}", text(&word["said"]), text(&word["who"])));
        }
        table.row([
            short(&promotion["commit"]),
            text(&promotion["state"]),
            text(&promotion["subject"]),
            text(&promotion["author"]),
            moment(&promotion["enteredAt"]),
            moment(&promotion["passedAt"]),
            text(&promotion["rollout"]),
            notes.join("; "),
        ]);
    }
    out + &table.to_text("")
}

/// The promotion that somebody may have to do something about: the newest that waits, else the one in force. Never one that was
/// superseded, although it came last.
fn to_look_at(document: &Value) -> &Value {
    let all = || document["promotions"].as_array().into_iter().flatten();
    let waiting = || all().find(|one| one["state"] == "Waiting");
    let open = || all().find(|one| one["state"] != "Superseded");
    let in_force = all().find(|one| one["commit"] == document["current"] && one["state"] != "Superseded");
    waiting().or(in_force).or_else(open).unwrap_or(&Value::Null)
}

fn standing(document: &Value) -> String {
    let newest = to_look_at(document);
    if newest.is_null() {
        return format!("{}: nothing has been promoted to it yet", text(&document["environment"]));
    }
    format!("{}: {} is {}", text(&document["environment"]), short(&newest["commit"]), text(&newest["state"]))
}

fn policies(document: &Value) -> String {
    let policy = &document["policy"];
    let mut out = match policy.is_object() {
        true => {
            let names: Vec<String> = policy["environments"].as_array().into_iter().flatten().map(text).collect();
            format!(
                "in force since {}: {} of {} ({}), promoter {}, {}\n",
                moment(&policy["since"]),
                short(&policy["commit"]),
                text(&policy["author"]),
                text(&policy["subject"]),
                text(&policy["promoter"]),
                names.join(" → ")
            )
        }
        false => "no PromotionPolicy is in force: nothing is promoted\n".to_owned(),
    };
    out.push_str(&remarks(document));
    out
}

fn reasons(policy: &Value) -> String {
    policy["reasons"].as_array().into_iter().flatten().map(text).collect::<Vec<_>>().join("; ")
}

fn short(commit: &Value) -> String {
    let commit = text(commit);
    commit.get(..10).unwrap_or(&commit).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_without_a_reason_ends_with_the_name_and_a_policy_says_who_agreed() {
        let word = json!({"said": "approve", "who": "anna", "at": "x"});
        let promotion = json!({"commit": "c1", "state": "Waiting", "subject": "s", "author": "a", "words": [word]});
        let told = one(&json!({"environment": "prod", "promotions": [promotion]}));
        assert!(told.contains("approve by anna\n") && !told.contains("anna:"), "{told}");
        let waiting = json!({"reasons": ["environment dev is gone"], "commit": "c2", "approvals": "1 of 2 approvals given (anna)"});
        assert_eq!(
            remarks(&json!({"waiting": waiting})),
            "a looser policy waits for an approval: environment dev is gone (c2); 1 of 2 approvals given (anna)\n"
        );
    }
}
