//! The other pods of the cluster, as this one knows them.

use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use kedge_model::wire::Timestamp;
use serde::Serialize;

use super::super::output::{Table, ago};
use crate::clock::Time;
use crate::peers::shown::pods::Pods;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "role")]
pub enum PodsDocument {
    Leads {
        address: SocketAddr,
        asked: Vec<Guest>,
    },
    StandsBy {
        leader: Option<String>,
        address: Option<SocketAddr>,
        lacks: Option<usize>,
        bytes: u64,
        trouble: Option<String>,
    },
}

/// One that stands by.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Guest {
    address: IpAddr,
    last: Time,
}

impl From<&Pods> for PodsDocument {
    fn from(pods: &Pods) -> PodsDocument {
        match pods.clone() {
            Pods::Leads { address, asked } => {
                let asked = asked.into_iter().map(|(address, last)| Guest { address, last: Time(last) }).collect();
                PodsDocument::Leads { address, asked }
            }
            Pods::StandsBy { leader, address, lacks, bytes, trouble, .. } => {
                PodsDocument::StandsBy { leader, address, lacks, bytes, trouble }
            }
        }
    }
}

pub fn text(pods: &Pods, now: Timestamp) -> String {
    let mut text = String::new();
    match pods {
        Pods::Leads { address, asked } => {
            _ = writeln!(text, "This pod works for the cluster; standby pods can connect at {address}");
            let mut table = Table::default();
            table.row(["POD", "ASKED FOR CONTENT"]);
            asked.iter().for_each(|(guest, last)| table.row([&guest.to_string(), &ago(*last, now)]));
            text.push_str(&match asked.is_empty() {
                true => "Nobody asked for content yet.\n".to_owned(),
                false => format!("\n{}", table.to_text("")),
            });
        }
        Pods::StandsBy { leader, address, lacks, bytes, trouble, .. } => {
            let at = address.map_or_else(|| ", which lets nobody in,".to_owned(), |address| format!(" at {address}"));
            match leader {
                Some(leader) => _ = writeln!(text, "This pod stands by; {leader}{at} works for the cluster"),
                None => text.push_str("This pod stands by; who works for the cluster isn't known yet\n"),
            }
            match lacks {
                None => {}
                Some(0) => text.push_str("All that the cluster runs is here.\n"),
                Some(lacks) => _ = writeln!(text, "It lacks {lacks} pieces of content, {bytes} bytes."),
            }
            if let Some(trouble) = trouble {
                _ = write!(text, "\nWarnings\n  {trouble}\n");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_that_works_shows_who_asked() {
        let asked = [(IpAddr::from([10, 42, 0, 8]), Timestamp(1_000_000_050_000))].into();
        let pods = Pods::Leads { address: SocketAddr::from(([10, 42, 0, 7], 7444)), asked };
        insta::assert_snapshot!(text(&pods, Timestamp(1_000_000_060_000)), @r"
        This pod works for the cluster; standby pods can connect at 10.42.0.7:7444

        POD        ASKED FOR CONTENT
        10.42.0.8  10 s ago
        ");
    }

    #[test]
    fn one_that_stands_by_shows_what_it_lacks_and_what_the_other_did() {
        let stands_by = |lacks, trouble: Option<&str>| Pods::StandsBy {
            leader: Some("kedge-agent-x".to_owned()),
            address: Some(SocketAddr::from(([10, 42, 0, 7], 7444))),
            lacks,
            bytes: 2048,
            trouble: trouble.map(str::to_owned),
            lied: trouble.is_some(),
        };
        insta::assert_snapshot!(text(&stands_by(Some(2), None), Timestamp(0)), @r"
        This pod stands by; kedge-agent-x at 10.42.0.7:7444 works for the cluster
        It lacks 2 pieces of content, 2048 bytes.
        ");
        insta::assert_snapshot!(text(&stands_by(None, Some("the pod that leads gave wrong bytes")), Timestamp(0)), @r"
        This pod stands by; kedge-agent-x at 10.42.0.7:7444 works for the cluster

        Warnings
          the pod that leads gave wrong bytes
        ");
    }
}
