//! `kedge promote`: which commit of main is where, and letting one in. Called by `main`.

use anyhow::Result;
use kedge_api::client::Answer;
use kedge_api::promotions::{ApproveRequest, EnvironmentPromotion, PromoteRequest, PromotionList, PromotionSummary};
use kedge_model::command::quote;
use serde::de::DeserializeOwned;

use crate::error::{Exit, UsageError};
use crate::get::columns::{one_line, to_the_second};
use crate::hub::HubArgs;
use crate::output::{Format, Table, print_json, print_text, print_yaml, say};

/// Show promotions, and start, approve or override one
///
/// `kedge promote` shows the whole chain, `kedge promote ENVIRONMENT` one environment; neither changes anything. `approve`
/// approves the commit that waits, where the policy requires it. `start` lets it enter now, outside its window. `override` lets
/// it enter although the environments before it haven't passed; the reason stays in the evidence for ever.
#[derive(Clone, Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  Which commit is where, and what does it wait for?
    kedge promote
    kedge promote prod

  Approve the commit that waits:
    kedge promote approve prod --reason \"release meeting\"

  Let it enter now, outside its window:
    kedge promote start prod --reason \"agreed with the line\"

  Let a commit enter, whatever the state of the environments before it:
    kedge promote override prod --commit 4f2a91c --reason \"fire at the customer's, agreed with Ada\""
)]
pub struct PromoteArgs {
    #[command(subcommand)]
    action: Option<PromoteAction>,

    /// The environment to show [default: the whole chain]
    #[arg(value_name = "ENVIRONMENT")]
    environment: Option<String>,

    /// Options of an earlier form: refused, with the command to use instead.
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
    /// Let the waiting commit enter now, outside its window
    #[command(after_help = "\
Examples:
  kedge promote start prod")]
    Start(ActionArgs),
    /// Approve the commit that waits, where the policy requires it
    #[command(after_help = "\
Examples:
  kedge promote approve prod --reason \"seen in stage\"")]
    Approve(ActionArgs),
    /// Let a commit enter although the environments before it haven't passed
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

    /// The reason; it stays in the evidence, and is required for an override
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

/// Show the promotion policy in force, or approve a looser one
///
/// A looser policy than the one in force waits for an approval; this command shows in which ways it is looser.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  kedge policy
  kedge policy --approve --reason \"the lab has no night shift any more\"")]
pub struct PolicyArgs {
    /// Approve the looser policy that waits
    #[arg(long)]
    approve: bool,

    /// The reason; it stays with the policy
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
        None => shown(&hub.promotions()?, args.output, chain),
        Some(environment) => shown(&hub.promotion(environment)?, args.output, one),
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
        let (environment, commit, reason) = (&action.environment, action.commit.clone(), action.reason.clone());
        let answer = match self {
            PromoteAction::Approve(_) => hub.approve_promotion(environment, &ApproveRequest { commit, reason })?,
            PromoteAction::Start(_) => hub.start_promotion(environment, &PromoteRequest { commit, reason })?,
            PromoteAction::Override(_) => hub.override_promotion(environment, &PromoteRequest { commit, reason })?,
        };
        say(&standing(&answer.read()?));
        shown(&answer, args.output, one)
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
    let answer = match args.approve {
        true => hub.approve_policy(&ApproveRequest { commit: None, reason: args.reason.clone() })?,
        false => hub.promotions()?,
    };
    shown(&answer, args.output, policies)
}

fn shown<T: DeserializeOwned>(answer: &Answer<T>, output: Format, as_text: fn(&T) -> String) -> Result<Exit> {
    match output {
        Format::Json => print_json(&answer.document)?,
        Format::Yaml => print_yaml(&answer.document)?,
        Format::Text => print_text(&as_text(&answer.read()?))?,
    }
    Ok(Exit::Success)
}

fn chain(list: &PromotionList) -> String {
    if list.items.is_empty() {
        return "no PromotionPolicy is in force: nothing is promoted\n".to_owned();
    }
    let mut table = Table::default();
    table.row(["ENVIRONMENT", "AFTER", "COMMIT", "STATE", "SUBJECT", "WAITS FOR"].map(str::to_owned));
    for item in &list.items {
        let newest = to_look_at(item);
        let of = |field: fn(&PromotionSummary) -> String| newest.map(field).unwrap_or_default();
        table.row([
            one_line(&item.environment),
            if item.after.is_empty() { "-".to_owned() } else { item.after.join(", ") },
            of(|one| short(&one.commit)),
            of(|one| one_line(&one.state)),
            of(|one| one_line(&one.subject)),
            of(|one| lines(&one.waits_for).join("; ")),
        ]);
    }
    table.to_text("") + &remarks(list)
}

/// A policy that waits or can't be read is news for whoever looks at the chain.
fn remarks(list: &PromotionList) -> String {
    let mut out = String::new();
    let policies =
        [(&list.waiting, "a looser policy waits for an approval"), (&list.broken, "the newest policy can't be used")];
    for (policy, word) in policies {
        if let Some(policy) = policy {
            let given = policy.approvals.as_ref().map(|given| format!("; {given}")).unwrap_or_default();
            let why = lines(&policy.reasons).join("; ");
            out.push_str(&format!("{word}: {why} ({}){given}\n", short(&policy.commit)));
        }
    }
    out
}

fn one(environment: &EnvironmentPromotion) -> String {
    let mut out = format!("{}\n", standing(environment));
    if let Some(refused) = &environment.refused {
        out.push_str(&format!(
            "its branch names {}, which isn't followed: {} (by {}, {})\n",
            short(&refused.commit),
            one_line(&refused.why),
            one_line(&refused.by),
            to_the_second(&refused.at)
        ));
    }
    if let Some(trouble) = &environment.trouble {
        out.push_str(&format!("{trouble}\n"));
    }
    let mut table = Table::default();
    table.row(["COMMIT", "STATE", "SUBJECT", "AUTHOR", "ENTERED", "PASSED", "ROLLOUT", "NOTES"].map(str::to_owned));
    for promotion in &environment.promotions {
        let moment = |at: &Option<String>| at.as_deref().map(to_the_second).unwrap_or_default();
        table.row([
            short(&promotion.commit),
            one_line(&promotion.state),
            one_line(&promotion.subject),
            one_line(&promotion.author),
            moment(&promotion.entered_at),
            moment(&promotion.passed_at),
            promotion.rollout.map(|id| id.to_string()).unwrap_or_default(),
            notes(promotion).join("; "),
        ]);
    }
    out + &table.to_text("")
}

/// What a promotion waits for, what was left out on its way, and what people decided about it.
fn notes(promotion: &PromotionSummary) -> Vec<String> {
    let mut notes = lines(&promotion.waits_for);
    notes.extend(Some(promotion.why.clone()).filter(|why| !why.is_empty()));
    if !promotion.skipped.is_empty() {
        let all: Vec<String> = promotion.skipped.iter().map(|commit| short(commit)).collect();
        notes.push(format!("took over {}", all.join(", ")));
    }
    for entry in &promotion.actions {
        let reason = one_line(&entry.reason);
        let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
        notes.push(format!("{} by {}{reason}", entry.action.as_str(), one_line(&entry.who)));
    }
    notes
}

/// The promotion that somebody may have to do something about: the newest that waits, else the one in force. Never one that was
/// superseded, although it came last.
fn to_look_at(environment: &EnvironmentPromotion) -> Option<&PromotionSummary> {
    let all = || environment.promotions.iter();
    let waiting = || all().find(|one| one.state == "Waiting");
    let open = || all().find(|one| one.state != "Superseded");
    let in_force = all().find(|one| Some(&one.commit) == environment.current.as_ref() && one.state != "Superseded");
    waiting().or(in_force).or_else(open)
}

fn standing(environment: &EnvironmentPromotion) -> String {
    let name = one_line(&environment.environment);
    match to_look_at(environment) {
        None => format!("{name}: nothing has been promoted to it yet"),
        Some(newest) => format!("{name}: {} is {}", short(&newest.commit), one_line(&newest.state)),
    }
}

fn policies(list: &PromotionList) -> String {
    let mut out = match &list.policy {
        Some(policy) => format!(
            "in force since {}: {} of {} ({}), promoter {}, {}\n",
            to_the_second(&policy.since),
            short(&policy.commit),
            one_line(&policy.author),
            one_line(&policy.subject),
            one_line(&policy.promoter),
            lines(&policy.environments).join(" → ")
        ),
        None => "no PromotionPolicy is in force: nothing is promoted\n".to_owned(),
    };
    out.push_str(&remarks(list));
    out
}

fn lines(texts: &[String]) -> Vec<String> {
    texts.iter().map(|text| one_line(text)).collect()
}

fn short(commit: &str) -> String {
    let commit = one_line(commit);
    commit.get(..10).unwrap_or(&commit).to_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use kedge_api::promotions::PromotionPolicySummary;
    use kedge_api::rollouts::RolloutActionEntry;
    use serde_json::json;

    use super::*;

    #[test]
    fn an_approval_without_a_reason_ends_with_the_name_and_a_policy_says_who_agreed() {
        let approval = json!({"action": "approve", "who": "anna", "role": "platform", "at": "x"});
        let approval: RolloutActionEntry = serde_json::from_value(approval).unwrap();
        let promotion = PromotionSummary {
            commit: "c1".to_owned(),
            state: "Waiting".to_owned(),
            subject: "s".to_owned(),
            author: "a".to_owned(),
            actions: vec![approval],
            ..PromotionSummary::default()
        };
        let environment = "prod".to_owned();
        let told =
            one(&EnvironmentPromotion { environment, promotions: vec![promotion], ..EnvironmentPromotion::default() });
        assert!(told.contains("approve by anna\n") && !told.contains("anna:"), "{told}");
        let waiting = PromotionPolicySummary {
            reasons: vec!["environment dev is gone".to_owned()],
            commit: "c2".to_owned(),
            approvals: Some("1 of 2 approvals given (anna)".to_owned()),
            ..PromotionPolicySummary::default()
        };
        assert_eq!(
            remarks(&PromotionList { waiting: Some(waiting), ..PromotionList::default() }),
            "a looser policy waits for an approval: environment dev is gone (c2); 1 of 2 approvals given (anna)\n"
        );
    }
}
