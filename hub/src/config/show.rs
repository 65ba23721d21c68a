//! The settings in force, as the file would say them; for `kedge-hub check-config`. Secrets are in files of their own,
//! and a password in the database's address is left out.

use std::time::Duration;

use super::{Config, ForgeKind, PublishMode};

/// The largest units that fit: `1h30m`.
pub fn duration(duration: Duration) -> String {
    let mut millis = duration.as_millis();
    let mut out = String::new();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)] {
        if millis >= size {
            out.push_str(&format!("{}{unit}", millis / size));
            millis %= size;
        }
    }
    if out.is_empty() { "0s".to_owned() } else { out }
}

/// In the largest unit that fits without a rest: `2GB`.
pub fn bytes(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1000)];
    match units.into_iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size)) {
        Some((unit, size)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

/// The address without its password.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    match rest.split_once('@') {
        Some((user, place)) => format!("{scheme}://{}@{place}", user.split(':').next().unwrap_or_default()),
        None => url.to_owned(),
    }
}

/// All settings as TOML.
pub fn settings(config: &Config) -> String {
    let mut out = Writer::default();
    out.text("data", &config.data.display().to_string());
    out.text("keys", &config.keys.display().to_string());
    out.section("[api]");
    out.text("listen", &config.api.listen.to_string());
    out.plain("allow_plain", config.api.allow_plain);
    out.plain("rate_per_token", config.api.rate_per_token);
    out.plain("rate_per_address", config.api.rate_per_address);
    if let Some(url) = &config.api.public_url {
        out.text("public_url", url);
    }
    out.list("trusted_proxies", &config.api.trusted_proxies.networks().map(ToString::to_string).collect::<Vec<_>>());
    if let Some(tls) = &config.api.tls {
        out.section("[api.tls]");
        out.text("certificate", &tls.certificate.display().to_string());
        out.text("key", &tls.key.display().to_string());
    }
    out.section("[agents]");
    out.text("listen", &config.agents.listen.to_string());
    out.text("address", &config.agents.address);
    out.list("names", &config.agents.names);
    out.text("wait", &duration(config.agents.wait));
    out.text("low_interval", &duration(config.agents.low_interval));
    out.text("certificate_lifetime", &duration(config.agents.certificate_lifetime));
    let longest = config.agents.longest_silence.map_or_else(|| "never".to_owned(), duration);
    out.text("longest_silence", &longest);
    out.list("unlimited_silence", &config.agents.unlimited_silence);
    out.plain("max_connections", config.agents.max_connections);
    out.section("[metrics]");
    if let Some(listen) = config.metrics.listen {
        out.text("listen", &listen.to_string());
    }
    out.section("[database]");
    out.text("url", &without_password(&config.database.url));
    if let Some(file) = &config.database.password_file {
        out.text("password_file", &file.display().to_string());
    }
    git(&mut out, config);
    for (name, environment) in &config.environments {
        out.section(&format!("[environments.{}]", quote(name)));
        out.text(
            "publish",
            match environment.publish {
                PublishMode::Direct => "direct",
                PublishMode::PullRequest => "pull-request",
            },
        );
    }
    out.section("[packages]");
    out.text("folder", &config.packages_folder().display().to_string());
    out.text("keep", &duration(config.packages.keep));
    out.list("hosts", &config.packages.hosts);
    out.text("kustomize", &config.packages.kustomize.display().to_string());
    out.text("helm", &config.packages.helm.display().to_string());
    if let Some(socket) = &config.packages.renderer {
        out.text("renderer", &socket.display().to_string());
    }
    out.section("[history]");
    out.text("keep", &duration(config.history.keep));
    out.text("max_size", &bytes(config.history.max_size));
    for destination in &config.events {
        out.section("[[events]]");
        out.text("name", &destination.name);
        out.text("url", &destination.url);
        out.text("secret_file", &destination.secret_file.display().to_string());
        out.list("kinds", &destination.kinds.iter().map(|kind| kind.as_str().to_owned()).collect::<Vec<_>>());
        out.list("environments", &destination.environments);
    }
    out.0
}

fn git(out: &mut Writer, config: &Config) {
    let git = &config.git;
    out.section("[git]");
    if let Some(address) = &git.control_plane {
        out.text("control_plane", address);
    }
    out.text("branch", &git.branch);
    out.text("poll", &duration(git.poll));
    out.list("hosts", &git.hosts);
    if let Some(file) = &git.webhook_secret_file {
        out.text("webhook_secret_file", &file.display().to_string());
    }
    out.text("author_name", &git.author_name);
    out.text("author_email", &git.author_email);
    if !git.poll_of.is_empty() {
        out.section("[git.poll_of]");
        git.poll_of.iter().for_each(|(url, every)| out.text(&quote(url), &duration(*every)));
    }
    for credential in &git.credentials {
        out.section("[[git.credentials]]");
        out.text("prefix", &credential.prefix);
        if credential.platform {
            out.text("for", "platform");
        }
        if !credential.workspaces.is_empty() {
            out.list("workspaces", &credential.workspaces);
        }
        if let Some(username) = &credential.username {
            out.text("username", username);
        }
        if let Some(file) = &credential.secret_file {
            out.text("secret_file", &file.display().to_string());
        }
        if let Some(file) = &credential.ssh_key_file {
            out.text("ssh_key_file", &file.display().to_string());
        }
    }
    for forge in &git.forges {
        out.section("[[git.forges]]");
        out.text("prefix", &forge.prefix);
        out.text(
            "kind",
            match forge.kind {
                ForgeKind::GitHub => "github",
                ForgeKind::Gitea => "gitea",
            },
        );
        if let Some(api) = &forge.api {
            out.text("api", api);
        }
    }
}

#[derive(Default)]
struct Writer(String);

impl Writer {
    fn section(&mut self, header: &str) {
        self.0.push_str(&format!("\n{header}\n"));
    }

    fn text(&mut self, key: &str, value: &str) {
        self.plain(key, quote(value));
    }

    fn list(&mut self, key: &str, values: &[String]) {
        let values: Vec<String> = values.iter().map(|value| quote(value)).collect();
        self.plain(key, format!("[{}]", values.join(", ")));
    }

    fn plain(&mut self, key: &str, value: impl std::fmt::Display) {
        self.0.push_str(&format!("{key} = {value}\n"));
    }
}

/// As TOML writes it.
fn quote(text: &str) -> String {
    toml::Value::from(text).to_string()
}
