//! What is wrong with the hub itself. It can't be read from the database: that is what fails.

use kedge_api::problems::{ProblemKind, ProblemSeverity, ProblemSummary};

use super::fold::Found;
use crate::api::page::moment;
use crate::store::failure::{self, Trouble};

/// Writes that failed last, because of the disk.
pub fn database(found: &mut Found) {
    let Some(Trouble { since, what }) = failure::trouble() else { return };
    found.add(ProblemSummary {
        id: "hub/DatabaseFailing".to_owned(),
        kind: ProblemKind::Hub,
        severity: ProblemSeverity::Error,
        code: "DatabaseFailing".to_owned(),
        environments: Vec::new(),
        count: 1,
        message: format!("nothing can be written: {what}"),
        brings: vec!["changes in Git and status of clusters wait; what runs continues".to_owned()],
        hint: Some(
            "free space in the hub's data folder, or check its disk; the hub then continues by itself".to_owned(),
        ),
        command: "df -h".to_owned(),
        link: "/problems?kind=hub".to_owned(),
        since: Some(moment(since.0)),
        examples: Vec::new(),
    });
}
