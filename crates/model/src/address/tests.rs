//! Which addresses are read, and as what.

use proptest::prelude::*;

use super::*;

fn server(text: &str) -> Server {
    match Address::parse_prefix(text).unwrap() {
        Address::Server(server) => server,
        Address::Local(path) => panic!("{text} is the path {}", path.display()),
    }
}

#[test]
fn addresses_come_apart_and_together_again() {
    for (text, url) in [
        ("https://Git.Example.com/Org/Repo.git", "https://git.example.com/Org/Repo.git"),
        ("HTTPS://h:443/a", "https://h/a"),
        ("http://127.0.0.1:3000/a", "http://127.0.0.1:3000/a"),
        ("http://[::1]:80/a", "http://[::1]/a"),
        ("ssh://git@h:2222/a/b", "ssh://git@h:2222/a/b"),
        ("git@h:org/repo.git", "ssh://git@h/~/org/repo.git"),
        ("git@h:/srv/repo.git", "ssh://git@h/srv/repo.git"),
        ("/srv/repo", "/srv/repo"),
        ("file:///srv/a%20b", "/srv/a b"),
        ("../app", "../app"),
    ] {
        assert_eq!(Address::parse(text).unwrap().url(), url, "{text}");
    }
}

#[test]
fn what_could_be_an_option_or_a_command_is_refused() {
    for text in [
        "-oProxyCommand=id",
        "--upload-pack=id",
        "ext::sh -c id",
        "fd::17",
        "ssh://-oProxyCommand=id/x",
        "ssh://-oProxyCommand=id@h/x",
        "-oProxyCommand=id@h:x",
        "git@-oProxyCommand=id:x",
        "git@h:-oProxyCommand",
        "git@h:a/--upload-pack=id",
        "ssh://h/a;id",
        "ssh://h/$(id)",
        "git@h:'x",
        "file://-x",
        "git://h/x",
        "ftp://h/x",
        "https://h/a b",
        "",
    ] {
        assert!(Address::parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_two_programs_read_in_two_ways_is_refused() {
    for text in [
        "https://h@evil/x",
        "https://user:secret@h/x",
        "https://h\\@evil/x",
        "https://h\\.evil/x",
        "https://h/x?y",
        "https://h/x#y",
        "https://h#@evil/x",
        "https://127.1/x",
        "https://2130706433/x",
        "https://0x7f000001/x",
        "https://0177.0.0.1/x",
        "https://h:0/x",
        "https://h:99999/x",
        "https://h:80:80/x",
        "https://h:+80/x",
        "https://[::1/x",
        "https://[::1]evil/x",
        "https://[fe80::1%25eth0]/x",
        "https://h/a/../b",
        "https://h/a/%2e%2E/b",
        "https://h/a%2fb",
        "https://h/a%5c..%5cb",
        "https://h%2eevil/x",
        "https://h./x",
        "https:///x",
        "https://h",
        "https://h/",
        "https://h\n/x",
    ] {
        assert!(Address::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_password_is_never_repeated() {
    for text in ["https://me:s3cret@h/x", "ssh://me:s3cret@h/x", "https://s3cret@h/ x", "ssh://s3cret@-h/x"] {
        let refused = Address::parse(text).unwrap_err();
        assert!(!format!("{refused} {refused:?}").contains("s3cret"), "{refused}");
    }
}

#[test]
fn a_prefix_ends_at_a_part_of_the_path() {
    for (prefix, text, begins) in [
        ("https://h/team", "https://h/team/repo", true),
        ("https://h/team/", "https://h/team/repo", true),
        ("https://h/team", "https://h/team", true),
        ("https://h/team", "https://h/team.git", true),
        ("https://h/team/repo.git", "https://h/team/repo", true),
        ("https://h", "https://h/any", true),
        ("https://H:443/", "https://h/any", true),
        ("https://h/team", "https://h/team-evil/repo", false),
        ("https://h/team", "https://h/Team/repo", false),
        ("https://h/team", "https://h:8443/team/repo", false),
        ("https://h/team", "http://h/team/repo", false),
        ("https://h/team", "https://h.evil/team/repo", false),
        ("https://h/team", "https://evil/h/team", false),
        ("ssh://git@h", "ssh://git@h/x", true),
        ("ssh://git@h", "ssh://root@h/x", false),
        ("ssh://h", "git@h:x", true),
    ] {
        assert_eq!(server(prefix).begins(&server(text)), begins, "{prefix} {text}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused_and_what_is_read_stays_the_same(text in "\\PC{0,80}") {
        if let Ok(address) = Address::parse(&text)
            && !matches!(address, Address::Local(_))
        {
            prop_assert!(!address.url().starts_with('-'));
            let again = Address::parse(&address.url());
            prop_assert_eq!(again, Ok(address));
        }
    }

    #[test]
    fn a_credential_never_goes_to_another_server(
        host in "[a-z]{1,4}", tail in "[a-z@:/\\\\.%#?-]{0,8}", path in "[a-z/.-]{0,12}",
    ) {
        let prefix = server("https://h/team");
        if let Ok(Address::Server(other)) = Address::parse(&format!("https://{host}{tail}/{path}"))
            && prefix.begins(&other)
        {
            prop_assert_eq!(&other.host, "h");
            prop_assert_eq!(other.port, 443);
            prop_assert_eq!(other.segments()[0], "team");
        }
    }
}
