//! One try of one health check, without waiting for a better moment: the transaction engine decides how often and how long. Called in
//! the applier's thread through the host applier.

mod http;
mod scope;

use std::fmt;
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::command::{self, CommandError};
use crate::goal::{Check, Probe};
use http::{Address, HttpError};

/// What checks need beside the check itself.
#[derive(Debug)]
pub struct HealthContext {
    /// The authorities that the host trusts, as PEM: for `https://` checks.
    pub authorities: PathBuf,
    pub hub: Option<Box<dyn HubProbe>>,
}

/// Asks the hub something over a connection of its own.
pub trait HubProbe: fmt::Debug + Send {
    /// Whether it answered; a sentence says why not.
    fn reach(&self, limit: Duration) -> Result<(), String>;
}

/// Where Debian's ca-certificates puts them all.
const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Asking systemd takes milliseconds; a host that is busy takes longer.
const SYSTEMCTL: Duration = Duration::from_secs(20);
/// What a message shows of a program's output: its end.
const SHOWN: usize = 300;
/// A check without a limit of its own.
const USUAL_LIMIT: Duration = Duration::from_secs(10);

impl HealthContext {
    pub fn host(hub: Option<Box<dyn HubProbe>>) -> HealthContext {
        HealthContext { authorities: PathBuf::from(AUTHORITIES), hub }
    }
}

/// One try; a sentence says why not.
pub fn check(check: &Check, context: &HealthContext) -> Result<(), String> {
    let limit = match check.timeout_seconds {
        0 => USUAL_LIMIT,
        seconds => Duration::from_secs(seconds),
    };
    match &check.probe {
        Probe::Unit(name) => unit(name),
        Probe::Http(url) => get(url, context, limit),
        Probe::Tcp(address) => tcp(address, limit),
        Probe::Exec { command, user, slice } => exec(command, user.as_deref(), slice.as_deref(), limit),
        Probe::Hub => match &context.hub {
            Some(hub) => hub.reach(limit).map_err(|why| format!("the hub doesn't answer: {why}")),
            None => Err("the hub doesn't answer: this host hasn't joined one".to_owned()),
        },
        Probe::Objects(_) => Err("a plain host has no API server".to_owned()),
    }
}

/// Active, or a one-time unit that has run to a good end.
fn unit(name: &str) -> Result<(), String> {
    const ASKED: &str = "--property=LoadState,ActiveState,SubState,Result,Type,ExecMainStartTimestampMonotonic";
    let output = command::run("systemctl", &["show", ASKED, "--", name], &[], SYSTEMCTL)
        .map_err(|error| format!("systemd can't be asked about {name}: {error}"))?;
    if !output.ok() {
        return Err(format!("systemd can't be asked about {name}: {}", tail(&output.text())));
    }
    judge_unit(name, &output.stdout)
}

fn judge_unit(name: &str, shown: &str) -> Result<(), String> {
    let of = |key: &str| {
        shown.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap_or_default().to_owned()
    };
    let (load, active, sub, result) = (of("LoadState"), of("ActiveState"), of("SubState"), of("Result"));
    let has_run = !matches!(of("ExecMainStartTimestampMonotonic").as_str(), "" | "0");
    match active.as_str() {
        "active" | "reloading" => Ok(()),
        "inactive" if of("Type") == "oneshot" && result == "success" && has_run => Ok(()),
        _ if load == "not-found" => Err(format!("{name} isn't known to systemd")),
        _ if result.is_empty() || result == "success" => Err(format!("{name} is {active} ({sub})")),
        _ => Err(format!("{name} is {active} ({sub}): {result}")),
    }
}

fn get(url: &str, context: &HealthContext, limit: Duration) -> Result<(), String> {
    let failed = |error: HttpError| format!("{url}: {error}");
    let deadline = Instant::now() + limit;
    let address = Address::of(url).map_err(failed)?;
    let tls = if address.tls { Some(http::trusting(&context.authorities).map_err(failed)?) } else { None };
    match http::get(&address, tls, deadline).map_err(failed)? {
        200..=299 => Ok(()),
        status => Err(format!("{url} answers {status}")),
    }
}

fn tcp(address: &str, limit: Duration) -> Result<(), String> {
    connect(address, Instant::now() + limit).map(drop).map_err(|error| format!("{address}: {error}"))
}

/// Tries every address that the name stands for, until one answers.
fn connect(address: &str, deadline: Instant) -> std::io::Result<TcpStream> {
    let mut last = std::io::Error::other("the name stands for no address");
    for resolved in address.to_socket_addrs()? {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(std::io::Error::from(std::io::ErrorKind::TimedOut));
        }
        match TcpStream::connect_timeout(&resolved, left) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// The tenant's program, as the tenant's user, in its slice, without a shell and without a way to more rights.
fn exec(words: &[String], user: Option<&str>, slice: Option<&str>, limit: Duration) -> Result<(), String> {
    if words.is_empty() {
        return Err("the check names no program".to_owned());
    }
    let shown = words.join(" ");
    let mut line: Vec<String> = Vec::new();
    if let Some(user) = user {
        let known = nix::unistd::User::from_name(user).ok().flatten();
        let known = known.ok_or_else(|| format!("`{shown}` can't run: there is no user {user}"))?;
        line.extend(["setpriv".to_owned(), format!("--reuid={}", known.uid), format!("--regid={}", known.gid)]);
        line.extend(["--clear-groups", "--no-new-privs", "--"].map(str::to_owned));
    }
    line.extend(words.iter().cloned());
    let ran = match slice.filter(|_| scope::is_possible()) {
        Some(slice) => scope::run(&line, slice, limit),
        None => scope::run_here(&line, limit),
    };
    match ran {
        Ok(output) if output.ok() => Ok(()),
        Ok(output) => {
            let ended = output.status.code().map_or("was killed".to_owned(), |code| format!("ended with {code}"));
            Err(with_output(format!("`{shown}` {ended}"), &output.text()))
        }
        Err(CommandError::Slow { seconds, output, .. }) => {
            Err(with_output(format!("`{shown}` didn't end within {seconds} s"), &output))
        }
        Err(error @ CommandError::Missing { .. }) => Err(error.to_string()),
        Err(CommandError::Start { source, .. }) => Err(format!("`{shown}` can't be started: {source}")),
    }
}

fn with_output(said: String, output: &str) -> String {
    let output = tail(output);
    if output.is_empty() { said } else { format!("{said}: {output}") }
}

fn tail(output: &str) -> String {
    let output = output.trim();
    let from = output.ceil_char_boundary(output.len().saturating_sub(SHOWN));
    if from == 0 { output.to_owned() } else { format!("…{}", &output[from..]) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[derive(Debug)]
    struct Answers(Result<(), String>);

    impl HubProbe for Answers {
        fn reach(&self, _: Duration) -> Result<(), String> {
            self.0.clone()
        }
    }

    fn try_once(probe: Probe) -> Result<(), String> {
        check(&Check { probe, timeout_seconds: 2 }, &HealthContext::host(None))
    }

    /// Answers one request with these bytes; what was asked comes back.
    fn serve(answer: &'static [u8]) -> (u16, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let read = stream.read(&mut asked).unwrap();
            _ = stream.write_all(answer);
            String::from_utf8_lossy(&asked[..read]).into_owned()
        });
        (port, thread)
    }

    #[test]
    fn an_answer_of_2xx_is_healthy_and_others_are_named() {
        let (port, asked) = serve(b"HTTP/1.1 204 No Content\r\n\r\n");
        try_once(Probe::Http(format!("http://127.0.0.1:{port}/ready?x=1"))).unwrap();
        assert!(asked.join().unwrap().starts_with("GET /ready?x=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
        let (port, _) = serve(b"HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n");
        let url = format!("http://127.0.0.1:{port}/");
        assert_eq!(try_once(Probe::Http(url.clone())), Err(format!("{url} answers 302")));
        let (port, _) = serve(b"SSH-2.0-OpenSSH\r\n");
        assert!(try_once(Probe::Http(format!("http://127.0.0.1:{port}"))).unwrap_err().contains("no HTTP"));
    }

    #[test]
    fn an_endless_answer_and_a_silent_server_are_given_up() {
        static ENDLESS: [u8; 100_000] = [b'x'; 100_000];
        let (port, _) = serve(&ENDLESS);
        assert!(try_once(Probe::Http(format!("http://127.0.0.1:{port}"))).is_err());
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", silent.local_addr().unwrap());
        let began = Instant::now();
        assert!(try_once(Probe::Http(url)).unwrap_err().contains("in time"));
        assert!(began.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_port_is_healthy_while_somebody_listens() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        try_once(Probe::Tcp(address.clone())).unwrap();
        drop(listener);
        assert!(try_once(Probe::Tcp(address)).unwrap_err().contains("refused"));
        assert!(try_once(Probe::Tcp("no-port".to_owned())).is_err());
    }

    #[test]
    fn a_program_is_healthy_when_it_ends_well_and_its_words_are_told_otherwise() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let exec = |list: &[&str]| try_once(Probe::Exec { command: words(list), user: None, slice: None });
        exec(&["true"]).unwrap();
        assert_eq!(
            exec(&["sh", "-c", "echo no license; exit 3"]).unwrap_err(),
            "`sh -c echo no license; exit 3` ended with 3: no license"
        );
        assert!(exec(&["sleep", "60"]).unwrap_err().contains("didn't end within 2 s"));
        assert_eq!(exec(&["kedge-no-such-program"]).unwrap_err(), "`kedge-no-such-program` isn't there");
        // No shell: these are plain words.
        assert!(exec(&["echo", "$(touch /nowhere/x)", ";", "false"]).is_ok());
        assert!(exec(&[]).is_err());
        let nobody = Probe::Exec { command: words(&["true"]), user: Some("kedge-nobody-here".to_owned()), slice: None };
        assert!(try_once(nobody).unwrap_err().contains("no user kedge-nobody-here"));
    }

    #[test]
    fn a_unit_is_judged_by_its_state() {
        let shown = |active: &str, more: &str| format!("LoadState=loaded\nActiveState={active}\nSubState=x\n{more}");
        assert!(judge_unit("a.service", &shown("active", "Result=success")).is_ok());
        assert!(judge_unit("a.service", &shown("activating", "Result=success")).is_err());
        let once = shown("inactive", "Result=success\nType=oneshot\nExecMainStartTimestampMonotonic=7");
        assert!(judge_unit("a.service", &once).is_ok());
        assert!(judge_unit("a.service", &once.replace("=7", "=0")).is_err());
        let failed = judge_unit("a.service", &shown("failed", "Result=exit-code"));
        assert_eq!(failed, Err("a.service is failed (x): exit-code".to_owned()));
        let unknown = judge_unit("a.service", "LoadState=not-found\nActiveState=inactive\n");
        assert_eq!(unknown, Err("a.service isn't known to systemd".to_owned()));
    }

    #[test]
    fn the_hub_is_asked_through_the_link() {
        let hub = Check { probe: Probe::Hub, timeout_seconds: 1 };
        assert!(check(&hub, &HealthContext::host(Some(Box::new(Answers(Ok(())))))).is_ok());
        let silent = HealthContext::host(Some(Box::new(Answers(Err("no route".to_owned())))));
        assert_eq!(check(&hub, &silent), Err("the hub doesn't answer: no route".to_owned()));
        assert!(check(&hub, &HealthContext::host(None)).is_err());
    }
}
