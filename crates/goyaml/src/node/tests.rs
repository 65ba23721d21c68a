//! Files with the nodes, places and errors that people see.

use super::*;

fn one(text: &str) -> Node {
    let mut documents = parse(text, &Limits::default()).unwrap();
    assert_eq!(documents.len(), 1, "{text}");
    documents.remove(0)
}

fn error(text: &str) -> ParseError {
    parse(text, &Limits::default()).unwrap_err()
}

fn at(error: &ParseError) -> (u32, u32) {
    (error.line, error.column)
}

#[test]
fn every_node_knows_its_place() {
    let node = one("a: 1\nb:\n  - x\n  - y: [p, q]\n");
    let item = &node.get("b").unwrap().items().unwrap()[1];
    assert_eq!((item.line, item.column), (4, 5));
    let flow = &item.get("y").unwrap().items().unwrap()[1];
    assert_eq!((flow.line, flow.column, flow.text()), (4, 12, Some("q")));
}

#[test]
fn a_block_scalar_says_where_its_text_begins() {
    let node = one("a: |\n  one\n  two\nb: >-\n\n  x\nc: plain\nd: &x !!str\n  |\n  deep\n");
    assert_eq!(node.get("a").unwrap().content_line, 2);
    assert_eq!(node.get("b").unwrap().content_line, 5);
    assert_eq!(node.get("b").unwrap().text(), Some("\nx"));
    assert_eq!(node.get("c").unwrap().content_line, 7);
    assert_eq!(node.get("d").unwrap().content_line, 10);
}

#[test]
fn styles_and_tags_are_kept() {
    let node = one("[a, 'b', \"c\", !!str 1, !x y]");
    let items = node.items().unwrap();
    let style = |index: usize| match &items[index].value {
        NodeValue::Scalar { style, .. } => *style,
        _ => panic!("not a scalar"),
    };
    assert_eq!(style(0), Style::Plain);
    assert_eq!(style(1), Style::SingleQuoted);
    assert_eq!(style(2), Style::DoubleQuoted);
    assert_eq!(items[3].tag.as_deref(), Some("!!str"));
    assert_eq!(items[3].resolve(), Some(Value::from("1")));
    assert_eq!(items[4].tag.as_deref(), Some("!x"));
}

#[test]
fn scalars_resolve_as_yaml_v2_types_them() {
    let node = one("[yes, 0777, '1', ~, 1.5, 2024-01-01]");
    let values: Vec<_> = node.items().unwrap().iter().map(Node::resolve).collect();
    assert_eq!(values[0], Some(Value::Bool(true)));
    assert_eq!(values[1], Some(Value::Int(511)));
    assert_eq!(values[2], Some(Value::from("1")));
    assert_eq!(values[3], Some(Value::Null));
    assert_eq!(values[4], Some(Value::Float(1.5)));
    assert_eq!(values[5], Some(Value::from("2024-01-01")));
    assert_eq!(node.resolve(), None);
}

#[test]
fn all_documents_are_read_and_empty_ones_left_out() {
    let documents = parse("---\n# nothing\n---\na: 1\n---\n---\nb: 2\n...\n", &Limits::default()).unwrap();
    assert_eq!(documents.len(), 2);
    assert_eq!(documents[1].line, 7);
    assert!(parse("", &Limits::default()).unwrap().is_empty());
    assert!(parse("# only a comment\n", &Limits::default()).unwrap().is_empty());
    assert!(parse("~", &Limits::default()).unwrap()[0].is_null());
}

#[test]
fn a_duplicate_key_is_named_with_both_lines() {
    let error = error("metadata:\n  name: a\n  labels: {}\n  \"name\": b\n");
    assert_eq!(at(&error), (4, 3));
    assert_eq!(error.message, "the key `name` stands twice in this map, on line 2 and on line 4");
}

#[test]
fn aliases_and_merges_are_resolved() {
    let node = one("x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\nz: *x\n");
    let merged = node.get("y").unwrap();
    assert_eq!(merged.entries().unwrap().len(), 2);
    assert_eq!(merged.get("b").unwrap().text(), Some("3"));
    assert_eq!(merged.get("a").unwrap().line, 1);
    assert_eq!(node.get("z"), node.get("x"));
    assert!(error("<<: 1").message.contains("`<<` needs a map"));
    assert!(error("a: *b").message.contains("`*b` has no anchor"));
    assert!(error("a: &a [*a]").message.contains("contains itself"));
}

#[test]
fn an_alias_bomb_is_refused() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..9 {
        let items = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert!(error(&text).message.starts_with("aliases expand this document beyond 200000 values"));
    let long = format!("a: &a {}\nb: [{}]", "x".repeat(1 << 20), "*a,".repeat(1000));
    assert!(error(&long).message.contains("bytes"));
    let merges = format!("a: &a {{k: {}}}\nb: [{}]", "x".repeat(1 << 20), "{<<: *a},".repeat(1000));
    assert!(error(&merges).message.contains("bytes"));
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    assert!(error(&"[".repeat(10_000)).message.contains("deeper than 100 levels"));
    let mut text = String::new();
    for level in 0..10_000 {
        text.push_str(&" ".repeat(level % 400));
        text.push_str("- \n");
        if level == 399 {
            break;
        }
    }
    assert!(error(&text).message.contains("deeper than 100 levels"));
    assert!(error(&"x".repeat(5 << 20)).message.contains("the limit"));
    assert!(error(&"- a\n".repeat(300_000)).message.contains("more than 200000 values"));
    let small = Limits { bytes: 100, nodes: 10, depth: 2 };
    assert!(parse("[[[a]]]", &small).is_err());
    assert!(parse(&"- a\n---\n".repeat(8), &small).is_err());
    assert!(parse_bytes(&[b'x'; 101], &small).unwrap_err().message.contains("101 bytes"));
}

#[test]
fn mistakes_that_people_make_have_a_clear_message() {
    for (text, place, message) in [
        ("a:\n\tb: 1\n", (2, 1), "a tab is used for indentation"),
        ("a: b: c\n", (1, 5), "a `key: value` cannot begin here"),
        ("a: 1\nb\nc: 2\n", (2, 1), "the `:` is missing"),
        ("a: 'x\nb: 1\n", (1, 4), "never closed"),
        ("a: @x\n", (1, 4), "cannot begin with `@`"),
        ("a: %x\n", (1, 4), "cannot begin with `%`"),
        ("a: [1, 2\nb: 3\n", (2, 2), "`,` or `]` is expected"),
        ("a: {{ .X }}\n", (1, 5), "a map or a list cannot be a key"),
        ("a:\n  - 1\n  b: 2\n", (3, 3), "the next list item"),
        ("a: 1\n b: 2\n", (2, 3), "a `key: value` cannot begin here"),
        ("a: \"\\d\"\n", (1, 5), "this escape isn't known"),
        ("a: *\n", (1, 4), "is an alias"),
        ("a: x\0y\n", (1, 5), "a NUL byte"),
        ("a: x\u{1}y\n", (1, 5), "U+0001"),
        ("a: !!int x\n", (1, 4), "cannot be read as !!int"),
        ("a: | x\n", (1, 4), "may follow `|`"),
        ("a: [", (2, 1), "the text ends before"),
    ] {
        let error = error(text);
        assert!(error.message.contains(message), "{text:?} gives {error}");
        assert_eq!(at(&error), place, "{text:?} gives {error}");
    }
}

#[test]
fn bytes_that_are_no_text_are_placed() {
    let error = parse_bytes(b"a: 1\nb: \xFF\xFE\n", &Limits::default()).unwrap_err();
    assert_eq!(at(&error), (2, 4));
    assert!(error.message.contains("UTF-8"));
    assert_eq!(error.to_string(), "line 2, column 4: these bytes aren't UTF-8: this isn't a text file");
    assert_eq!(parse_bytes("\u{FEFF}a: 1".as_bytes(), &Limits::default()).unwrap()[0].column, 1);
}
