//! `kedge describe`: one object with everything that the hub knows of it. Called by `main`.

mod configuration;
pub mod text;

use anyhow::Result;
use kedge_api::client::Client;
use serde_json::Value;

use crate::error::{Exit, NotFound, UsageError};
use crate::hub::HubArgs;
use crate::output::{Format, print_json, print_text, print_yaml};

/// Show one object in full detail.
///
/// An assignment shows which policies chose it, every configuration value with the file, line and commit it comes from,
/// what each ring should run, and on how many clusters it does. A cluster shows the condition of each assignment. Values
/// that look secret are shown to the platform team only.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
Examples:
  Why does it run with this value, and where?
    kedge describe assignment drone/hello-functional-test -e dev

  What is wrong with a cluster?
    kedge describe cluster drone-17

  What was published last, and does something wait?
    kedge describe environment dev")]
pub struct DescribeArgs {
    /// What it is
    #[arg(value_enum, value_name = "KIND")]
    kind: Kind,

    /// Its name; an assignment's is CLUSTER-TYPE/WORKLOAD-TARGET, a desired state's CLUSTER-TYPE[/RING]
    #[arg(value_name = "NAME")]
    name: String,

    /// Its environment; needed when there is more than one
    #[arg(short, long, value_name = "NAME")]
    environment: Option<String>,

    /// How to print it
    #[arg(short, long, value_enum, default_value = "text", value_name = "FORMAT")]
    output: Format,

    #[command(flatten)]
    hub: HubArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    #[value(alias = "clusters")]
    Cluster,
    #[value(alias = "cluster-types")]
    ClusterType,
    #[value(alias = "workloads")]
    Workload,
    #[value(alias = "assignments")]
    Assignment,
    #[value(alias = "environments")]
    Environment,
    #[value(alias = "targets", alias = "deployment-target")]
    Target,
    #[value(alias = "desired-states")]
    DesiredState,
}

pub fn run(args: &DescribeArgs) -> Result<Exit> {
    let hub = args.hub.open()?;
    let document = args.fetch(&hub)?;
    match args.output {
        Format::Text => print_text(&text::of(&document))?,
        Format::Json => print_json(&document)?,
        Format::Yaml => print_yaml(&document)?,
    }
    Ok(Exit::Success)
}

impl DescribeArgs {
    fn fetch(&self, hub: &Client) -> Result<Value> {
        let name = self.name.as_str();
        Ok(match self.kind {
            Kind::Cluster => hub.cluster(name)?.document,
            Kind::Environment => hub.environment(name)?.document,
            Kind::ClusterType => hub.cluster_type(&self.environment(hub)?, name)?.document,
            Kind::Workload => hub.workload(&self.environment(hub)?, name)?.document,
            Kind::Target => hub.deployment_target(&self.environment(hub)?, name)?.document,
            Kind::Assignment => {
                let Some((cluster_type, target)) = name.split_once('/') else {
                    let hint = "kedge get assignments lists their names";
                    return Err(UsageError::new(format!("`{name}` isn't CLUSTER-TYPE/WORKLOAD-TARGET"), hint).into());
                };
                hub.assignment(&self.environment(hub)?, cluster_type, target)?.document
            }
            Kind::DesiredState => {
                let (cluster_type, ring) = name.split_once('/').unwrap_or((name, "all"));
                hub.desired_state(&self.environment(hub)?, cluster_type, ring)?.document
            }
        })
    }

    /// The one that was named, or the only one there is.
    fn environment(&self, hub: &Client) -> Result<String> {
        if let Some(environment) = &self.environment {
            return Ok(environment.clone());
        }
        let listed = hub.environments().all()?.items;
        let names: Vec<&str> = listed.iter().filter_map(|item| item["name"].as_str()).collect();
        match names.as_slice() {
            [only] => Ok((*only).to_owned()),
            [] => Err(NotFound::new("the hub has no environment yet", "does it follow a control plane?").into()),
            some => {
                let hint = format!("name it with -e: {}", some.join(", "));
                Err(UsageError::new("there is more than one environment", hint).into())
            }
        }
    }
}
