//! The agent's one TOML file as values: `/etc/kedge/agent.toml`, which needn't be there. Read by the commands and `run`; unknown keys
//! are refused and every error is reported at once with its line.

mod endpoint;
pub mod peers;
mod problem;
mod reader;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kedge_model::wire::Profile;

use crate::paths::Paths;
pub use endpoint::Endpoint;
pub use peers::Peers;
use problem::Problem;

/// Everything an agent can be told. `packaging/agent.toml` explains each key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// What the cluster calls itself when it joins. None: the host's name.
    pub name: Option<String>,
    /// Another address of the same hub than the join token's, such as a forwarder on the factory's side.
    pub hub: Option<String>,
    /// How much traffic the link may cost.
    pub traffic: Profile,
    /// Between two full looks at what runs.
    pub look_interval: Duration,
    /// Bytes of the disk that downloads leave free.
    pub disk_reserve: u64,
    /// Where a Prometheus of this host finds the agent's numbers. None: nowhere.
    pub metrics: Option<Endpoint>,
    pub log: Level,
    /// It is the agent of a Kubernetes cluster, not of this host.
    pub kubernetes: bool,
    /// The other agents of the site.
    pub peers: Peers,
}

/// What is written to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    Error,
    Warn,
    #[default]
    Info,
    Debug,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("the configuration file {path} can't be read")]
    Read { path: PathBuf, source: io::Error },
    /// Everything that is wrong, at once.
    #[error("{report}")]
    Invalid { report: String },
}

/// Watching finds nearly everything at once; this finds the rest, and costs little.
const LOOK_INTERVAL: Duration = Duration::from_secs(5 * 60);
/// A look starts programs: more often would be felt.
const SHORTEST_LOOK: Duration = Duration::from_secs(5);
/// The hub calls what wasn't looked at for half an hour Unknown; a look and a change may take their time.
const LONGEST_LOOK: Duration = Duration::from_secs(20 * 60);
/// Enough for logs, apt's lists and the ledgers of a small box.
const DISK_RESERVE: u64 = 256 << 20;
/// A file of settings; a larger one is something else.
const MAX_FILE: u64 = 1 << 20;
/// A cluster's name is a label's value.
const MAX_NAME: usize = 63;

impl Default for Config {
    fn default() -> Config {
        Config {
            name: None,
            hub: None,
            traffic: Profile::Normal,
            look_interval: LOOK_INTERVAL,
            disk_reserve: DISK_RESERVE,
            metrics: None,
            log: Level::Info,
            kubernetes: false,
            peers: Peers::default(),
        }
    }
}

impl Config {
    /// The file that was named, or the usual one if it is there.
    pub fn load(named: Option<&Path>, paths: &Paths) -> Result<Config, ConfigError> {
        let usual = paths.settings().join("agent.toml");
        let path = named.unwrap_or(&usual);
        match read_bounded(path) {
            Ok(text) => Config::of_text(&path.display().to_string(), &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound && named.is_none() => Ok(Config::default()),
            Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
        }
    }

    fn of_text(file: &str, text: &str) -> Result<Config, ConfigError> {
        let (config, mut problems) = reader::read(text);
        if problems.is_empty() {
            return Ok(config);
        }
        problems.sort_by_key(|problem| problem.span.start);
        let rendered: Vec<String> = problems.iter().map(|problem| problem.render(file, text)).collect();
        let things = if problems.len() == 1 { "1 error".to_owned() } else { format!("{} errors", problems.len()) };
        Err(ConfigError::Invalid { report: format!("{}\n{file} has {things}", rendered.join("\n")) })
    }

    /// What this cluster calls itself.
    pub fn cluster_name(&self) -> String {
        let host = || nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        self.name.clone().or_else(host).filter(|name| !name.is_empty()).unwrap_or_else(|| "localhost".to_owned())
    }
}

impl Level {
    pub fn filter(self) -> tracing::level_filters::LevelFilter {
        use tracing::level_filters::LevelFilter;
        match self {
            Level::Error => LevelFilter::ERROR,
            Level::Warn => LevelFilter::WARN,
            Level::Info => LevelFilter::INFO,
            Level::Debug => LevelFilter::DEBUG,
        }
    }
}

fn read_bounded(path: &Path) -> io::Result<String> {
    if std::fs::metadata(path)?.len() > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "it has more than 1 MiB"));
    }
    std::fs::read_to_string(path)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use super::*;

    const EXAMPLE: &str = include_str!("../../packaging/agent.toml");

    fn report(text: &str) -> String {
        match Config::of_text("agent.toml", text) {
            Err(ConfigError::Invalid { report }) => report,
            other => panic!("{other:?}"),
        }
    }

    /// The example with its defaults, and perhaps also its examples, as settings.
    fn uncomment(examples: bool) -> String {
        let line = |line: &str| match line.strip_prefix("#~ ") {
            Some(example) if examples => example.to_owned(),
            Some(_) => String::new(),
            None => match line.strip_prefix('#') {
                Some(setting) if !setting.starts_with([' ', '#']) => setting.to_owned(),
                _ => line.to_owned(),
            },
        };
        EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_example_says_the_defaults_and_names_every_key() {
        assert_eq!(Config::of_text("agent.toml", EXAMPLE).unwrap(), Config::default());
        assert_eq!(Config::of_text("agent.toml", &uncomment(false)).unwrap(), Config::default());
        let whole = Config::of_text("agent.toml", &uncomment(true)).unwrap();
        assert!(whole.name.is_some() && whole.hub.is_some() && whole.metrics.is_some());
        assert!(whole.peers.interfaces.is_some() && !whole.peers.fixed.is_empty());
        for key in reader::KEYS.into_iter().chain(peers::KEYS) {
            assert!(uncomment(true).lines().any(|line| line.starts_with(&format!("{key} = "))), "{key}");
        }
    }

    #[test]
    fn every_error_is_reported_at_once_with_line_and_way_out() {
        let said = report(
            "nmae = \"x\"\nname = \"a b\"\ntraffic = \"lo\"\nlook_interval = 30\ndisk_reserve = \"much\"\nhub = \"ftp://h\"\n\
             metrics = \"0.0.0.0:9100\"\n",
        );
        let heads: Vec<&str> = said.lines().filter(|line| line.starts_with("agent.toml")).collect();
        assert_eq!(
            heads,
            [
                "agent.toml:1:1: error: unknown key `nmae`",
                "agent.toml:2:8: error: `name` is no name of a cluster",
                "agent.toml:3:11: error: `traffic` can't be \"lo\"",
                "agent.toml:4:17: error: `look_interval` is a number, not a duration in quotes",
                "agent.toml:5:16: error: `disk_reserve` is no size",
                "agent.toml:6:7: error: `hub` is no address of a hub",
                "agent.toml:7:11: error: `metrics` is no place on this host",
                "agent.toml has 7 errors",
            ]
        );
        assert!(said.contains("  | nmae = \"x\"\n  | ^^^^\n  = did you mean `name`?\n"), "{said}");
        assert_eq!(said.matches("\n  = ").count(), 7, "{said}");
    }

    #[test]
    fn broken_toml_is_reported_with_its_line() {
        assert!(report("name = \n").starts_with("agent.toml:1:"));
        assert!(report("look_interval = \"1s\"").contains("write \"5s\" or more"));
        assert!(report("look_interval = \"1h\"").contains("write \"20m\" or less"));
    }

    #[test]
    fn a_missing_file_is_an_error_only_if_it_was_named() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Paths::below(folder.path());
        assert_eq!(Config::load(None, &paths).unwrap(), Config::default());
        assert!(Config::load(Some(&folder.path().join("none.toml")), &paths).is_err());
        std::fs::create_dir_all(paths.settings()).unwrap();
        std::fs::write(paths.settings().join("agent.toml"), "name = \"box-7\"\ntraffic = \"low\"\n").unwrap();
        let config = Config::load(None, &paths).unwrap();
        assert_eq!((config.cluster_name().as_str(), config.traffic), ("box-7", Profile::Low));
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[\\[\\]a-z_.=\"'#{}, \n\t0-9:/ä\u{0}-]{0,200}") {
            _ = Config::of_text("agent.toml", &text);
        }
    }
}
