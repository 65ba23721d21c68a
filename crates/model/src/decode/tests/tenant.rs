//! Text of an application's repository, and what is decoded strictly because templates made it.

use super::*;

fn workload(target: &str) -> String {
    kalypso("Workload", &format!("  deploymentTargets:\n  - {target}\n"))
}

/// The errors of a Workload with this field in its only target.
fn refused(field: &str) -> Vec<String> {
    broken(&workload(&format!("{{name: t, environment: dev, {field}}}")))
}

#[test]
fn text_that_ends_a_line_is_refused_in_every_field() {
    let escapes = ["\\n", "\\r", "\\t", "\\0", "\\e", "\\x7f", "\\x85", "\\N", "\\L", "\\P", "\\u202e", "\\ufeff"];
    for escape in escapes.into_iter().chain(["{{ .x }}"]) {
        for field in [
            format!("manifests: {{path: \"./x{escape}y\"}}"),
            format!("manifests: {{repo: \"https://h/x{escape}y\"}}"),
            format!("manifests: {{branch: \"x{escape}y\"}}"),
            format!("manifests: {{chart: \"x{escape}y\"}}"),
            format!("manifests: {{\"x{escape}y\": z}}"),
            format!("labels: {{app: \"x{escape}y\"}}"),
            format!("labels: {{\"x{escape}y\": z}}"),
        ] {
            let problems = refused(&field);
            assert!(problems.iter().any(|text| text.contains("!TextRefused")), "{field}: {problems:?}");
        }
        let name = broken(&workload(&format!("{{name: \"x{escape}y\", environment: dev}}")));
        assert!(name.iter().any(|text| text.contains("!TextRefused") || text.contains("!BadName")), "{name:?}");
        let environment = broken(&workload(&format!("{{name: t, environment: \"dev{escape}\"}}")));
        assert!(environment[0].contains("!TextRefused"), "{environment:?}");
        let whole = workload("{name: t, environment: dev}").replace("name: x", &format!("name: \"x{escape}\""));
        assert!(!decode(&whole).broken.is_empty(), "{escape}");
        let labelled = workload("{name: t, environment: dev}")
            .replace("{name: x}", &format!("{{name: x, labels: {{app: \"a{escape}\"}}}}"));
        assert!(!decode(&labelled).broken.is_empty(), "{escape}");
    }
}

#[test]
fn a_refused_text_says_why_where_and_what_to_do() {
    assert_eq!(
        refused("manifests: {path: \"./x\\n  scope: cluster\"}"),
        [
            "6:51 !TextRefused: `spec.deploymentTargets[0].manifests.path` of Workload `x` has the line separator '\\n', which no \
          text of an application may hold | write it on one line, without tabs and escapes such as `\\n`"
        ]
    );
    assert_eq!(
        refused("manifests: {path: /etc}"),
        [
            "6:51 !TextRefused: `spec.deploymentTargets[0].manifests.path` of Workload `x` isn't a relative path: it begins with `/` \
          | write it from the repository's root: `./apps/hello`"
        ]
    );
    assert_eq!(
        refused("labels: {a b: c}").iter().filter(|text| text.contains("!TextRefused: the key `a b` in ")).count(),
        1
    );
}

#[test]
fn a_free_field_may_hold_any_line_of_text_and_a_schema_lines() {
    let text = workload(
        "{name: t, environment: dev, manifests: {values: '{\"a\": {\"b\": 1}}', note: \"x: y # z\"}, configSchemas: [\"{\\n}\"]}",
    );
    assert_eq!(said(&decode(&text).problems), Vec::<String>::new());
}

#[test]
fn in_a_rendered_file_an_unknown_field_of_what_kedge_applies_is_an_error() {
    let rendered = |text: &str| objects(text.as_bytes(), &file(), &Options { rendered: true, ..Options::default() });
    let delivery = kedge("Delivery", "  source: {repo: r}\n  to: host\n");
    assert_eq!(said(&rendered(&delivery).problems), Vec::<String>::new());
    for (more, field) in
        [("status: {}\n", "`status`"), ("  skope: cluster\n", "`spec.skope`"), ("extra: 1\n", "`extra`")]
    {
        let decoded = rendered(&format!("{delivery}{more}"));
        assert!(decoded.objects.is_empty(), "{more}");
        let problems = said(&decoded.problems);
        assert!(problems[0].contains("!UnknownField") && problems[0].contains(field), "{problems:?}");
    }
    for spec in
        ["  source: {repo: r, pth: x}\n  to: host\n", "  source: {repo: r, ref: {branch: b, x: y}}\n  to: host\n"]
    {
        assert_eq!(rendered(&kedge("Delivery", spec)).broken.len(), 1, "{spec}");
    }
    for spec in ["  allow: {dbs: [x]}\n", "  folders: [{path: /x, owner: root}]\n", "  usr: x\n"] {
        assert_eq!(rendered(&kedge("HostNamespace", spec)).broken.len(), 1, "{spec}");
    }
    // A person's own file is told, not refused.
    assert_eq!(decode(&format!("{delivery}  skope: cluster\n")).objects.len(), 1);
}
