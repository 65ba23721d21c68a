//! Our reading of unit files against systemd's own: hundreds of files that nobody would write, each judged by the policy and then read
//! by the booted host's systemd. Whatever the policy takes runs as the tenant's user, without new privileges, and without a program
//! that keeps root's power.

use kedge_host_policy::{DROP_IN, Refusal, Tenant, unit_file};
use kedge_model::kinds::HostNamespace;
use kedge_tests::lab::chance::{Chance, rounds};
use kedge_tests::lab::host::{DebianHost, Network};
use kedge_tests::lab::image::Flavour;

const UNITS: &str = "/etc/systemd/system";
/// Units of one reload.
const AT_ONCE: usize = 300;
const SEED: u64 = 0x6b65_6467_6500_0001;
/// What systemd says of a unit's programs, one setting each.
const PROGRAMS: [&str; 7] = [
    "ExecConditionEx",
    "ExecStartPreEx",
    "ExecStartEx",
    "ExecStartPostEx",
    "ExecReloadEx",
    "ExecStopEx",
    "ExecStopPostEx",
];
/// Flags of programs that don't run as the unit's user alone.
const POWER: [&str; 3] = ["privileged", "no-setuid", "ambient"];

const KEYS: [&str; 9] = [
    "ExecStart",
    "ExecStartPre",
    "ExecStartPost",
    "ExecCondition",
    "ExecReload",
    "ExecStop",
    "ExecStopPost",
    "ExecStart ",
    "X-Exec",
];
/// What programs' words are made of.
const PIECES: [&str; 34] = [
    "/bin/true",
    "/bin/true",
    "sleep",
    "+",
    "!",
    "!!",
    "-",
    "@",
    ":",
    "|",
    "\\x2b",
    "\\053",
    "\\u002b",
    "\\x21",
    "\\x2d",
    "\\x3b",
    "\"",
    "'",
    "\"\"",
    "''",
    "\\",
    "\\\\",
    "\\ ",
    ";",
    " ; ",
    " \\; ",
    " ",
    "\t",
    "%h",
    "$X",
    "a=b",
    "\u{feff}",
    "\u{a0}",
    "é",
];
const ENDS: [&str; 13] = [
    "\n",
    "\n",
    "\n",
    "\r\n",
    "\n\r",
    "\r",
    "\\\n",
    "\\\r\n",
    "\\\n# a comment\n",
    "\\\n;x\\\n",
    "\\\n\u{feff}",
    " \\\n\n",
    "\\ \n",
];
/// Lines that say more than a program.
const LINES: [&str; 16] = [
    "User=hello",
    "User=root",
    "User=\\\nroot",
    "User =root",
    "\u{feff}User=root",
    "X-a=\\\nUser=root",
    "Group=root",
    "NoNewPrivileges=yes",
    "NoNewPrivileges=no",
    "PermissionsStartOnly=yes",
    "AmbientCapabilities=CAP_SYS_ADMIN",
    "DynamicUser=yes",
    "[X-Service]",
    "[Service]",
    " [Service] ",
    "# [Unit]\\",
];

fn tenant() -> Tenant {
    let text = |text: &str| text.to_owned();
    Tenant {
        assignment: text("hello"),
        namespace: text("dev-vm-hello"),
        user: text("hello"),
        group: text("hello"),
        slice: text("kedge-hello.slice"),
        given: HostNamespace::default(),
    }
}

fn pick<'a>(chance: &mut Chance, all: &[&'a str]) -> &'a str {
    all[usize::try_from(chance.below(all.len() as u64)).unwrap()]
}

/// A service that loads, and some lines that may be anything.
fn unit(chance: &mut Chance) -> String {
    let mut text = "[Service]\nType=oneshot\nExecStart=/bin/true\n".to_owned();
    for _ in 0..=chance.below(3) {
        if chance.below(5) == 0 {
            text.push_str(pick(chance, &LINES));
        } else {
            text.push_str(pick(chance, &KEYS));
            text.push('=');
            // Most begin like an ordinary command, so that not everything is nonsense.
            if chance.below(2) == 0 {
                text.push_str(pick(
                    chance,
                    &["/bin/true ", "-/bin/true a ; ", "@/bin/sh sh ", "+/bin/true ", "\\x2b/bin/true"],
                ));
            }
            for _ in 0..chance.below(6) {
                text.push_str(pick(chance, &PIECES));
            }
        }
        text.push_str(pick(chance, &ENDS));
    }
    text
}

/// What systemd says of these units, by unit: settings and values.
fn shown(host: &DebianHost, names: &[String]) -> Vec<Vec<(String, String)>> {
    let asked = format!(
        "--property=Id,LoadState,User,Group,NoNewPrivileges,DynamicUser,AmbientCapabilities,{}",
        PROGRAMS.join(",")
    );
    let mut command = vec!["systemctl", "show", &asked, "--"];
    command.extend(names.iter().map(String::as_str));
    let text = host.ok(&command);
    let block = |block: &str| {
        let settings = block.lines().filter_map(|line| line.split_once('='));
        settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    };
    text.trim_matches('\n').split("\n\n").map(block).collect()
}

/// Whether a command of `{ path=… ; argv[]=… ; flags=… ; … }` has one of them.
fn has_power(value: &str) -> bool {
    let flags = value.split(" ; flags=").skip(1).filter_map(|rest| rest.split(" ;").next());
    flags.into_iter().any(|flags| flags.split_whitespace().any(|flag| POWER.contains(&flag)))
}

#[test]
fn what_the_policy_takes_has_no_more_power_in_systemds_own_reading() {
    let Some(host) = DebianHost::boot(Flavour::Plain, Network::Out) else { return };
    let (tenant, mut chance) = (tenant(), Chance::seeded(SEED));
    let (mut taken, mut powerful, mut all) = (0, 0, 0);
    for _ in 0..rounds(4) {
        let units: Vec<(String, String, Vec<Refusal>)> = (0..AT_ONCE)
            .map(|number| {
                let (name, text) = (format!("hello-{number}.service"), unit(&mut chance));
                let refused = unit_file::check(&text, &format!("{UNITS}/{name}"), &tenant);
                (name, text, refused)
            })
            .collect();
        for (name, text, refused) in &units {
            host.write(&format!("{UNITS}/{name}"), text);
            // What was refused is read without our drop-in: there must be something for the policy to refuse.
            match refused.is_empty() {
                true => {
                    host.write(&format!("{UNITS}/{name}.d/{DROP_IN}"), tenant.drop_in(name, true).unwrap_or_default())
                }
                false => drop(std::fs::remove_file(host.path(&format!("{UNITS}/{name}.d/{DROP_IN}")))),
            }
        }
        host.ok(&["systemctl", "daemon-reload"]);
        let names: Vec<String> = units.iter().map(|(name, ..)| name.clone()).collect();
        let said = shown(&host, &names);
        assert_eq!(said.len(), units.len());
        for ((name, text, refused), said) in units.iter().zip(said) {
            let value = |key: &str| said.iter().find(|(known, _)| known == key).map_or("", |(_, value)| value.as_str());
            assert_eq!(value("Id"), name);
            let has_power = said.iter().any(|(key, value)| PROGRAMS.contains(&key.as_str()) && has_power(value));
            all += 1;
            powerful += usize::from(has_power);
            // What systemd itself refuses never runs.
            if refused.is_empty() && value("LoadState") == "loaded" {
                taken += 1;
                assert!(!has_power, "{text:?} was taken, and systemd says {said:#?}");
                assert_eq!((value("User"), value("Group")), ("hello", "hello"), "{text:?}: {said:#?}");
                assert_eq!((value("NoNewPrivileges"), value("DynamicUser")), ("yes", "no"), "{text:?}: {said:#?}");
                assert_eq!(value("AmbientCapabilities"), "", "{text:?}: {said:#?}");
            }
        }
    }
    eprintln!("of {all} unit files {taken} were taken; systemd gave root's power to {powerful}");
    assert!(taken > all / 10 && powerful > all / 10, "the files are of both kinds");
}
