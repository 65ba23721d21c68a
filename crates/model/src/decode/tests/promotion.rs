//! PromotionPolicies: what isn't written is careful, and what can't be meant is refused with the way out.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::kinds::{
    Amount, ApproverRole, Empty, EnvironmentPolicy, Late, Members, Offline, Probe, Promoter, PromotionPolicy, Ring,
    Then,
};

fn read(spec: &str) -> PromotionPolicy {
    match spec_of(&kedge("PromotionPolicy", spec)) {
        Spec::PromotionPolicy(policy) => policy,
        other => panic!("{other:?}"),
    }
}

/// Problems of a policy of one environment with these fields, which begin on the seventh line.
fn refused(fields: &str) -> Vec<String> {
    broken(&kedge("PromotionPolicy", &format!("  environments:\n  - name: dev\n{fields}")))
}

#[test]
fn a_chain_of_names_has_careful_defaults() {
    let policy = read("  environments:\n  - name: dev\n  - name: prod\n");
    assert_eq!(policy.promoter, Promoter::Kedge);
    let expected = [EnvironmentPolicy::new("dev", Vec::new()), EnvironmentPolicy::new("prod", vec!["dev".to_owned()])];
    assert_eq!(policy.environments, expected);
}

#[test]
fn a_graph_of_environments_is_read() {
    let policy = read(
        "  promoter: external\n  environments:\n  - {name: dev}\n  - {name: qa, after: [dev]}\n  - {name: perf, after: [dev]}\n  - {name: prod, after: [qa, perf]}\n  - {name: lab, after: []}\n",
    );
    assert_eq!(policy.promoter, Promoter::External);
    let after: Vec<&[String]> = policy.environments.iter().map(|environment| environment.after.as_slice()).collect();
    assert_eq!(after, [&[] as &[&str], &["dev"], &["dev"], &["qa", "perf"], &[]]);
}

#[test]
fn rings_take_over_what_they_do_not_say_themselves() {
    let policy = read(
        "  environments:
  - name: prod
    rings:
    - {name: canary, selector: {matchLabels: {ring: canary}}, soak: 1h, gate: {reached: 2}}
    - {name: early, share: 12.5%, maxUnavailable: 3, failure: {budget: 5%}, approval: {people: 2, role: application, notAuthor: false}}
    - {name: rest, gate: {checks: []}}
    gate: {converged: 90%, empty: pass, checks: [{name: smoke, commitStatus: {context: ci}}]}
    soak: 1m
    failure: {then: rollback}
    maxUnavailable: 50%
    approval: {}
    offline: incomplete
    late: reopen
    counts: {clusterTypes: [drone], workloads: [hello]}
",
    );
    let prod = &policy.environments[0];
    let [canary, early, rest] = prod.rings.as_slice() else { panic!("{:?}", prod.rings) };
    assert!(matches!(&canary.members, Members::Selected(selector) if selector.to_string() == "ring=canary"));
    assert_eq!((&early.members, &rest.members), (&Members::Share(1250), &Members::Rest));
    assert_eq!((canary.gate.converged, canary.gate.reached), (9000, Amount::Number(2)));
    assert_eq!((canary.gate.empty, canary.gate.checks.len(), rest.gate.checks.len()), (Empty::Pass, 1, 0));
    assert_eq!((canary.soak, rest.soak), (Duration::from_secs(3600), Duration::from_secs(60)));
    assert_eq!((early.failure.budget, early.failure.then), (Amount::Share(500), Then::Rollback));
    assert_eq!((early.max_unavailable, rest.max_unavailable), (Amount::Number(3), Amount::Share(5000)));
    // The environment's approval is asked for once.
    assert!(canary.approval.as_ref().is_some_and(|approval| approval.people == 1 && approval.not_author));
    let again = early.approval.as_ref().unwrap();
    assert_eq!((again.people, again.role, again.not_author), (2, ApproverRole::Application, false));
    assert_eq!(rest.approval, None);
    assert_eq!((prod.offline, prod.late), (Offline::Incomplete, Late::Reopen));
    assert_eq!((prod.counts.cluster_types.len(), prod.counts.workloads.len()), (1, 1));
}

#[test]
fn a_ring_can_do_without_the_approval_of_its_environment() {
    let policy = read(
        "  environments:\n  - name: prod\n    approval: {people: 1}\n    rings:\n    - {name: a, share: 5%, approval: {people: 0}}\n    - {name: b}\n",
    );
    assert!(policy.environments[0].rings.iter().all(|ring| ring.approval.is_none()));
}

#[test]
fn checks_are_read_in_their_three_ways() {
    let policy = read(
        "  environments:
  - name: dev
    gate:
      checks:
      - {name: a, http: {url: \"https://h/x\", pointer: /ok, equals: true}, every: 1m, timeout: 3s}
      - {name: b, http: {url: \"http://h\", equals: {state: [1, 2.5, no problem, null]}}}
      - {name: c, prometheus: {url: \"http://p:9090\", query: up}}
      - {name: d, commitStatus: {context: ci/e2e}}
",
    );
    let checks = &policy.environments[0].rings[0].gate.checks;
    let http = |pointer: &str, equals: &str, url: &str| Probe::Http {
        url: url.into(),
        pointer: pointer.into(),
        equals: equals.into(),
    };
    assert_eq!(checks[0].probe, http("/ok", "true", "https://h/x"));
    assert_eq!((checks[0].every, checks[0].timeout), (Duration::from_secs(60), Duration::from_secs(3)));
    assert_eq!(checks[1].probe, http("", r#"{"state":[1,2.5,"no problem",null]}"#, "http://h"));
    assert_eq!((checks[1].every, checks[1].timeout), (Duration::from_secs(30), Duration::from_secs(10)));
    assert!(matches!(&checks[2].probe, Probe::Prometheus { query, .. } if query == "up"));
    assert!(matches!(&checks[3].probe, Probe::CommitStatus { context } if context == "ci/e2e"));
}

#[test]
fn windows_and_freezes_are_read() {
    let policy = read(
        "  environments:
  - name: dev
    windows:
    - {days: [sat-mon, wed], from: \"22:00\", to: \"06:00\", timeZone: Europe/Berlin}
    - {days: [fri], to: \"24:00\"}
    freezes:
    - {from: 2026-12-20, to: 2027-01-05, reason: holidays}
",
    );
    let dev = &policy.environments[0];
    assert_eq!(dev.windows[0].days, [1, 3, 6, 7]);
    assert_eq!((dev.windows[0].from, dev.windows[0].to), (22 * 60, 6 * 60));
    assert_eq!((dev.windows[1].from, dev.windows[1].to, dev.windows[1].time_zone.as_str()), (0, 24 * 60, "UTC"));
    assert_eq!((dev.freezes[0].from.as_str(), dev.freezes[0].to.as_str()), ("2026-12-20", "2027-01-05"));
}

#[test]
fn fields_that_are_not_known_are_refused_at_every_level() {
    assert_eq!(
        refused("    soack: 1m\n"),
        [
            "7:5 !UnknownField: `spec.environments[0].soack` of PromotionPolicy `x` isn't a field that Kedge knows | did you mean `soak`?"
        ]
    );
    for (fields, said) in [
        ("    gate: {convergd: 1%}\n", "`spec.environments[0].gate.convergd`"),
        ("    rings: [{name: a, shar: 10%}]\n", "`spec.environments[0].rings[0].shar`"),
        ("    rings: [{name: a, selector: {matchLabel: {a: b}}}, {name: b}]\n", "selector.matchLabel`"),
        ("    windows: [{day: [mon]}]\n", "windows[0].day`"),
        ("    freezes: [{from: 2026-01-01, to: 2026-01-01, why: x}]\n", "freezes[0].why`"),
        ("    approval: {poeple: 2}\n", "approval.poeple`"),
        ("    failure: {buget: 2}\n", "failure.buget`"),
        ("    counts: {types: [a]}\n", "counts.types`"),
        ("    gate: {checks: [{name: a, commitStatus: {context: a, x: 1}}]}\n", "checks[0].commitStatus.x`"),
    ] {
        let problems = refused(fields);
        assert!(problems[0].contains("!UnknownField") && problems[0].contains(said), "{problems:?}");
    }
    assert!(
        broken(&kedge("PromotionPolicy", "  environment: []\n  environments: [{name: a}]\n"))[0]
            .contains("!UnknownField")
    );
}

#[test]
fn rings_out_of_order_are_refused_with_the_way_out() {
    assert_eq!(
        refused("    rings:\n    - {name: a, share: 10%}\n    - {name: b, share: 20%}\n"),
        [
            "9:24 !RingOrder: `spec.environments[0].rings[1].share` of PromotionPolicy `x` can't be there: `b` is the last ring and \
             takes every cluster that no other takes | remove it, or add a last ring for the rest: `- name: rest`"
        ]
    );
    assert_eq!(
        refused("    rings:\n    - name: a\n    - name: b\n"),
        [
            "8:7 !RingOrder: `spec.environments[0].rings[0]` of PromotionPolicy `x` has neither `selector` nor `share`, so that the \
             rings after it would have no cluster | say who is in it: `share: 10%`, or a `selector`"
        ]
    );
    assert_eq!(
        refused("    rings:\n    - {name: a, share: 60%}\n    - {name: b, share: 40.5%}\n    - {name: c}\n"),
        [
            "8:5 !TooMuch: `spec.environments[0].rings` of PromotionPolicy `x` has shares of 100.5% in total, and there is only \
             100% | lower one of them; the last ring takes the rest without a share"
        ]
    );
    let twice = refused("    rings:\n    - {name: a, share: 10%}\n    - {name: a}\n");
    assert!(twice[0].contains("!DuplicateName") && twice[0].contains("`a`"), "{twice:?}");
    assert!(
        refused("    rings: [{name: a, share: 10%, selector: {}}, {name: b}]\n")[0]
            .contains("can't stand beside `selector`")
    );
    assert!(refused("    rings: []\n")[0].contains("names no ring"));
    assert!(refused("    rings: [{name: a/b}]\n")[0].contains("!BadName"));
}

#[test]
fn values_that_cannot_be_are_refused() {
    for (fields, said) in [
        ("    rings: [{name: a, share: 110%}, {name: b}]\n", "it isn't a share such as"),
        ("    rings: [{name: a, share: 0%}, {name: b}]\n", "is nobody"),
        ("    gate: {converged: 3}\n", "it isn't a share such as"),
        ("    gate: {reached: many}\n", "it isn't a number of clusters such as `3`"),
        ("    maxUnavailable: 0\n", "is none, so that nothing would ever change"),
        ("    soak: 10\n", "it isn't a duration"),
        ("    windows: [{days: [mon, tues]}]\n", "isn't a day: `tues` | did you mean `tue`?"),
        ("    windows: [{days: [someday]}]\n", "or a range such as `mon-fri`"),
        ("    windows: [{days: []}]\n", "names no day"),
        ("    windows: [{from: 9am}]\n", "isn't a time of day: `9am`"),
        ("    windows: [{from: \"09:00\", to: \"09:00\"}]\n", "leaves the window no time"),
        ("    windows: [{to: \"25:00\"}]\n", "isn't a time of day"),
        ("    freezes: [{from: 2026-02-30, to: 2026-03-01}]\n", "isn't a day of the calendar: `2026-02-30`"),
        ("    freezes: [{from: 2026-03-02, to: 2026-03-01}]\n", "is before its `from`"),
        ("    freezes: [{from: 2026-03-02}]\n", "has no `spec.environments[0].freezes[0].to`"),
        ("    approval: {people: some}\n", "must be a whole number"),
        ("    approval: {role: viewer}\n", "can't be `viewer` | write `platform` or `application`"),
        ("    failure: {then: rolback}\n", "did you mean `rollback`?"),
        ("    gate: {checks: [{name: a}]}\n", "must have one of `http`, `prometheus` and `commitStatus`"),
        ("    gate: {checks: [{name: a, http: {url: \"ftp://h\", equals: 1}}]}\n", "must be a URL"),
        (
            "    gate: {checks: [{name: a, http: {url: \"http://h\"}}]}\n",
            "has no `spec.environments[0].gate.checks[0].http.equals`",
        ),
        ("    gate: {checks: [{name: a, http: {url: \"http://h\", pointer: a, equals: 1}}]}\n", "isn't a JSON Pointer"),
        ("    gate: {checks: [{name: a, http: {url: \"http://h\", equals: .inf}}]}\n", "can't be written as JSON"),
        ("    gate: {checks: [{name: a, commitStatus: {context: c}, every: 10ms}]}\n", "is less than a second"),
        (
            "    gate: {checks: [{name: a, commitStatus: {context: c}}, {name: a, commitStatus: {context: d}}]}\n",
            "!DuplicateName",
        ),
        ("    offline: maybe\n", "can't be `maybe`"),
    ] {
        let problems = refused(fields);
        assert!(problems.iter().any(|problem| problem.contains(said)), "{fields}: {problems:?}");
    }
}

#[test]
fn a_chain_that_leads_nowhere_is_refused() {
    let chain = |text: &str| broken(&kedge("PromotionPolicy", text));
    assert_eq!(
        chain("  environments:\n  - {name: dev}\n  - {name: prod, after: [dve]}\n"),
        [
            "7:25 !UnknownEnvironment: `spec.environments[1].after` of PromotionPolicy `x` names `dve`, which isn't an environment \
             of this policy | did you mean `dev`?"
        ]
    );
    assert_eq!(
        chain("  environments:\n  - {name: a, after: [c]}\n  - {name: b}\n  - {name: c}\n"),
        [
            "6:22 !Circle: `spec.environments[0].after` of PromotionPolicy `x` closes a circle: a after c after b after a | let one \
             of them begin: `after: []`"
        ]
    );
    assert!(chain("  environments:\n  - {name: a, after: [a]}\n")[0].contains("a after a"));
    assert!(chain("  environments:\n  - {name: a}\n  - {name: a}\n")[0].contains("!DuplicateName"));
    assert!(chain("  environments: []\n")[0].contains("names no environment"));
    assert!(chain("  promoter: kedge\n")[0].contains("has no `spec.environments`"));
}

#[test]
fn a_time_zone_is_asked_of_whoever_knows() {
    let text =
        kedge("PromotionPolicy", "  environments:\n  - name: dev\n    windows:\n    - {timeZone: Europe/Berln}\n");
    let options = Options { is_time_zone: Some(|name| name == "Europe/Berlin"), ..Options::default() };
    let decoded = objects(text.as_bytes(), &file(), &options);
    assert_eq!(
        said(&decoded.problems),
        [
            "8:18 !UnknownTimeZone: `spec.environments[0].windows[0].timeZone` of PromotionPolicy `x` isn't a time zone: \
             `Europe/Berln` | write a name such as `Europe/Berlin`, `America/New_York` or `UTC`"
        ]
    );
    assert_eq!(decoded.broken.len(), 1);
    assert_eq!(decode(&text).problems, Vec::new());
    assert!(objects(text.replace("Berln", "Berlin").as_bytes(), &file(), &options).broken.is_empty());
}

#[test]
fn every_problem_is_told_at_once() {
    let problems = refused("    soak: x\n    rings: [{name: a, share: x}, {name: b, soak: y}]\n    late: z\n");
    assert_eq!(problems.len(), 4, "{problems:?}");
}

#[test]
fn a_policy_survives_being_frozen() {
    let text = include_str!("../../../tests/fixtures/promotionpolicy.yaml");
    let Spec::PromotionPolicy(policy) = spec_of(text) else { panic!() };
    let frozen = serde_json::to_string(&policy).unwrap();
    assert_eq!(serde_json::from_str::<PromotionPolicy>(&frozen).unwrap(), policy);
    assert_eq!(Ring::new("a", Members::Rest).soak, Duration::from_secs(600));
}

proptest! {
    #[test]
    fn no_policy_panics(cut in 0..2000usize, noise in "\\PC{0,12}") {
        let text = include_str!("../../../tests/fixtures/promotionpolicy.yaml");
        let cut = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= cut).last().unwrap_or(0);
        let _ = decode(&text[..cut]);
        let _ = decode(&format!("{}{noise}{}", &text[..cut], &text[cut..]));
    }

    #[test]
    fn no_chain_of_any_shape_loops(links in proptest::collection::vec((0..12usize, proptest::collection::vec(0..12usize, 0..4)), 1..12)) {
        let items: Vec<String> = links
            .iter()
            .map(|(name, after)| {
                let after: Vec<String> = after.iter().map(|name| format!("e{name}")).collect();
                format!("  - {{name: e{name}, after: [{}]}}\n", after.join(", "))
            })
            .collect();
        let _ = decode(&kedge("PromotionPolicy", &format!("  environments:\n{}", items.concat())));
    }
}
