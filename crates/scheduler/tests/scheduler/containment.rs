//! Text of an application never becomes structure, whatever the platform's templates do with it.

use kedge_model::Platform;
use kedge_scheduler::{Files, Outcome, schedule};

use crate::written::{config, id, platform_with, read};

/// A platform whose reconciler template has this manifest, and a Workload with this target beside its name.
fn platform(manifest: &str, annotation: &str, target: &str, extra: &[&str]) -> Platform {
    let mut platform = platform_with(extra);
    let template = |name: &str, kind: &str, text: &str| {
        let text: String = text.lines().map(|line| format!("    {line}\n")).collect();
        format!(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata:\n  name: {name}\n  annotations: {{{annotation}}}\nspec:\n  type: {kind}\n  manifests:\n  - |\n{text}"
        )
    };
    read(&mut platform, "rec.yaml", &template("rec", "reconciler", manifest), None);
    read(&mut platform, "ns.yaml", &template("ns", "namespace", "kind: Namespace"), None);
    let workload = format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Workload\nmetadata: {{name: hello}}\nspec:\n  deploymentTargets:\n  - {{name: test, environment: dev, {target}}}\n"
    );
    read(&mut platform, "workload.yaml", &workload, Some("greeting"));
    platform
}

fn outcome(platform: &Platform) -> Result<String, String> {
    let schedule = schedule(platform);
    let assignment = schedule.assignments.get(&id("large", "hello-test"));
    let assignment = assignment.unwrap_or_else(|| panic!("{:?}", platform.problems));
    match &assignment.outcome {
        Outcome::Rendered(Files { reconciler, .. }) => Ok(reconciler.to_string()),
        Outcome::Quarantined(reasons) => {
            Err(reasons.iter().map(|reason| format!("{}: {}", reason.code, reason.message)).collect())
        }
    }
}

fn rendered(manifest: &str, target: &str) -> Result<String, String> {
    outcome(&platform(manifest, "", &format!("labels: {{purpose: test}}, manifests: {{{target}}}"), &[]))
}

#[track_caller]
fn refused(manifest: &str, target: &str, why: &str) {
    let reason = rendered(manifest, target).unwrap_err();
    assert!(reason.starts_with("TextBecomesStructure: template `rec` makes more than text of "), "{reason}");
    assert!(reason.contains(why), "{manifest} with {target}: {reason}");
}

#[test]
fn ordinary_text_is_written_as_it_is() {
    for (manifest, target, expected) in [
        ("a: {{ .Manifests.x }}", "x: hello", "a: hello\n"),
        ("a: {{ .Manifests.x | quote }}", "x: 'a: b'", "a: \"a: b\"\n"),
        ("a: {{ .Manifests.x | quote }}", "x: 'true'", "a: \"true\"\n"),
        ("a: '{{ .Manifests.x }}'", "x: 'a # b'", "a: 'a # b'\n"),
        ("a: {{ .Manifests.x }}", "x: 'two words, and more'", "a: two words, and more\n"),
        ("a: {{ toJson .Manifests.x }}", "x: '{\"a\": {\"b\": 1}}'", "a: \"{\\\"a\\\": {\\\"b\\\": 1}}\"\n"),
        ("a: {{ index (splitList \"/\" .Manifests.x) 3 }}", "x: 'https://h/team/app'", "a: team\n"),
        ("a: {{ .Manifests.x | upper | trunc 3 }}", "x: hello", "a: HEL\n"),
        ("{{ if .Manifests.x }}a: b{{ end }}", "x: hello", "a: b\n"),
        ("{{ if .Manifests.x }}a: b{{ end }}", "x: ''", "\n"),
        ("a: {{ .Manifests.x }}", "x: ''", "a: \n"),
        ("a: {{ .Manifests.x }}", "x: 3scale", "a: 3scale\n"),
        ("a: {{ .Manifests.x }}", "x: 4x4", "a: 4x4\n"),
        ("a: {{ .Manifests.x }}", "x: 1234abc", "a: 1234abc\n"),
        ("a: [{{ .Manifests.x }}]", "x: '1-2'", "a: [1-2]\n"),
        ("a: {{ .Manifests.x | quote }}", "x: '\"b\"'", "a: \"\\\"b\\\"\"\n"),
        ("{{ toYaml .Manifests }}", "x: 'a: b', y: 'true'", "x: 'a: b'\n\"y\": \"true\"\n"),
        ("# {{ .Manifests.x }}\na: b", "x: 'a: {b', y: z", "# a: {b\na: b\n"),
        ("a: |\n  {{ .Manifests.x }}", "x: 'b: c'", "a: |\n  b: c\n"),
        ("a: {{ .DeploymentTargetName }}-{{ hash .Manifests.x }}", "x: y", "a: hello-test-12638153115695167400\n"),
    ] {
        let found = rendered(manifest, target);
        if manifest.contains("hash") {
            assert!(found.is_ok(), "{found:?}");
        } else {
            assert_eq!(found.as_deref(), Ok(expected), "{manifest} with {target}");
        }
    }
}

#[test]
fn text_that_would_be_more_than_a_scalar_is_refused() {
    for (manifest, target, why) in [
        ("a: {{ .Manifests.x }}", "x: 'b: c'", "`.Manifests.x` (`manifests.x`)"),
        ("a: {{ .Manifests.x }}", "x: 'b:'", "reconciler.yaml:1:"),
        ("a: {{ .Manifests.x }}", "x: '- b'", "reconciler.yaml:1:"),
        ("a: {{ .Manifests.x }}", "x: '{b: c}'", "it is a map instead of a value"),
        ("a: {{ .Manifests.x }}", "x: '[b]'", "it is a list instead of a value"),
        ("a: {{ .Manifests.x }}", "x: '#b'", "begins a comment"),
        ("a: {{ .Manifests.x }}", "x: '!!int 1'", "the text becomes a tag"),
        ("a: &b c\nd: {{ .Manifests.x }}", "x: '*b'", ""),
        ("a: &b {c: d}\ne: {{ .Manifests.x }}", "x: '*b'", "an anchor or an alias"),
        ("a: {{ .Manifests.x }}", "x: '\"'", "the file isn't YAML any more"),
        ("a: \"{{ .Manifests.x }}\"", "x: 'b\", \"c'", "the file isn't YAML any more"),
        ("{a: \"{{ .Manifests.x }}\"}", "x: 'b\", \"c\": \"d'", "the map has 2 keys instead of 1"),
        ("{a: {{ .Manifests.x }}}", "x: 'b, scope: cluster'", "the map has 2 keys instead of 1"),
        ("[{{ .Manifests.x }}]", "x: 'b, c'", "the list has 2 items instead of 1"),
        ("[{{ .Manifests.x }}]", "x: 'b,c'", "the list has 2 items instead of 1"),
        ("[{{ .Manifests.x }}]", "x: 'b:'", "the text ends with `:`"),
        ("a: 'x{{ .Manifests.x }}'", "x: \"'\"", "the file isn't YAML any more"),
        ("a: \"{{ .Manifests.x }}\"", "x: '\"b\"'", "the file isn't YAML any more"),
        ("a: '{{ .Manifests.x }}'", "x: \"'b'\"", "the file isn't YAML any more"),
        ("a {{ .Manifests.x }}\nb", "x: 'b; c'", "the text has characters that may mean something"),
        ("a: {{ .Manifests.x }}", "x: 'true'", "a boolean instead of text"),
        ("a: {{ .Manifests.x }}", "x: '8080'", "a number instead of text"),
        ("a: {{ .Manifests.x }}", "x: '~'", "nothing instead of text"),
        ("a: {{ .Manifests.x }}", "x: 'null'", "nothing instead of text"),
        ("a: {{ .Manifests.x }}", "x: '2024-01-01'", "instead of text"),
        ("a: 1{{ .Manifests.x }}", "x: 'e5'", "a number instead of text"),
        ("a: {{ .Manifests.x }}{{ .Manifests.y }}", "x: 'tr', y: 'ue'", "a boolean instead of text"),
        ("{{ .Manifests.x }}: b", "x: 'scope'", "becomes a key"),
        ("a: b\n{{ .Manifests.x }}", "x: '---'", "only with this text"),
        ("{{ range splitList \",\" .Manifests.x }}- {{ . }}\n{{ end }}", "x: 'a,b/,c'", "items instead of"),
        ("{{ if eq .Manifests.x \"gold\" }}a: b{{ else }}c: d{{ end }}", "x: gold", "becomes a key"),
        ("{{ if eq .Labels.purpose \"test\" }}a: b{{ end }}", "x: y", "`.Labels.purpose` (`purpose` of the labels)"),
        ("{{ if eq .Workload \"hello\" }}a: b{{ end }}", "x: y", "`.Workload`"),
        ("a: {{ .Manifests.x | replace \"-\" \": \" }}", "x: 'b-'", "the file isn't YAML any more"),
        ("{{ $x := .Manifests.x }}a: {{ $x }}", "x: 'b: c'", "reconciler.yaml:1:"),
        ("{{ with .Manifests.x }}a: {{ . }}{{ end }}", "x: 'b: c'", "reconciler.yaml:1:"),
        ("{{ range $k, $v := .Manifests }}{{ $k }}: {{ $v }}\n{{ end }}", "x: 'b: c'", "reconciler.yaml:1:"),
        ("{{ define \"t\" }}a: {{ . }}{{ end }}{{ template \"t\" .Manifests.x }}", "x: 'b: c'", "reconciler.yaml:1:"),
        ("{{ index (list 1) (len .Manifests.x | add -5 | int) }}: a", "x: hello", ""),
    ] {
        if why.is_empty() {
            // Nothing but text, or nothing that depends on it.
            let _ = rendered(manifest, target);
            continue;
        }
        refused(manifest, target, why);
    }
}

#[test]
fn a_comment_in_a_text_cuts_nothing_off() {
    let cut = "begins a comment";
    refused("cmd: run --team {{ .Manifests.x }} --sandbox=on", "x: 'x #'", cut);
    refused("cmd: run --team {{ .Manifests.x }} --sandbox=on # on purpose", "x: 'x #'", cut);
    refused("image: {{ .Manifests.x }}:1.2.3-hardened", "x: 'evil/img:latest #'", cut);
    refused("a: {{ .Manifests.x }}", "x: 'x #y'", cut);
    refused("a: {{ .Manifests.x }}", "x: '\"b\" # c'", cut);
    refused("a: {{ .Manifests.x | replace \"_\" \" \" }} b", "x: 'c_ #'", cut);
    refused("a: {{ .Manifests.x }}", "x: '&b c'", "an anchor or an alias");
    refused("a: &b c\nd: {{ .Manifests.x }}", "x: '*b'", "an anchor or an alias");
    refused("a: {{ .Manifests.x }}", "x: '|'", "a block of lines");
    refused("a: {{ .Manifests.x }}", "x: '>-'", "a block of lines");
    for (manifest, target, expected) in [
        ("a: {{ .Manifests.x | quote }} # why", "x: 'Team #1'", "a: \"Team #1\" # why\n"),
        ("a: |\n  {{ .Manifests.x }}", "x: 'Team #1'", "a: |\n  Team #1\n"),
        ("a: {{ .Manifests.x }}", "x: 'C#'", "a: C#\n"),
        ("a: {{ toYaml .Manifests.x }}", "x: 'a #b'", "a: 'a #b'\n"),
        ("# of {{ .Manifests.x }}\na: b", "x: 'R&D'", "# of R&D\na: b\n"),
    ] {
        assert_eq!(rendered(manifest, target).as_deref(), Ok(expected), "{manifest} with {target}");
    }
}

#[test]
fn a_text_that_is_too_long_for_a_key_is_refused() {
    let long = "a".repeat(1030);
    let reason = rendered("{{ .Manifests.x }}: v\nw: z", &format!("x: {long}")).unwrap_err();
    assert!(reason.contains("the length of a text may be the reason"), "{reason}");
}

#[test]
fn a_condition_that_harmless_texts_meet_by_chance_is_refused_for_every_text() {
    for condition in
        ["contains \"g\" .Manifests.x", "regexMatch \"^[a-m]\" .Manifests.x", "gt (.Manifests.x | first) 110"]
    {
        for text in ["gold", "goldx", "king", "silver"] {
            let found = rendered(&format!("{{{{ if {condition} }}}}adm: 1\n{{{{ end }}}}b: c"), &format!("x: {text}"));
            assert!(found.is_err(), "{condition} with {text}: {found:?}");
        }
    }
}

#[test]
fn text_of_an_application_is_never_a_template() {
    // Two halves that a template joins.
    for manifest in [
        "a: {{ .Manifests.x }}{{ .Manifests.y }}",
        "a: {{ printf \"%s%s\" .Manifests.x .Manifests.y }}",
        "a: {{ nospace (print .Manifests.x \" \" .Manifests.y) }}",
    ] {
        let found = rendered(manifest, "x: '{', y: '{ .ConfigData }}'");
        assert!(found.is_err(), "{manifest}: {found:?}");
        let found = rendered(manifest, "x: '{', y: '{ \"b\\\\n  scope\" }}: c'");
        assert!(found.is_err(), "{manifest}: {found:?}");
    }
    // An action that the platform wrote around it.
    let around = "a: {{ \"{{\" }} {{ .Manifests.x }} {{ \"}}\" }}";
    refused(around, "x: '.ConfigData.SECRET'", "template");
    refused(around, "x: 'print .Workspace'", "template");
}

#[test]
fn a_value_of_the_platform_may_be_a_template_over_the_applications_text() {
    let values = config("c", "", "{URL: 'https://{{ .Labels.purpose }}.example', PLAIN: x}");
    let of = |label: &str| {
        let manifest = "a: {{ .ConfigData.URL }}";
        outcome(&platform(
            manifest,
            "",
            &format!("labels: {{purpose: test, tier: '{label}'}}, manifests: {{}}"),
            &[&values],
        ))
    };
    assert_eq!(of("x").as_deref(), Ok("a: https://test.example\n"));
    let nested = config("c", "", "{URL: '{{ .Labels.tier }}'}");
    let of = |label: &str| {
        let target = format!("labels: {{purpose: test, tier: '{label}'}}");
        outcome(&platform("a: {{ .ConfigData.URL }}", "", &target, &[&nested]))
    };
    assert_eq!(of("gold").as_deref(), Ok("a: gold\n"));
    assert!(of("b: c").is_err());
    assert!(of("true").is_err());
    assert!(of("{").is_err(), "half a template, and no text to YAML");
}

#[test]
fn what_a_template_stores_in_the_configuration_is_still_the_applications() {
    let manifest = "{{ $_ := set .ConfigData \"x\" .Manifests.x }}a: b";
    let mut hostile =
        platform(manifest, "", "labels: {purpose: test}, manifests: {x: 'c: d'}", &[&config("c", "", "{K: v}")]);
    let namespace = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {name: ns}\nspec: {type: namespace, manifests: ['a: {{ .ConfigData.x }}']}\n";
    read(&mut hostile, "ns.yaml", namespace, None);
    let reason = outcome(&hostile).unwrap_err();
    assert!(reason.contains("template `ns`") && reason.contains("namespace.yaml:1"), "{reason}");
}

#[test]
fn a_template_that_says_so_may_branch() {
    let manifest = "{{ if eq .Labels.tier \"gold\" }}a: b{{ else }}c: d{{ end }}";
    let with = |annotation: &str, tier: &str| {
        outcome(&platform(manifest, annotation, &format!("labels: {{purpose: test, tier: '{tier}'}}"), &[]))
    };
    assert!(with("", "gold").is_err());
    assert!(with("kedge.dev/branches-on: Labels.other", "gold").is_err());
    assert_eq!(with("kedge.dev/branches-on: Labels.tier", "gold").as_deref(), Ok("a: b\n"));
    assert_eq!(with("kedge.dev/branches-on: '.Manifests.x, .Labels.tier'", "silver").as_deref(), Ok("c: d\n"));
    let reason = with("kedge.dev/branches-on: Labels.tier", "b: c").unwrap_err();
    assert!(reason.contains("has to be a word"), "{reason}");
    // A label that the platform gave is the platform's.
    let given = "apiVersion: kedge.dev/v1alpha1\nkind: CapabilityMap\nmetadata: {name: m}\nspec: {rules: [{when: {}, add: {tier: gold}}]}";
    let target = "labels: {purpose: test, tier: silver}";
    assert_eq!(outcome(&platform(manifest, "", target, &[given])).as_deref(), Ok("a: b\n"));
}

const DELIVERY: &str = "apiVersion: kedge.dev/v1alpha1
kind: Delivery
metadata: {name: NAME}
spec:
  source: {repo: https://h/x, path: PATH}
  to: host
  namespace: NAMESPACE
MORE";

fn delivery(path: &str, namespace: &str, more: &str) -> String {
    DELIVERY
        .replace("NAMESPACE", namespace)
        .replace("NAME", "{{ .DeploymentTargetName }}")
        .replace("PATH", path)
        .replace("MORE", more)
}

#[test]
fn in_a_delivery_an_application_chooses_the_source_alone() {
    let good = delivery("{{ .Manifests.x }}", "{{ .Namespace }}", "  serviceAccount: '{{ .Namespace }}-deployer'\n");
    assert!(rendered(&good, "x: ./app").is_ok(), "{:?}", rendered(&good, "x: ./app"));
    for (manifest, field) in [
        (delivery("x", "{{ .Manifests.x }}", ""), "spec.namespace"),
        (delivery("x", "{{ .Workload }}", ""), "spec.namespace"),
        (delivery("x", "{{ .DeploymentTargetName }}", ""), "spec.namespace"),
        (delivery("x", "ns1", "  scope: {{ .Manifests.x }}\n"), "spec.scope"),
        (delivery("x", "ns1", "  serviceAccount: {{ .Labels.purpose }}\n"), "spec.serviceAccount"),
        (
            delivery("x", "ns1", "  drift: {{ if eq .Manifests.x \"cluster\" }}ignore{{ else }}report{{ end }}\n"),
            "spec.drift",
        ),
    ] {
        refused(&manifest, "x: cluster", field);
    }
    let annotated = platform(
        &delivery("x", "ns1", "  scope: {{ .Manifests.x }}\n"),
        "kedge.dev/branches-on: Manifests.x",
        "labels: {purpose: test}, manifests: {x: cluster}",
        &[],
    );
    assert!(outcome(&annotated).is_ok());
}

#[test]
fn keys_of_an_application_add_nothing_to_a_delivery() {
    let manifest = delivery("x", "ns1", "{{ toYaml .Manifests | indent 2 }}\n");
    refused(&manifest, "scope: cluster, conflicts: take", "at `spec.conflicts` in a Delivery");
    let manifest = delivery("x", "ns1", "{{ range $k, $v := .Manifests }}  {{ $k }}: 5m\n{{ end }}");
    refused(&manifest, "timeout: x", "all labels or all fields of `manifests`");
}

#[test]
fn an_unknown_field_or_a_status_stops_a_delivery() {
    for more in ["  skope: cluster\n", "status: {}\n"] {
        let reason = rendered(&delivery("x", "ns1", more), "x: y").unwrap_err();
        assert!(reason.starts_with("UnknownField"), "{reason}");
    }
}

#[test]
fn names_reach_a_host_namespace_and_other_text_does_not() {
    let with = |spec: &str, target: &str| {
        let manifest =
            format!("apiVersion: kedge.dev/v1alpha1\nkind: HostNamespace\nmetadata: {{name: host}}\nspec:\n  {spec}\n");
        rendered(&manifest, target)
    };
    assert!(with("user: {{ .DeploymentTargetName | trunc 32 }}", "x: y").is_ok());
    assert!(with("folders: [{path: '/srv/{{ .Workload }}'}]", "x: y").is_ok());
    assert!(with("allow: {units: ['{{ .Namespace }}.service']}", "x: y").is_ok());
    for spec in [
        "user: {{ .Manifests.x }}",
        "allow: {units: ['{{ .Workload }}.service']}",
        "allow: {debs: ['{{ .Manifests.x }}']}",
    ] {
        let found = with(spec, "x: root");
        assert!(found.as_ref().is_err_and(|reason| reason.contains("HostNamespace")), "{spec}: {found:?}");
    }
}

#[test]
fn what_a_shell_would_act_on_is_refused() {
    let with = |line: &str, value: &str| {
        let mut platform =
            platform("a: b", "", &format!("labels: {{purpose: test}}, manifests: {{x: '{value}'}}"), &[]);
        let template = format!(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {{name: cfg}}\nspec:\n  type: config\n  contentType: sh\n  manifests:\n  - |\n    {line}\n"
        );
        read(&mut platform, "cfg.yaml", &template, None);
        match &schedule(&platform).assignments[&id("drone", "hello-test")].outcome {
            Outcome::Rendered(files) => Ok(files.config.as_ref().map(|(_, text)| text.to_string()).unwrap_or_default()),
            Outcome::Quarantined(reasons) => Err(reasons[0].message.clone()),
        }
    };
    assert_eq!(with("export X=\"{{ .Manifests.x }}\"", "a/b").as_deref(), Ok("export X=\"a/b\"\n"));
    assert_eq!(with("export X=\"{{ .Manifests.x }}\"", "two words").as_deref(), Ok("export X=\"two words\"\n"));
    for value in ["$(reboot)", "`reboot`", "\"; reboot; \"", "a\\\\", "$HOME"] {
        let found = with("export X=\"{{ .Manifests.x }}\"", value);
        assert!(found.as_ref().is_err_and(|why| why.contains("a shell would read more")), "{value}: {found:?}");
    }
    assert!(with("export X={{ .Manifests.x }}", "a b").is_err());
}

#[test]
fn a_here_document_stays_as_long_as_it_was_written() {
    let with = |value: &str| {
        let target = format!("labels: {{purpose: test}}, manifests: {{x: '{value}'}}");
        let mut platform = platform("a: b", "", &target, &[]);
        let template = "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {name: cfg}\nspec:\n  type: config\n  contentType: sh\n  manifests:\n  - |\n    cat > motd <<EOF\n    {{ .Manifests.x }}\n    rm -rf all\n    EOF\n    export A=1\n";
        read(&mut platform, "cfg.yaml", template, None);
        let schedule = schedule(&platform);
        match &schedule.assignments[&id("drone", "hello-test")].outcome {
            Outcome::Rendered(_) => Ok(()),
            Outcome::Quarantined(reasons) => Err(reasons[0].message.clone()),
        }
    };
    assert_eq!(with("payments"), Ok(()));
    for value in ["$(touch PWNED)", "''$(touch PWNED)''", "EOF", "`x`"] {
        let found = with(value);
        assert!(found.as_ref().is_err_and(|why| why.contains("a shell would read more")), "{value}: {found:?}");
    }
}

/// What becomes of a configuration of this type with this label, or why it is stopped and what helps.
fn configuration(content_type: &str, manifest: &str, label: &str) -> Result<String, (String, String)> {
    let target = format!("labels: {{purpose: test, x: '{}'}}, manifests: {{}}", label.replace('\'', "''"));
    let mut platform = platform("a: b", "", &target, &[]);
    let text: String = manifest.lines().map(|line| format!("    {line}\n")).collect();
    let template = format!(
        "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {{name: cfg}}\nspec:\n  type: config\n  contentType: {content_type}\n  manifests:\n  - |\n{text}"
    );
    read(&mut platform, "cfg.yaml", &template, None);
    match &schedule(&platform).assignments[&id("drone", "hello-test")].outcome {
        Outcome::Rendered(files) => Ok(files.config.as_ref().map(|(_, text)| text.to_string()).unwrap_or_default()),
        Outcome::Quarantined(reasons) => {
            Err((format!("{}: {}", reasons[0].code, reasons[0].message), format!("{:?}", reasons[0].hint)))
        }
    }
}

#[test]
fn a_shell_that_is_hard_to_read_gets_words_alone() {
    for (manifest, label) in [
        ("# Made by the platform; don't edit.\nexport TEAM={{ .Labels.x }}", "$(touch MARK)"),
        ("HOST=\"$(echo {{ .Labels.x }} | tr A-Z a-z)\"", "a;touch MARK"),
        ("A=\"$(printf %s '{{ .Labels.x }}')\"", "';touch MARK;'"),
        ("A=\"$(echo \"it's\")\"\nB={{ .Labels.x }}\nC=\"it's\"", "$(touch MARK)"),
        ("SIZE=$((1<<20))\nexport TEAM={{ .Labels.x }}", "a;touch MARK"),
        ("N=$(( {{ .Labels.x }} + 1 ))", "'$(touch MARK)'"),
        ("A=$'it\\'s'\nB={{ .Labels.x }}", "$(touch MARK)"),
        ("A=\"${B:-\"{{ .Labels.x }}\"}\"", "'$(touch MARK)'"),
        ("sh -c \"deploy {{ .Labels.x }}\"", "a; touch MARK"),
        ("export {{ .Labels.x }}", "PATH=/tmp"),
        ("deploy {{ .Labels.x | lower }}", "--force"),
    ] {
        let (message, hint) = configuration("sh", manifest, label).unwrap_err();
        assert!(
            message.starts_with("TextBecomesStructure: template `cfg` makes more than text of `.Labels.x`"),
            "{message}"
        );
        assert!(message.contains("a shell would read more"), "{message}");
        assert!(!hint.contains("quote }}") && hint.contains("export NAME='{{ "), "{hint}");
        let expected = manifest.replace("{{ .Labels.x }}", "blue/v1.2").replace("{{ .Labels.x | lower }}", "blue/v1.2");
        assert_eq!(configuration("sh", manifest, "blue/v1.2"), Ok(expected + "\n"));
    }
}

#[test]
fn what_the_hint_says_about_a_shell_is_so() {
    for (manifest, label) in [
        ("export TEAM='{{ .Labels.x }}'", "R&D $(x) `y` \"z\""),
        (
            "# Made by the platform.\nexport TEAM=\"{{ .Labels.x }}\" HOME=\"${HOME}\"\necho \"$TEAM\"",
            "it's R&D; (a team)",
        ),
    ] {
        let expected = manifest.replace("{{ .Labels.x }}", label) + "\n";
        assert_eq!(configuration("sh", manifest, label), Ok(expected));
    }
}

#[test]
fn a_file_that_is_one_scalar_to_yaml_is_no_yaml() {
    for (content_type, manifest, label) in [
        ("env", "export TEAM={{ .Labels.x }}\nexport E=dev", "a; touch MARK"),
        ("tfvars", "team = \"{{ .Labels.x }}\"", "${file(\"secret\")}"),
        ("terraform", "team = {{ .Labels.x }} # why", "1--"),
        ("sql", "SELECT a FROM t WHERE b = '{{ .Labels.x }}'", "x' OR 'y"),
        ("nginx", "server_name {{ .Labels.x }};", "a; return 200"),
        ("xml", "<team>{{ .Labels.x }}</team>", "a</team><b/><team>"),
    ] {
        let (message, hint) = configuration(content_type, manifest, label).unwrap_err();
        assert!(message.contains("the text has characters that may mean something"), "{message}");
        assert!(!hint.contains("quote }}"), "{hint}");
        let expected = manifest.replace("{{ .Labels.x }}", "blue-1") + "\n";
        assert_eq!(configuration(content_type, manifest, "blue-1"), Ok(expected));
    }
}

#[test]
fn a_script_is_read_as_one_whatever_its_type() {
    let manifest = "#!/bin/sh\nexport TEAM=\"{{ .Labels.x }}\"\nexport E=dev";
    let expected = manifest.replace("{{ .Labels.x }}", "two words") + "\n";
    assert_eq!(configuration("env", manifest, "two words"), Ok(expected));
    let (message, _) = configuration("env", manifest, "$(touch MARK)").unwrap_err();
    assert!(message.contains("a shell would read more"), "{message}");
    let (message, _) = configuration("env", "{{ .Labels.x }}\nb", "#!/bin/sh").unwrap_err();
    assert!(message.contains("a shell would read more"), "{message}");
    // Nor does such a line hide a Delivery.
    refused(&format!("#!x\n{}", delivery("x", "ns1", "  scope: {{ .Manifests.x }}\n")), "x: cluster", "spec.scope");
}

#[test]
fn a_namespace_for_kubernetes_is_yaml() {
    let manifest = delivery("x", "{{ .Namespace }}", "").replace("to: host", "to: kubernetes");
    let with = |name: &str| {
        let mut platform = platform(&manifest, "", "labels: {purpose: test}, manifests: {}", &[]);
        let namespace = format!(
            "apiVersion: scheduler.kalypso.io/v1alpha1\nkind: Template\nmetadata: {{name: ns}}\nspec:\n  type: namespace\n  manifests:\n  - |\n    kind: Namespace\n    name: {name}\n"
        );
        read(&mut platform, "ns.yaml", &namespace, None);
        outcome(&platform)
    };
    assert!(with("\"a\"").is_ok(), "{:?}", with("\"a\""));
    let reason = with("\"a\"b").unwrap_err();
    assert!(reason.starts_with("NotYaml: namespace.yaml can't be read as YAML: "), "{reason}");
}

#[test]
fn the_length_the_parts_and_the_equality_of_texts_decide_nothing_in_a_delivery() {
    for condition in [
        "gt (len .Manifests.x) 6",
        "lt (len .Manifests.x) 20",
        "eq .Manifests.x .Manifests.y",
        "contains \"-\" .Manifests.x",
        "eq (len (splitList \".\" .Manifests.x)) 2",
    ] {
        let more = format!("  scope: {{{{ if {condition} }}}}cluster{{{{ else }}}}namespace{{{{ end }}}}\n");
        let scope = |text: &str| {
            let found = rendered(&delivery("./x", "{{ .Namespace }}", &more), &format!("x: {text}, y: same"));
            found.ok().map(|text| text.contains("scope: cluster"))
        };
        // Whatever the application writes, it gets one of the two at most.
        let texts = ["short", "longer-name", "same", "a.b", "a-text-of-very-many-letters"];
        let scopes: std::collections::BTreeSet<bool> = texts.into_iter().filter_map(scope).collect();
        assert!(scopes.len() < 2, "{condition}: {scopes:?}");
    }
    // Taking a text to pieces for the source is what templates do.
    let path = "./{{ index (splitList \"/\" .Manifests.x) 1 }}";
    let found = rendered(&delivery(path, "{{ .Namespace }}", ""), "x: apps/hello");
    assert!(found.as_ref().is_ok_and(|text| text.contains("path: ./hello")), "{found:?}");
}
