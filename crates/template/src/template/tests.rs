//! Whole templates: what they give, how their errors read, and that hostile ones end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kedge_goyaml::Value as Yaml;
use proptest::prelude::*;

use super::*;
use crate::testing;

fn config() -> BTreeMap<Arc<str>, Arc<Yaml>> {
    let text = |text: &str| Yaml::String(text.to_owned());
    let key = |key: &str| kedge_goyaml::Key::String(key.to_owned());
    let entries = [
        ("s", text("Hello")),
        ("l", Yaml::List(vec![text("a"), Yaml::Int(1), Yaml::Bool(true), Yaml::Null])),
        ("m", Yaml::Map(BTreeMap::from([(key("b"), Yaml::Int(1)), (key("a"), text("x"))]))),
        ("inner", text("<{{ .Workload }}>")),
        ("loop", text("{{ .ConfigData.loop }}")),
        ("broken", text("{{ .Nope }}")),
    ];
    entries.into_iter().map(|(key, value)| (Arc::from(key), Arc::new(value))).collect()
}

fn with_data<T>(run: impl FnOnce(&Data<'_>) -> T) -> T {
    testing::with_data(&[("workload", "w"), ("zone", "z")], &config(), run)
}

fn render(source: &str) -> Result<String, Error> {
    with_data(|data| Template::parse(source)?.render(data, &Limits::default()))
}

fn check(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        assert_eq!(render(source).as_deref().map_err(ToString::to_string), Ok(*expected), "{source}");
    }
}

fn check_errors(cases: &[(&str, &str)]) {
    for (source, expected) in cases {
        assert_eq!(render(source).map_err(|error| error.to_string()), Err((*expected).to_owned()), "{source}");
    }
}

/// Hostile templates end in an error that says this, at once.
fn check_bound(source: &str, expected: &str) {
    let start = Instant::now();
    let error = render(source).expect_err(&source[..source.len().min(80)]);
    assert!(error.message.contains(expected), "{}", &error.message[..error.message.len().min(300)]);
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

#[test]
fn fields_of_the_context_and_its_maps_are_read() {
    check(&[
        ("{{ .Workload }}-{{ .Environment }} {{.Manifests.repo}}", "w-dev r"),
        ("{{ .Labels.nope }}|{{ index .Labels \"nope\" }}|{{ .ConfigData.nope.x }}", "<no value>||<no value>"),
        ("{{ .ConfigData.m.a }} {{ .ConfigData.l }} {{ .Labels }}", "x [a 1 true <nil>] map[workload:w zone:z]"),
        ("{{ with .ConfigData.m }}{{ .b }}{{ $.Workload }}{{ end }}", "1w"),
        ("{{ (index .ConfigData \"m\").a }}{{ len .Labels }}{{ len .ConfigData.s }}", "x25"),
    ]);
}

#[test]
fn control_actions_behave_as_in_go() {
    check(&[
        ("{{ if false }}a{{ else if .ConfigData.s }}b{{ else }}c{{ end }}", "b"),
        ("{{ with .ConfigData.nope }}a{{ else with .ConfigData.s }}{{ . }}{{ end }}", "Hello"),
        ("{{ range $k, $v := .Labels }}{{ $k }}={{ $v }};{{ end }}", "workload=w;zone=z;"),
        ("{{ range $i, $e := .ConfigData.l }}{{ $i }}{{ $e }} {{ end }}", "0a 11 2true 3<no value> "),
        ("{{ range 3 }}{{ . }}{{ end }}{{ range $x := 0 }}x{{ else }}none{{ end }}", "012none"),
        (
            "{{ range 9 }}{{ if eq . 2 }}{{ continue }}{{ end }}{{ if eq . 4 }}{{ break }}{{ end }}{{ . }}{{ end }}",
            "013",
        ),
        ("{{ $x := 1 }}{{ range $x = .ConfigData.l }}{{ end }}{{ $x }}", "<no value>"),
        ("{{ define \"x\" }}[{{ . }}]{{ end }}{{ template \"x\" 1 }}{{ block \"b\" 2 }}({{ . }}){{ end }}", "[1](2)"),
        ("a {{- \" b \" -}} c {{/* note */ -}}  |{{- /* c */}}", "a b c |"),
        ("{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ $x := 3 }}{{ end }}{{ $x }}", "2"),
    ]);
}

#[test]
fn builtins_compare_and_print_as_in_go() {
    check(&[
        (
            "{{ eq 1 2 1 }} {{ ne \"a\" \"b\" }} {{ lt 1 2 }} {{ ge 2.5 2.5 }} {{ eq .ConfigData.nope nil }}",
            "true true true true true",
        ),
        ("{{ and 1 0 (fail \"no\") }} {{ or 0 \"\" \"x\" }} {{ not 0 }}", "0 x true"),
        ("{{ printf \"%05d|%q|%v\" 42 \"b\" .ConfigData.l }}", "00042|\"b\"|[a 1 true <nil>]"),
        (
            "{{ html \"<a>&'\" }} {{ urlquery \"a b&c\" }} {{ js \"it's <x>\" }}",
            "&lt;a&gt;&amp;&#39; a+b%26c it\\'s \\u003Cx\\u003E",
        ),
        ("{{ index .ConfigData.l 0 }} {{ index \"abc\" 1 }} {{ print 1 2 \"a\" }} {{ println 1 }}", "a 98 1 2a 1\n"),
        ("{{ 0x10 }} {{ 1e3 }} {{ 'a' }} {{ 1+2i }} {{ 1_000 }} {{ `raw` }}", "16 1000 97 (1+2i) 1000 raw"),
    ]);
}

#[test]
fn errors_have_gos_place_and_words() {
    check_errors(&[
        (
            "{{ .Nope }}",
            "template: template:1:3: executing \"template\" at <.Nope>: can't evaluate field Nope in type scheduler.dataType",
        ),
        (
            "a\n  {{ .ConfigData.s.x }}",
            "template: template:2:16: executing \"template\" at <.ConfigData.s.x>: can't evaluate field x in type interface {}",
        ),
        ("{{ upper 3 }}", "template: template:1:9: executing \"template\" at <3>: expected string; found 3"),
        (
            "{{ upper \"a\" \"b\" }}",
            "template: template:1:3: executing \"template\" at <upper>: wrong number of args for upper: want 1 got 2",
        ),
        (
            "{{ eq 1 1.0 }}",
            "template: template:1:3: executing \"template\" at <eq 1 1.0>: error calling eq: incompatible types for comparison: int and float64",
        ),
        (
            "{{ keys .Labels }}",
            "template: template:1:8: executing \"template\" at <.Labels>: wrong type for value; expected map[string]interface {}; got map[string]string",
        ),
        (
            "{{ define \"d\" }}{{ fail \"boom\" }}{{ end }}{{ template \"d\" }}",
            "template: template:1:19: executing \"d\" at <fail \"boom\">: error calling fail: boom",
        ),
        ("{{ $y }}", "template: template:1: undefined variable \"$y\""),
        ("{{ nosuch }}", "template: template:1: function \"nosuch\" not defined"),
        ("\n{{ if true }}x", "template: template:2: unexpected EOF"),
        ("{{ .a-b }}", "template: template:1: bad character U+002D '-'"),
        ("{{ 1 | 2 }}", "template: template:1: non executable command in pipeline stage 2"),
        ("{{\n\"x }}", "template: template:2: unterminated quoted string in action started at template:1"),
    ]);
}

#[test]
fn an_errors_parts_can_be_placed_by_the_caller() {
    let error = render("x\n{{ .Nope }}").expect_err("no such field");
    assert_eq!((error.line, error.column, error.expression()), (Some(2), Some(3), Some(".Nope")));
    assert_eq!(error.cause(), "can't evaluate field Nope in type scheduler.dataType");
}

#[test]
fn a_refused_function_is_named_with_its_reason() {
    let error = Template::parse("{{ env \"HOME\" }}").expect_err("env is refused");
    assert!(error.message.starts_with("function \"env\" is refused: "), "{error}");
}

#[test]
fn kalypsos_functions_write_yaml_hash_and_unquote() {
    check(&[
        ("{{ toYaml .ConfigData.m }}", "a: x\nb: 1"),
        (
            "{{ stringify (dict \"l\" (list 1 2) \"m\" .ConfigData.m) }}",
            "l: |\n    - 1\n    - 2\nm:\n    a: x\n    b: 1",
        ),
        ("{{ hash \"x\" }} {{ unquote \" \\\"'a'\\\" \" }}", "12638153115695167399 a"),
    ]);
}

#[test]
fn values_that_are_templates_are_rendered_again() {
    check(&[("{{ .ConfigData.inner }}", "<w>")]);
    let error = render("{{ .ConfigData.broken }}").expect_err("broken");
    assert_eq!(error.config_key.as_deref(), Some("broken"));
}

#[test]
fn a_value_that_produces_itself_is_named() {
    let error = render("{{ .ConfigData.loop }}").expect_err("endless");
    assert!(error.message.contains("the configuration value \"loop\" keeps producing it"), "{error}");
    assert_eq!(error.config_key.as_deref(), Some("loop"));
}

#[test]
fn set_stays_visible_to_the_next_template() {
    with_data(|data| {
        let limits = Limits::default();
        let first = Template::parse("{{ $_ := set .ConfigData \"new\" \"v\" }}").expect("parses");
        assert_eq!(first.render(data, &limits).as_deref(), Ok(""));
        let second = Template::parse("{{ .ConfigData.new }}{{ index .ConfigData \"new\" }}").expect("parses");
        assert_eq!(second.render(data, &limits).as_deref(), Ok("vv"));
        let third = Template::parse("{{ toYaml .ConfigData | contains \"new: v\" }}").expect("parses");
        assert_eq!(third.render(data, &limits).as_deref(), Ok("true"));
    });
}

#[test]
fn templates_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Template>();
}

#[test]
fn endless_work_ends_at_the_budget() {
    check_bound("{{ range until 1000000000 }}x{{ end }}", "budget");
    check_bound("{{ range 1000000000 }}{{ end }}", "budget");
    check_bound("{{ range $i := 9223372036854775807 }}{{ $i }}{{ end }}", "budget");
    check_bound("{{ range 1000 }}{{ range 1000 }}{{ range 1000 }}{{ end }}{{ end }}{{ end }}", "budget");
    check_bound(&format!("{{{{ printf \"{}\" 1 }}}}", "%1000000[1]d".repeat(1000)), "budget");
    check_bound("{{ printf \"%.5000000f\" 1.0 }}", "budget");
    check_bound(
        "{{ range 100000 }}aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa{{ end }}",
        "budget",
    );
    let chain = ".x".repeat(50_000);
    check_bound(&format!("{{{{ range 100000 }}}}{{{{ $.ConfigData{chain} }}}}{{{{ end }}}}"), "budget");
}

#[test]
fn values_cannot_grow_without_end() {
    check_bound("{{ $x := list }}{{ range 50000 }}{{ $x = list $x }}{{ end }}", "nested deeper");
    check_bound("{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}", "budget");
    let chain = "{{ $top := dict }}{{ $end := $top }}{{ range 15000 }}{{ $next := dict }}\
        {{ $_ := set $end \"x\" $next }}{{ $end = $next }}{{ end }}";
    for use_of_top in ["deepCopy $top", "toJson $top", "toYaml $top", "hash $top", "deepEqual $top (deepCopy $top)"] {
        check_bound(&format!("{chain}{{{{ {use_of_top} }}}}"), "nested deeper");
    }
    check_bound(&format!("{chain}{{{{ $top }}}}"), "budget");
    // Many keys are no reason to fail.
    let keys = "{{ $d := dict }}{{ range until 5000 }}{{ $_ := set $d (print .) (list .) }}{{ end }}{{ len $d }}";
    check(&[(keys, "5000")]);
    // It can be built and freed.
    check(&[(&format!("{chain}{{{{ len $top }}}}"), "1")]);
    let web = "{{ $top := dict }}{{ $end := $top }}{{ range 60 }}{{ $next := dict }}{{ $_ := set $end \"x\" $next }}\
        {{ $_ := set $end \"y\" $next }}{{ $end = $next }}{{ end }}{{ $_ := set .ConfigData \"web\" $top }}";
    check_bound(web, "budget");
    let web = web.replace("{{ $_ := set .ConfigData \"web\" $top }}", "");
    for use_of_top in ["$top", "toJson $top", "toYaml $top", "hash $top", "deepCopy $top", "merge (deepCopy $top) $top"]
    {
        check_bound(&format!("{web}{{{{ {use_of_top} }}}}"), "budget");
    }
}

#[test]
fn no_map_can_hold_itself() {
    check_bound("{{ $d := dict }}{{ $_ := set $d \"self\" $d }}{{ $d }}", "hold itself");
    check_bound("{{ $_ := set .ConfigData \"x\" . }}{{ . }}", "hold itself");
    check_bound("{{ $a := dict }}{{ $b := dict \"a\" (list $a) }}{{ $_ := set $a \"b\" $b }}{{ $a }}", "hold itself");
    check_bound(
        "{{ $n := dict }}{{ $t := dict \"a\" $n \"z\" (semver \"1.2.3\") }}\
        {{ merge $t (dict \"a\" (dict \"x\" $n) \"z\" (dict)) }}{{ $n }}",
        "hold itself",
    );
}

#[test]
fn a_short_template_cannot_make_long_texts_or_long_work() {
    let many = "{{ $s := repeat 100000 \"x\" }}{{ $l := list }}{{ range until 500 }}{{ $l = append $l $s }}{{ end }}";
    for use_of_list in ["join \"\" $l", "toStrings $l", "sortAlpha $l", "toYaml $l", "stringify (dict \"a\" $l)"] {
        check_bound(&format!("{many}{{{{ {use_of_list} }}}}"), "budget");
    }
    check_bound("{{ regexReplaceAll \".*\" (repeat 400000 \"x\") (repeat 100000 \"$0\") }}", "budget");
    check_bound("{{ range until 2000 }}{{ regexMatch \"\\\\pL{999}\" \"x\" }}{{ end }}", "budget");
    check_bound("{{ regexMatch \"[ab]{1000}c\" (repeat 500000 \"ab\") }}", "budget");
    check_bound("{{ semverCompare (repeat 100000 \"1 - 2 \") \"1.0.0\" }}", "budget");
    let lines = "{{ $l := repeat 100000 \"a\\n\" }}{{ range until 100 }}{{ $l = list $l }}{{ end }}{{ toYaml $l }}";
    check_bound(lines, "budget");
    check(&[("{{ len (trimAll (print (repeat 500000 \"b\") \"a\") (repeat 500000 \"a\")) }}", "0")]);
}

#[test]
fn recursion_ends_with_an_error() {
    check_bound(
        "{{ define \"x\" }}{{ template \"x\" . }}{{ end }}{{ template \"x\" . }}",
        "exceeded maximum template depth",
    );
    let nested = "{{ if true }}".repeat(40) + "{{ template \"x\" . }}" + &"{{ end }}".repeat(40);
    check_bound(&format!("{{{{ define \"x\" }}}}{nested}{{{{ end }}}}{{{{ template \"x\" . }}}}"), "exceeded maximum");
}

#[test]
fn deep_source_is_refused_without_a_stack_overflow() {
    let deep = |open: &str, close: &str| open.repeat(10_000) + close;
    check_bound(&deep("{{ if true }}", ""), "depth exceeded");
    check_bound(&(deep("{{ range 1 }}", "") + &"{{ end }}".repeat(10_000)), "depth exceeded");
    check_bound(&format!("{{{{ {} }}}}", deep("(", "1")), "depth exceeded");
    check_bound(&format!("{{{{ if 1 }}}}{}{{{{ end }}}}", "{{ else if 1 }}".repeat(10_000)), "depth exceeded");
    check_bound(&deep("{{ block \"a\" . }}", ""), "depth exceeded");
}

#[test]
fn the_deepest_allowed_source_renders() {
    let depth = parser::MAX_NESTING;
    let controls = "{{ if true }}".repeat(depth) + "x" + &"{{ end }}".repeat(depth);
    assert_eq!(render(&controls).as_deref(), Ok("x"));
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(render(&parentheses).as_deref(), Ok("1"));
}

/// Pieces of templates, so that random text gets beyond the lexer.
fn piece() -> impl Strategy<Value = String> {
    let words = [
        "{{",
        "}}",
        "{{-",
        "-}}",
        " ",
        "\n",
        "(",
        ")",
        "|",
        ".",
        ".ConfigData",
        ".l",
        ".m",
        ".Labels",
        "$",
        "$x",
        ":=",
        "=",
        ",",
        "if",
        "else",
        "end",
        "range",
        "with",
        "define",
        "template",
        "block",
        "break",
        "\"x\"",
        "`r`",
        "'c'",
        "1",
        "2.5",
        "1i",
        "nil",
        "true",
        "index",
        "len",
        "printf",
        "\"%v %d\"",
        "eq",
        "and",
        "list",
        "dict",
        "set",
        "toYaml",
        "hash",
        "repeat",
        "until",
        "99999999",
        "/*",
        "*/",
        "é",
        "text",
    ];
    prop_oneof![9 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_makes_it_panic_or_hang(pieces in prop::collection::vec(piece(), 0..60), joiner in "[ ]?") {
        let start = Instant::now();
        let _ = render(&pieces.join(&joiner));
        prop_assert!(start.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn plain_text_stays_as_it_is(text in "[^{]*") {
        let rendered = render(&text);
        prop_assert_eq!(rendered, Ok(text));
    }

    #[test]
    fn every_action_that_go_accepts_ends(inside in prop::collection::vec(piece(), 0..12)) {
        let source = format!("{{{{ {} }}}}", inside.join(" "));
        let _ = render(&source);
    }
}
