//! `kedge get`: lists what the hub knows, once or as it changes. Called by `main`.

pub mod columns;
mod flags;
mod problems;

use anyhow::Result;
use kedge_api::client::{Client, List, ListKind};
use serde_json::{Value, json};

use crate::error::{Exit, UsageError};
use crate::explain::name::nearest;
use crate::hub::HubArgs;
use crate::output::{Table, print_json, print_text, print_yaml, say};

/// Show what the hub knows: clusters, assignments, problems and more.
///
/// `problems` lists everything that needs attention, each with what to do: approvals, rollouts, clusters and the warnings of
/// their agents, delivery, Git. It exits with 3 when there is any. `findings` lists what is wrong with files in Git one by one.
/// Application teams see what belongs to their workspaces. With --watch, the list is printed, and then every change; a line that
/// begins with `-` is an item that was removed.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Does anything need attention? Exits with 0 only if nothing does.
    kedge get problems
    kedge get problems -e prod --state error

  Which clusters are there, and which of them are offline?
    kedge get clusters -e dev
    kedge get clusters -l region=west --condition Unknown
    kedge get clusters -e prod --warning DiskLow

  What has failed, and why? Where is drift?
    kedge get conditions -e prod --condition Failed
    kedge get conditions --drift

  What runs on drones, and follow it:
    kedge get assignments -e dev --cluster-type drone --watch

  For programs:
    kedge get clusters -o json")]
pub struct GetArgs {
    /// What to list
    #[arg(value_enum, value_name = "KIND")]
    kind: Listing,

    /// Only the one with this name
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Only those of this environment
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// Only those whose labels match: `region=west,size in (a,b),!edge`
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<String>,

    /// Only clusters, conditions or assignments of this cluster type
    #[arg(long, value_name = "NAME")]
    cluster_type: Option<String>,

    /// Only clusters or conditions of this ring
    #[arg(long, value_name = "NAME")]
    ring: Option<String>,

    /// Only those of this workspace
    #[arg(long, value_name = "NAME")]
    workspace: Option<String>,

    /// Only targets or conditions of this workload
    #[arg(long, value_name = "NAME")]
    workload: Option<String>,

    /// Only clusters that are `Unknown` (offline) or `Known`; only conditions that are `Converged`, `Converging`, `Failed` or
    /// `Unknown`
    #[arg(long, value_name = "CONDITION")]
    condition: Option<String>,

    /// Only clusters whose agents warn of this, such as `DiskLow`; `kedge get problems` shows the codes
    #[arg(long, value_name = "CODE")]
    warning: Option<String>,

    /// Only conditions with drift
    #[arg(long)]
    drift: bool,

    /// Only problems of this kind: `approvals`, `rollouts`, `clusters`, `delivery`, `schedule`, `git` or `hub`
    #[arg(long, value_name = "KIND")]
    of_kind: Option<String>,

    /// Only those in this state: `quarantined`, `error`, `waiting`, `failing`, `retired`
    #[arg(long, value_name = "STATE")]
    state: Option<String>,

    /// List at most this many [default: all]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,

    /// Keep printing changes
    #[arg(short, long)]
    watch: bool,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "table", value_name = "FORMAT")]
    output: Shape,

    #[command(flatten)]
    hub: HubArgs,
}

/// Formats of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shape {
    Table,
    /// With more columns
    Wide,
    Json,
    Yaml,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Listing {
    #[value(alias = "cluster")]
    Clusters,
    /// Conditions of assignments on clusters
    #[value(alias = "condition")]
    Conditions,
    #[value(alias = "cluster-type")]
    ClusterTypes,
    #[value(alias = "workload")]
    Workloads,
    #[value(alias = "assignment")]
    Assignments,
    #[value(alias = "environment")]
    Environments,
    #[value(alias = "target", alias = "deployment-targets")]
    Targets,
    /// Everything that needs attention
    #[value(alias = "problem")]
    Problems,
    /// Single mistakes in files in Git
    #[value(alias = "finding")]
    Findings,
    #[value(alias = "repository")]
    Repositories,
    #[value(alias = "desired-state")]
    DesiredStates,
    /// Join tokens
    #[value(alias = "token")]
    Tokens,
}

/// How long the hub holds a watch.
const WAIT: &str = "30s";
/// So many names are looked at for the nearest to a mistyped one.
const NEAR_AMONG: usize = 2000;
/// After an outage a watch asks again so often.
const RETRY: std::time::Duration = std::time::Duration::from_secs(2);

impl Listing {
    fn of(self) -> ListKind {
        match self {
            Listing::Clusters => ListKind::Clusters,
            Listing::Conditions => ListKind::Conditions,
            Listing::ClusterTypes => ListKind::ClusterTypes,
            Listing::Workloads => ListKind::Workloads,
            Listing::Assignments => ListKind::Assignments,
            Listing::Environments => ListKind::Environments,
            Listing::Targets => ListKind::DeploymentTargets,
            Listing::Problems => ListKind::Problems,
            Listing::Findings => ListKind::Findings,
            Listing::Repositories => ListKind::Repositories,
            Listing::DesiredStates => ListKind::DesiredStates,
            Listing::Tokens => ListKind::JoinTokens,
        }
    }

    pub fn path(self) -> &'static str {
        self.of().as_str()
    }

    fn one(self) -> &'static str {
        match self {
            Listing::Clusters | Listing::Conditions => "cluster",
            Listing::ClusterTypes => "cluster type",
            Listing::Workloads => "workload",
            Listing::Assignments => "assignment",
            Listing::Environments => "environment",
            Listing::Targets => "deployment target",
            Listing::Problems => "problem",
            Listing::Findings => "finding",
            Listing::Repositories => "repository",
            Listing::DesiredStates => "desired state",
            Listing::Tokens => "join token",
        }
    }

    fn can_watch(self) -> bool {
        !matches!(self, Listing::Tokens | Listing::Conditions)
    }

    /// The field that a name given on the command line is compared with.
    fn key(self) -> &'static str {
        match self {
            Listing::Problems | Listing::Findings | Listing::Tokens => "id",
            Listing::Repositories => "url",
            Listing::DesiredStates => "clusterType",
            _ => "name",
        }
    }
}

pub fn run(args: &GetArgs) -> Result<Exit> {
    flags::check(args)?;
    let hub = args.hub.open()?;
    if args.watch && !args.kind.can_watch() {
        let message = format!("{} can't be watched", args.kind.path().replace('-', " "));
        return Err(UsageError::new(message, "leave --watch out").into());
    }
    if args.kind == Listing::Problems {
        return problems::run(args, &hub);
    }
    let List { items, tick, note, .. } = args.list(&hub)?;
    if let Some(note) = note {
        say(&format!("note: {note}"));
    }
    if let (Some(name), true) = (&args.name, items.is_empty()) {
        return Err(args.no_such(&hub, name)?.into());
    }
    args.print(&items, true)?;
    match (args.watch, tick) {
        (true, Some(tick)) => args.follow(&hub, tick),
        _ => Ok(Exit::Success),
    }
}

impl GetArgs {
    /// The list of join tokens.
    pub fn tokens(output: Shape, hub: HubArgs) -> GetArgs {
        GetArgs {
            kind: Listing::Tokens,
            name: None,
            environment: None,
            selector: None,
            cluster_type: None,
            ring: None,
            workspace: None,
            workload: None,
            condition: None,
            warning: None,
            drift: false,
            of_kind: None,
            state: None,
            limit: None,
            watch: false,
            output,
            hub,
        }
    }

    fn parameters(&self) -> Vec<(&'static str, Option<String>)> {
        let mut parameters = Vec::new();
        let mut add = |name, value: &Option<String>| {
            if value.is_some() {
                parameters.push((name, value.clone()));
            }
        };
        add("environment", &self.environment);
        add("labelSelector", &self.selector);
        add("clusterType", &self.cluster_type);
        add("ring", &self.ring);
        add("workspace", &self.workspace);
        add("workload", &self.workload);
        add("condition", &self.condition);
        add("warning", &self.warning);
        add("drift", &self.drift.then(|| "true".to_owned()));
        add("kind", &self.of_kind);
        if self.kind == Listing::Conditions {
            add("cluster", &self.name);
        }
        add("state", &self.state);
        // A cluster may be named by its id, a problem has nothing but one.
        let by_prefix = matches!(
            self.kind,
            Listing::ClusterTypes
                | Listing::Workloads
                | Listing::Assignments
                | Listing::Environments
                | Listing::Targets
        );
        if by_prefix {
            add("namePrefix", &self.name);
        }
        parameters
    }

    fn list(&self, hub: &Client) -> Result<List<Value>> {
        let pages = hub.list(self.kind.of(), &self.parameters());
        Ok(pages.gather(self.limit.unwrap_or(usize::MAX), |item| self.fits(item))?)
    }

    /// Nothing is called so; the nearest name is one of those that the same list has without it.
    fn no_such(&self, hub: &Client, name: &str) -> Result<UsageError> {
        let all = GetArgs { name: None, ..self.clone() };
        let listed = hub.list(self.kind.of(), &all.parameters()).gather(NEAR_AMONG, |_| true)?.items;
        let known = listed.iter().filter_map(|item| item[self.kind.key()].as_str());
        let hint = match nearest(name, known).first() {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("kedge get {} lists what there is", self.kind.path()),
        };
        Ok(UsageError::new(format!("no {} named `{name}`", self.kind.one()), hint))
    }

    fn chosen(&self, document: &mut Value) -> Vec<Value> {
        let Value::Array(items) = document["items"].take() else { return Vec::new() };
        items.into_iter().filter(|item| self.fits(item)).collect()
    }

    fn fits(&self, item: &Value) -> bool {
        match &self.name {
            None => true,
            // The hub was asked for the one that is named.
            Some(_) if self.kind == Listing::Conditions => true,
            Some(name) => item[self.kind.key()] == *name.as_str() || item["id"] == *name.as_str(),
        }
    }

    fn print(&self, items: &[Value], whole: bool) -> Result<()> {
        match self.output {
            Shape::Json if whole && !self.watch => print_json(&json!({"items": items}))?,
            Shape::Yaml if whole && !self.watch => print_yaml(&json!({"items": items}))?,
            // One document each, so that a program can read them as they come.
            Shape::Json => items.iter().try_for_each(|item| print_text(&format!("{item}\n")))?,
            Shape::Yaml => items.iter().try_for_each(|item| {
                print_text("---\n")?;
                print_yaml(item)
            })?,
            Shape::Table | Shape::Wide => {
                if items.is_empty() && whole {
                    say("nothing");
                    return Ok(());
                }
                let mut table = Table::default();
                if whole {
                    table.row(columns::head(self.kind, self.output == Shape::Wide));
                }
                for item in items {
                    table.row(columns::row(self.kind, item, self.output == Shape::Wide)?);
                }
                print_text(&table.to_text(""))?;
            }
        }
        Ok(())
    }

    /// Until the person has seen enough.
    fn follow(&self, hub: &Client, mut tick: i64) -> Result<Exit> {
        let mut away = false;
        loop {
            let mut parameters = self.parameters();
            parameters.push(("after", Some(tick.to_string())));
            parameters.push(("wait", Some(WAIT.to_owned())));
            match hub.follow(self.kind.of(), &parameters) {
                Ok(mut answer) => {
                    if std::mem::take(&mut away) {
                        say("note: the hub answers again");
                    }
                    tick = answer.tick.unwrap_or(tick);
                    let items = self.chosen(&mut answer.document);
                    if !items.is_empty() {
                        self.print(&items, false)?;
                    }
                    self.print_removed(&answer.document["removed"])?;
                }
                // A restart of the hub doesn't end the watch.
                Err(error) if error.is_unreachable() => {
                    if !std::mem::replace(&mut away, true) {
                        say(&format!("note: {error}; waiting for it"));
                    }
                    std::thread::sleep(RETRY);
                }
                Err(error) if error.is_gone() => {
                    let List { items, tick: newest, .. } = self.list(hub)?;
                    self.print(&items, true)?;
                    tick = newest.unwrap_or(tick);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn print_removed(&self, removed: &Value) -> Result<()> {
        for gone in removed.as_array().into_iter().flatten() {
            let (name, environment) = (gone["name"].as_str().unwrap_or_default(), gone["environment"].as_str());
            if self.name.as_deref().is_some_and(|wanted| wanted != name) {
                continue;
            }
            match self.output {
                Shape::Json => print_text(&format!("{}\n", json!({"removed": gone})))?,
                Shape::Yaml => {
                    print_text("---\n")?;
                    print_yaml(&json!({"removed": gone}))?;
                }
                Shape::Table | Shape::Wide => {
                    print_text(&format!("- {name}  {}\n", environment.unwrap_or_default()))?;
                }
            }
        }
        Ok(())
    }
}
