//! `kedge get problems`: everything that needs somebody, once or as it changes. Exits with 3 when there is any.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use super::{GetArgs, Shape, columns};
use crate::error::Exit;
use crate::hub::{Hub, HubError};
use crate::output::say;

/// The hub answers from counts: asking it so often costs it nothing.
const EVERY: Duration = Duration::from_secs(2);

pub fn run(args: &GetArgs, hub: &Hub) -> Result<Exit> {
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
            Err(error) if error.downcast_ref::<HubError>().is_some_and(HubError::is_unreachable) => continue,
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
pub fn message(item: &Value) -> String {
    let mut told = columns::text(&item["message"]);
    let mut examples: Vec<String> = Vec::new();
    for shown in item["examples"].as_array().into_iter().flatten().filter_map(example) {
        if !examples.contains(&shown) && shown != told {
            examples.push(shown);
        }
    }
    // A single finding is its own example.
    let is_said = item["examples"][0]["id"].is_string() && item["count"] == 1;
    if !examples.is_empty() && !is_said {
        told.push_str(&format!(" ({})", examples.join("; ")));
    }
    for brought in item["brings"].as_array().into_iter().flatten() {
        told.push_str(&format!("; {}", columns::text(brought)));
    }
    told
}

fn example(example: &Value) -> Option<String> {
    let (cluster, message) = (columns::text(&example["cluster"]), columns::text(&example["message"]));
    match (cluster.is_empty(), message.is_empty()) {
        (true, true) => None,
        (true, false) => Some(message),
        (false, true) => Some(cluster),
        (false, false) => Some(format!("{cluster}: {message}")),
    }
}
