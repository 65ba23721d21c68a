//! Files that aren't what they should be.

use proptest::prelude::*;

use super::*;
use crate::decode::{MAX_FILE_BYTES, too_large};
use crate::{Kind, Labels};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels:\n    region: east\n";

#[test]
fn empty_files_and_documents_say_nothing() {
    for text in ["", "\n\n", "# nothing\n", "---\n---\n", "\u{feff}"] {
        assert_eq!(decode(text), Decoded::default(), "{text:?}");
    }
}

#[test]
fn tab_is_shown_and_the_object_salvaged() {
    let decoded = decode(&format!("{CONFIG_MAP}data:\n\tA: b\n"));
    assert_eq!(
        said(&decoded.problems),
        ["8:1 !TabIndentation: the file isn't YAML: a tab can't indent it | indent with spaces"]
    );
    assert_eq!(decoded.problems[0].excerpt.as_ref().unwrap().text, "→A: b");
    let broken = &decoded.broken[0];
    assert_eq!((broken.kind, broken.name.as_deref()), (Some(Kind::ConfigMap), Some("a")));
    assert_eq!(broken.labels, Some(Labels::from([("region".into(), "east".into())])));
    assert_eq!(broken.problem, decoded.problems[0]);
}

#[test]
fn duplicate_key_names_both_lines() {
    let text = format!("{CONFIG_MAP}---\n{CONFIG_MAP}data:\n  A: b\n  A: c\n");
    let decoded = decode(&text);
    assert_eq!(decoded.objects.len(), 1, "the other document is fine");
    assert_eq!(
        said(&decoded.problems),
        [
            "16:3 !NotYaml: the file can't be read as YAML: the key `A` stands twice in this map, first on line 15 | remove one of them"
        ]
    );
}

#[test]
fn one_broken_document_leaves_the_others() {
    let decoded = decode(&format!("{CONFIG_MAP}---\n{CONFIG_MAP}data: [\n---\n{CONFIG_MAP}"));
    assert_eq!(decoded.objects.iter().map(|object| object.origin.line).collect::<Vec<_>>(), [1, 16]);
    assert_eq!(decoded.broken.len(), 1);
    assert_eq!(decoded.broken[0].name.as_deref(), Some("a"));
}

#[test]
fn alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let before = format!("*a{}, ", level - 1).repeat(10);
        text.push_str(&format!("a{level}: &a{level} [{}]\n", before.trim_end_matches(", ")));
    }
    let said = broken(&text);
    assert_eq!(said.len(), 1);
    assert!(
        said[0].contains("!NotYaml: the file can't be read as YAML: aliases expand this document beyond"),
        "{said:?}"
    );
}

#[test]
fn deep_nesting_is_refused() {
    for text in ["[".repeat(10_000), "{a: ".repeat(10_000), "- ".repeat(10_000)] {
        let said = broken(&text);
        assert_eq!(said.len(), 1);
        assert!(said[0].contains("nested deeper than 100 levels"), "{said:?}");
    }
}

#[test]
fn large_file_is_refused_with_its_size_and_says_what_it_stops() {
    let text = format!("{CONFIG_MAP}data:\n  A: {}\n---\n{CONFIG_MAP}", "x".repeat(MAX_FILE_BYTES));
    let decoded = decode(&text);
    assert_eq!(
        said(&decoded.problems),
        [format!(
            "0:0 !FileTooLarge: the file has {} bytes, over the limit of 4194304 | \
             split it, or name it in `.sourceignore` if it isn't part of the platform",
            text.len()
        )]
    );
    assert_eq!(decoded.broken.len(), 2);
    for broken in &decoded.broken {
        assert_eq!((broken.kind, broken.name.as_deref()), (Some(Kind::ConfigMap), Some("a")));
        assert_eq!(broken.labels, Some(Labels::from([("region".into(), "east".into())])));
    }
}

#[test]
fn beginning_of_a_large_file_is_not_taken_for_the_whole() {
    let cut = |text: &str| too_large(text.as_bytes(), 5 << 20, &file(), &Options::default()).broken.remove(0);
    assert!(cut(&format!("{CONFIG_MAP}data:\n  A: x\n  B: y")).labels.is_some());
    assert_eq!(cut(&format!("{CONFIG_MAP}    platf")).labels, None, "more labels may follow");
    assert_eq!(cut("apiVersion: v1\ndata:\n  A: x\n  B: y").kind, Some(Kind::ConfigMap));
    assert_eq!(cut("").kind, None);
}

#[test]
fn windows_files_are_read_as_others() {
    let text = format!("\u{feff}{CONFIG_MAP}data:\n  A: |\n    b\n    c\n---\n{CONFIG_MAP}").replace('\n', "\r\n");
    let decoded = decode(&text);
    assert_eq!(said(&decoded.problems), Vec::<String>::new());
    assert_eq!(decoded.objects.iter().map(|object| object.origin.line).collect::<Vec<_>>(), [1, 12]);
    let Spec::ConfigMap(map) = &decoded.objects[0].spec else { panic!() };
    assert_eq!((map.data["A"].text.as_str(), map.data["A"].line), ("b\nc\n", 8));
    let decoded = decode(&text.replace("A: |", "A: ["));
    assert_eq!((decoded.objects.len(), decoded.broken.len()), (1, 1));
    assert_eq!(decoded.broken[0].labels, Some(Labels::from([("region".into(), "east".into())])));
}

#[test]
fn directives_comments_and_end_markers_stand_between_documents() {
    let text = format!(
        "%YAML 1.1\n# first\n---\n{CONFIG_MAP}...\n# second\n--- # here\n{}--- # third\n{CONFIG_MAP}",
        CONFIG_MAP.replace("name: a", "name: b")
    );
    let decoded = decode(&text);
    assert_eq!(said(&decoded.problems), Vec::<String>::new());
    assert_eq!(decoded.objects.iter().map(|object| object.origin.line).collect::<Vec<_>>(), [4, 13, 20]);
    // The same when one of them is broken.
    let decoded = decode(&text.replace("name: b", "name: [b"));
    assert_eq!(decoded.objects.iter().map(|object| object.origin.line).collect::<Vec<_>>(), [4, 20]);
    assert_eq!(decoded.broken.len(), 1, "{:#?}", decoded.broken);
    let text = format!("{CONFIG_MAP}...\n{}data: [\n", CONFIG_MAP.replace("name: a", "name: b"));
    let decoded = decode(&text);
    assert_eq!((decoded.objects.len(), decoded.broken.len()), (1, 1));
    assert_eq!(decoded.broken[0].name.as_deref(), Some("b"));
}

#[test]
fn anchors_hold_inside_their_document() {
    let object = only(&CONFIG_MAP.replace("region: east", "region: &r east\n    zone: *r"));
    assert_eq!(object.meta.labels["zone"], "east");
    let decoded =
        decode(&format!("{}---\n{}", CONFIG_MAP.replace("east", "&r east"), CONFIG_MAP.replace("east", "*r")));
    assert_eq!((decoded.objects.len(), decoded.broken.len()), (1, 1));
    assert!(said(&decoded.problems)[0].contains("NotYaml"), "{:?}", decoded.problems);
}

#[test]
fn binary_file_is_named_as_such() {
    let decoded = objects(b"\x7fELF\0\0\xff", &file(), &Options::default());
    assert!(said(&decoded.problems)[0].contains("!BinaryFile: the file is binary: it contains a NUL byte"));
    let decoded = objects(b"a: b\nc: \0\n", &file(), &Options::default());
    assert!(said(&decoded.problems)[0].starts_with("2:4 !BinaryFile"));
}

#[test]
fn invalid_utf8_is_placed() {
    let mut bytes = CONFIG_MAP.as_bytes().to_vec();
    bytes.extend(b"data:\n  A: caf\xe9\n");
    let decoded = objects(&bytes, &file(), &Options::default());
    assert_eq!(
        said(&decoded.problems),
        ["8:9 !InvalidUtf8: the file isn't UTF-8: byte 0xe9 can't stand here | save the file as UTF-8"]
    );
    assert_eq!(decoded.broken[0].kind, Some(Kind::ConfigMap));
    assert!(decoded.broken[0].labels.is_some());
}

#[test]
fn very_many_problems_are_counted_not_kept() {
    let fields: String = (0..5000).map(|i| format!("  f{i}: x\n")).collect();
    let decoded = decode(&format!("{CONFIG_MAP}data:\n{}", fields.replace(": x", ": 1")));
    assert_eq!(decoded.problems.len(), 1001);
    assert_eq!(decoded.problems[1000].message, "the file has 4000 further problems that aren't shown");
    assert_eq!(decoded.broken.len(), 1);
}

#[test]
fn hostile_files_cost_no_more_than_their_size() {
    let start = std::time::Instant::now();
    let decoded = decode(&"---\n[\n".repeat(50_000));
    assert_eq!(decoded.broken.len(), 1, "nothing is known of any of them");
    decode(&format!("{CONFIG_MAP}{}", (0..50_000).map(|i| format!("k{i}: 1\n")).collect::<String>()));
    decode(&kalypso("Workload", &format!("  deploymentTargets: [{}]\n", "{name: a, environment: b},".repeat(20_000))));
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

fn pieces() -> impl Strategy<Value = String> {
    let words = [
        "apiVersion: v1\n",
        "apiVersion: scheduler.kalypso.io/v1alpha1\n",
        "apiVersion: kedge.dev/v1alpha1\n",
        "kind: ",
        "ConfigMap\n",
        "Workload\n",
        "ClusterType\n",
        "Template\n",
        "HostWorkload\n",
        "Delivery\n",
        "List\n",
        "metadata:\n",
        "  name: a\n",
        "  labels:\n",
        "    a: true\n",
        "data:\n",
        "spec:\n",
        "items:\n",
        "  - ",
        "  ",
        "\t",
        "---\n",
        ": ",
        "|\n",
        "{",
        "}",
        "[",
        "]",
        "&a ",
        "*a",
        "<<: ",
        "'",
        "\"",
        "é",
        "\u{feff}",
        "deploymentTargets:\n",
        "manifests: ",
        "null\n",
        "rules:\n",
        "matchLabels: ",
        "8080\n",
        "~: x\n",
        "? a\n",
        "!!binary ",
        "%YAML 1.2\n",
        "health:\n",
        "- tcp: a:1\n",
        "schema: '{'\n",
    ];
    prop::collection::vec(prop::sample::select(words.to_vec()), 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        objects(&bytes, &file(), &Options::default());
    }

    #[test]
    fn arbitrary_text_never_panics_and_every_broken_object_has_an_error(text in pieces()) {
        for decoded in [decode(&text), decode_application(&text)] {
            prop_assert!(decoded.broken.iter().all(|broken| broken.problem.is_error()));
            prop_assert!(decoded.broken.is_empty() || decoded.problems.iter().any(Problem::is_error));
            for problem in &decoded.problems {
                problem.to_text();
            }
        }
    }
}
