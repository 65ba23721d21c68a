//! `kedge get problems`: everything that needs somebody, once or as it changes. Exits with 3 when there is any.

use std::time::Duration;

use anyhow::Result;
use kedge_api::client::{Client, ClientError};
use kedge_api::problems::{ProblemExample, ProblemSummary};
use serde_json::Value;

use super::{GetArgs, Shape, columns};
use crate::error::Exit;
use crate::output::say;

/// The hub answers from counts: asking it so often costs it nothing.
const EVERY: Duration = Duration::from_secs(2);

pub fn run(args: &GetArgs, hub: &Client) -> Result<Exit> {
    let mut items = args.list(hub)?.items;
    if let (Some(name), true) = (&args.name, items.is_empty()) {
        return Err(args.no_such(hub, name)?.into());
    }
    show(args, &items)?;
    if !args.watch {
        return Ok(if items.is_empty() { Exit::Success } else { Exit::LeftOut });
    }
    loop {
        std::thread::sleep(EVERY);
        let news = match args.list(hub) {
            Ok(news) => news.items,
            // A restart of the hub doesn't end the watch.
            Err(error) if error.downcast_ref::<ClientError>().is_some_and(ClientError::is_unreachable) => continue,
            Err(error) => return Err(error),
        };
        if news != items {
            show(args, &news)?;
        }
        items = news;
    }
}

fn show(args: &GetArgs, items: &[Value]) -> Result<()> {
    if items.is_empty() && matches!(args.output, Shape::Table | Shape::Wide) {
        say("nothing needs attention");
        return Ok(());
    }
    args.print(items, true)
}

/// A problem with its examples in one line.
pub fn message(problem: &ProblemSummary) -> String {
    let mut told = columns::one_line(&problem.message);
    let mut examples: Vec<String> = Vec::new();
    for shown in problem.examples.iter().filter_map(example) {
        if !examples.contains(&shown) && shown != told {
            examples.push(shown);
        }
    }
    // A single finding is its own example.
    let is_said = problem.count == 1 && problem.examples.first().is_some_and(|example| example.id.is_some());
    if !examples.is_empty() && !is_said {
        told.push_str(&format!(" ({})", examples.join("; ")));
    }
    for brought in &problem.brings {
        told.push_str(&format!("; {}", columns::one_line(brought)));
    }
    told
}

fn example(example: &ProblemExample) -> Option<String> {
    let cluster = columns::one_line(example.cluster.as_deref().unwrap_or_default());
    let message = columns::one_line(&example.message);
    match (cluster.is_empty(), message.is_empty()) {
        (true, true) => None,
        (true, false) => Some(message),
        (false, true) => Some(cluster),
        (false, false) => Some(format!("{cluster}: {message}")),
    }
}
