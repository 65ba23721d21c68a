//! A real Prometheus that scrapes one address of the lab each second, with its own configuration, data folder and port. Debian's
//! package has the program; tests/shell/programs.sh installs it.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use super::part::Part;
use super::port::Port;
use super::{await_true, http, skip};

const PROGRAM: &str = "prometheus";

/// A start takes about a second on two idle cores.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// A scrape each second, on a busy machine.
const SCRAPED_WITHIN: Duration = Duration::from_secs(30);

/// The running server.
#[derive(Debug)]
pub struct Prometheus {
    // Before the folder, so that the program has ended when its files go.
    _part: Part,
    port: Port,
    client: reqwest::blocking::Client,
    _folder: TempDir,
}

impl Prometheus {
    /// Starts one that scrapes `/metrics` of this address, as the job `lab`. Without the program the test is marked as skipped and
    /// there is none.
    pub fn start(scraped: SocketAddr) -> Option<Prometheus> {
        Prometheus::start_with(scraped, None)
    }

    /// The same of an address that wants a token.
    pub fn start_with_token(scraped: SocketAddr, token: &str) -> Option<Prometheus> {
        Prometheus::start_with(scraped, Some(token))
    }

    fn start_with(scraped: SocketAddr, token: Option<&str>) -> Option<Prometheus> {
        let Some(program) = program() else {
            skip(
                &env::var("KEDGE_NO_PROMETHEUS")
                    .unwrap_or_else(|_| "Prometheus isn't here (Debian's package prometheus)".to_owned()),
            );
            return None;
        };
        let folder = tempfile::Builder::new().prefix("kedge-prometheus-").tempdir().unwrap();
        let port = Port::claim();
        let config = folder.path().join("prometheus.yml");
        let mut text = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n  - job_name: lab\n    static_configs: [{{targets: [\"{scraped}\"]}}]\n"
        );
        if let Some(token) = token {
            let file = folder.path().join("token");
            fs::write(&file, token).unwrap();
            text += &format!("    authorization: {{credentials_file: {:?}}}\n", file.display().to_string());
        }
        fs::write(&config, text).unwrap();
        let mut command = Command::new(program);
        command.current_dir(folder.path()).arg("--config.file").arg(&config);
        command.arg("--storage.tsdb.path").arg(folder.path().join("data"));
        command.arg(format!("--web.listen-address={}", port.address()));
        let mut part = Part::start(PROGRAM, &mut command, &folder.path().join("prometheus.log"));
        let (client, ready) = (http::client(), format!("http://{}/-/ready", port.address()));
        part.await_ready(READY_WITHIN, |_| {
            client.get(&ready).send().ok().filter(|answer| answer.status().is_success()).map(drop)
        });
        Some(Prometheus { _part: part, port, client, _folder: folder })
    }

    /// Its address, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.port.address())
    }

    /// The values that an instant query gives, one for each series.
    pub fn query(&self, query: &str) -> Vec<f64> {
        let mut url = reqwest::Url::parse(&format!("{}/api/v1/query", self.url())).unwrap();
        url.query_pairs_mut().append_pair("query", query);
        let answer: Value = self.client.get(url).send().unwrap().json().unwrap();
        assert_eq!(answer["status"], "success", "{query}: {answer}");
        let series = answer["data"]["result"].as_array().cloned().unwrap_or_default();
        series.iter().filter_map(|one| one["value"][1].as_str()?.parse().ok()).collect()
    }

    /// It has scraped so often that a query gives this.
    #[track_caller]
    pub fn await_value(&self, query: &str, value: f64) {
        await_true(&format!("{query} is {value}"), SCRAPED_WITHIN, || self.query(query) == [value]);
    }
}

/// On the path, where Debian puts it.
fn program() -> Option<PathBuf> {
    let folders = env::var_os("PATH")?;
    env::split_paths(&folders).map(|folder| folder.join(PROGRAM)).find(|path| path.is_file())
}
