//! The file as people write it: the annotated example, every kind of mistake, and bytes of any kind.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::os::unix::fs::PermissionsExt as _;

use super::reader::Notes;
use super::*;

const EXAMPLE: &str = include_str!("../../../packaging/hub.toml");

fn notes() -> Notes {
    Notes { base: PathBuf::from("/etc/kedge"), ..Notes::default() }
}

fn problems(text: &str) -> Vec<String> {
    let mut notes = notes();
    parse::read(text, &Flags::default(), &mut notes);
    notes.problems.sort_by_key(|problem| problem.span.start);
    notes.problems.iter().map(|problem| problem.render("hub.toml", text)).collect()
}

/// The example with its defaults, and also its examples, as settings.
fn uncomment(examples: bool) -> String {
    let line = |line: &str| match line.strip_prefix("#~ ") {
        Some(example) if examples => example.to_owned(),
        Some(_) => String::new(),
        None => match line.strip_prefix('#') {
            Some(setting) if !setting.starts_with([' ', '#']) => setting.to_owned(),
            _ => line.to_owned(),
        },
    };
    let text = EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n");
    // The file with a password is for PostgreSQL only.
    let postgres = if examples { "postgres://kedge@db.example.com/kedge" } else { "sqlite:/var/lib/kedge-hub/hub.db" };
    text.replace("sqlite:/var/lib/kedge-hub/hub.db", postgres)
}

#[test]
fn the_defaults_in_the_example_are_those_of_the_code() {
    let mut notes = notes();
    let written = parse::read(&uncomment(false), &Flags::default(), &mut notes);
    assert_eq!(notes.problems, []);
    let mut expected = Config::default_at(Path::new("/var/lib/kedge-hub"));
    expected.packages.folder = Some(PathBuf::from("/var/lib/kedge-hub/packages"));
    assert_eq!(written, expected);
}

#[test]
fn the_example_names_every_key_and_nothing_else() {
    let mut notes = notes();
    let text = uncomment(true);
    let config = parse::read(&text, &Flags::default(), &mut notes);
    assert_eq!(notes.problems, []);
    assert_eq!(config.git.credentials.len(), 2);
    assert_eq!(config.git.forges[0].kind, ForgeKind::Gitea);
    assert_eq!(config.environments["prod"].publish, PublishMode::PullRequest);
    assert!(config.api.tls.is_some());
    assert_eq!(config.api.public_url.as_deref(), Some("https://kedge.example.com"));
    assert_eq!(config.metrics.listen, Some("127.0.0.1:7482".parse().unwrap()));
    assert_eq!(config.events[0].kinds, EventKind::DEFAULT);
    for key in &notes.known {
        let last = key.rsplit('.').next().unwrap();
        let named = text.lines().any(|line| line.starts_with(&format!("{last} = ")) || is_header(line, key));
        assert!(named, "{key} isn't explained");
    }
}

fn is_header(line: &str, key: &str) -> bool {
    let header = line.trim_matches(['[', ']']);
    line.starts_with('[') && (header == key || header.starts_with(&format!("{key}.")))
}

#[test]
fn a_public_url_is_an_origin_and_proxies_are_networks() {
    let read = |text: &str| {
        let mut notes = notes();
        let config = parse::read(text, &Flags::default(), &mut notes);
        let problems: Vec<String> = notes.problems.iter().map(|problem| problem.message.clone()).collect();
        (config, problems)
    };
    for (written, origin) in [
        ("https://Kedge.Example.com/", "https://kedge.example.com"),
        ("https://kedge.example.com:443", "https://kedge.example.com"),
        ("https://kedge.example.com:8443", "https://kedge.example.com:8443"),
        ("http://[::1]:7480", "http://[::1]:7480"),
    ] {
        let (config, problems) = read(&format!("[api]\npublic_url = \"{written}\""));
        assert_eq!(problems, Vec::<String>::new(), "{written}");
        assert_eq!(config.api.public_url.as_deref(), Some(origin));
        assert_eq!(config.api.is_secure(), origin.starts_with("https"));
    }
    for wrong in ["kedge.example.com", "https://", "https://a/b", "https://u:p@a", "ftp://a", "https://a?b"] {
        let (config, problems) = read(&format!("[api]\npublic_url = \"{wrong}\""));
        assert_eq!((config.api.public_url, problems.len()), (None, 1), "{wrong}");
    }
    let tls = "[api.tls]\ncertificate = \"c\"\nkey = \"k\"";
    let (_, problems) = read(&format!("[api]\npublic_url = \"http://a\"\n{tls}"));
    assert_eq!(problems, ["`public_url` is http, and [api.tls] serves https"]);
    let (config, problems) = read("[api]\ntrusted_proxies = [\"10.0.0.0/8\", \"::1\", \"proxy\"]");
    assert_eq!(problems, ["this is no address and no network"]);
    assert!(config.api.trusted_proxies.trusts([10, 1, 2, 3].into()));
}

#[test]
fn the_example_as_it_is_says_nothing_new() {
    let mut notes = notes();
    let config = parse::read(EXAMPLE, &Flags { data: Some("/d".into()), ..Flags::default() }, &mut notes);
    assert_eq!(notes.problems, []);
    assert_eq!(config, Config::default_at(Path::new("/d")));
}

#[test]
fn settings_that_are_shown_can_be_read_again() {
    let mut notes = notes();
    let config = parse::read(&uncomment(true), &Flags::default(), &mut notes);
    let shown = show::settings(&config);
    let mut again = parse::read(&shown, &Flags::default(), &mut notes);
    assert_eq!(notes.problems, [], "{shown}");
    again.packages.folder = config.packages.folder.clone();
    assert_eq!(again, config);
}

#[test]
fn every_error_is_reported_at_once_with_line_and_way_out() {
    let text = "\
datta = \"/x\"
[api]
lisen = \"127.0.0.1:1\"
listen = \"0.0.0.0:7480\"
rate_per_token = 0
[agents]
wait = 30
low_interval = \"5 minutes\"
[git]
hosts = [\"https://a.example\", 7]
[[git.credentials]]
prefix = \"https://a.example/\"
[environments.dev]
publish = \"pull\"
[database]
url = \"mysql://x\"
";
    let found = problems(text);
    let heads: Vec<&str> = found.iter().map(|problem| problem.lines().next().unwrap()).collect();
    assert_eq!(
        heads,
        [
            "hub.toml:1:1: error: unknown key `datta` in the file",
            "hub.toml:3:1: error: unknown key `lisen` in [api]",
            "hub.toml:4:10: error: tokens would cross the network in plain HTTP",
            "hub.toml:5:18: error: `rate_per_token` is 0",
            "hub.toml:7:8: error: `wait` is a number, not a duration in quotes",
            "hub.toml:8:16: error: `low_interval` is no duration",
            "hub.toml:10:10: error: this is no host",
            "hub.toml:10:31: error: `hosts` is a number, not a list of texts",
            "hub.toml:11:1: warning: this credential doesn't say whom it serves, so it serves the platform alone: repositories that applications name are fetched without it",
            "hub.toml:11:1: error: a credential has either `secret_file` or `ssh_key_file`",
            "hub.toml:14:11: error: `publish` can't be \"pull\"",
            "hub.toml:16:7: error: `url` is neither SQLite nor PostgreSQL",
        ]
    );
    assert_eq!(
        found[1],
        "hub.toml:3:1: error: unknown key `lisen` in [api]\n  | lisen = \"127.0.0.1:1\"\n  | ^^^^^\n  = did you mean `listen`?\n"
    );
    assert!(found.iter().all(|problem| problem.contains("\n  = ")), "{found:#?}");
}

#[test]
fn a_credential_that_says_nothing_serves_the_platform_alone_and_warns() {
    let read = |more: &str| {
        let text = format!("[[git.credentials]]\nprefix = \"https://h/\"\nsecret_file = \"/s\"\n{more}");
        let mut notes = notes();
        let config = parse::read(&text, &Flags::default(), &mut notes);
        let credential = &config.git.credentials[0];
        let warnings: Vec<String> = notes.problems.iter().map(|problem| problem.render("hub.toml", &text)).collect();
        (credential.platform, credential.workspaces.clone(), warnings.join("\n"))
    };
    let (platform, workspaces, warning) = read("");
    assert!(platform && workspaces.is_empty());
    assert!(warning.contains("warning") && warning.contains("workspaces = "), "{warning}");
    assert_eq!(read("for = \"platform\"\n"), (true, Vec::new(), String::new()));
    let vision = vec!["vision".to_owned()];
    assert_eq!(read("workspaces = [\"vision\"]\n"), (false, vision.clone(), String::new()));
    assert_eq!(read("for = \"platform\"\nworkspaces = [\"vision\"]\n"), (true, vision, String::new()));
    assert!(read("for = \"everybody\"\n").2.contains("error"));
    assert!(read("workspaces = [\"\"]\n").2.contains("this names no workspace"));
}

#[test]
fn destinations_of_events_are_checked() {
    let text = "\
[[events]]
name = \"ops team\"
url = \"http://events.example.com/\"
kinds = [\"rolout\"]
[[events]]
name = \"ops\"
url = \"https://u:p@events.example.com/\"
secret_file = \"s\"
[[events]]
name = \"chat\"
url = \"http://127.0.0.1:8080/hook\"
secret_file = \"s\"
[[events]]
name = \"chat\"
url = \"https://chat.example.com/hook\"
secret_file = \"s\"
";
    let found = problems(text);
    let heads: Vec<&str> = found.iter().map(|problem| problem.lines().next().unwrap()).collect();
    assert_eq!(
        heads,
        [
            "hub.toml:1:1: error: [events] lacks `secret_file`",
            "hub.toml:2:8: error: `name` is no name of a destination",
            "hub.toml:3:7: error: `url` is no address that events can be sent to",
            "hub.toml:4:10: error: `kinds` names no kind of event",
            "hub.toml:7:7: error: `url` holds a password",
            "hub.toml:14:8: error: there are two destinations `chat`",
        ]
    );
    assert!(found[3].contains("did you mean \"rollout\"?"), "{}", found[3]);
}

#[test]
fn broken_toml_is_reported_with_its_line_and_the_rest_is_still_read() {
    let found = problems("[api]\nlisten = \n[agents]\nwait = \"0s\"\n");
    assert!(found[0].starts_with("hub.toml:2:"), "{found:?}");
    assert!(found.last().unwrap().starts_with("hub.toml:4:8: error: `wait` is too short"), "{found:?}");
}

#[test]
fn polls_that_are_held_for_two_seconds_or_less_are_refused_and_say_why() {
    for wait in ["1s", "2s"] {
        let found = problems(&format!("[agents]\nwait = \"{wait}\"\n"));
        let [problem] = found.as_slice() else { panic!("{found:?}") };
        assert!(
            problem.starts_with("hub.toml:2:8: error: `wait` is too short: agents take a quicker answer"),
            "{problem}"
        );
        assert!(problem.contains("write \"3s\" or more"), "{problem}");
    }
    assert_eq!(problems("[agents]\nwait = \"3s\"\nlow_interval = \"1s\"\n"), Vec::<String>::new());
}

#[test]
fn passwords_in_addresses_are_refused_and_never_shown() {
    let found = problems("[git]\ncontrol_plane = \"https://u:geheim@git.example/x\"\n");
    assert!(found[0].contains("holds a password"), "{found:?}");
    let mut config = Config::default_at(Path::new("/d"));
    config.database.url = "postgres://kedge:geheim@db/kedge".to_owned();
    assert!(!show::settings(&config).contains("geheim"));
    assert_eq!(show::without_password(&config.database.url), "postgres://kedge@db/kedge");
}

#[test]
fn files_that_are_missing_or_open_to_others_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.toml");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "x").unwrap();
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o644)).unwrap();
    let text =
        "[git]\nwebhook_secret_file = \"secret\"\n[database]\nurl = \"postgres://u@h/d\"\npassword_file = \"none\"\n";
    std::fs::write(&path, text).unwrap();
    let Err(ConfigError::Invalid { report }) = Config::load(&path) else { panic!("accepted") };
    assert!(report.contains(":2:23: error: others can read") && report.contains("chmod 600"), "{report}");
    assert!(report.contains(":5:17: error:") && report.ends_with("has 2 errors"), "{report}");
    std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&path, text.replace("none", "secret")).unwrap();
    let config = Config::load(&path).unwrap();
    assert_eq!(config.database.connection_url().unwrap(), "postgres://u:x@h/d");
}

#[test]
fn a_file_with_a_password_that_others_can_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hub.toml");
    std::fs::write(&path, "[database]\nurl = \"postgres://u:p@h/d\"\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let Err(ConfigError::Invalid { report }) = Config::load(&path) else { panic!("accepted") };
    assert!(report.contains("others can read this file"), "{report}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert!(Config::load(&path).is_ok());
}

#[test]
fn the_command_line_goes_before_the_file() {
    let flags = Flags { data: Some("/flag".into()), control_plane: Some("/repo".to_owned()) };
    let config = parse::read("data = \"/file\"\n[git]\ncontrol_plane = \"https://a/b\"\n", &flags, &mut notes());
    assert_eq!(config.data, Path::new("/flag"));
    assert_eq!(config.keys, Path::new("/flag/keys"));
    assert_eq!(config.git.control_plane.as_deref(), Some("/repo"));
}

#[test]
fn the_certificate_has_the_host_of_the_address() {
    let text = "[agents]\naddress = \"https://hub.example.com:7443\"\nnames = [\"10.0.0.5\", \"::1\"]\n";
    let config = parse::read(text, &Flags::default(), &mut notes());
    assert_eq!(config.server_names(), ["hub.example.com", "10.0.0.5", "::1", "localhost", "127.0.0.1"]);
    assert_eq!(host_of("https://[fd00::1]:7443").as_deref(), Some("fd00::1"));
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[\\[\\]a-z_.=\"'#{}, \n\t0-9:/ä\u{0}-]{0,200}") {
        problems(&text);
    }

    #[test]
    fn no_change_of_the_example_makes_the_reader_panic(at in 0..EXAMPLE.len(), with in "\\PC{0,3}") {
        let text = uncomment(true);
        let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        problems(&format!("{}{with}{}", &text[..at], text[at..].chars().skip(1).collect::<String>()));
    }
}
