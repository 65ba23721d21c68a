//! A real Chromium, driven by chromedriver over WebDriver: what a person sees, clicks and types. Each browser has a profile of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::part::Part;
use super::port::Port;
use super::{await_some, await_true, http as lab_http, skip};

/// Chromium starts in 2 s on two idle cores.
const READY_WITHIN: Duration = Duration::from_secs(60);
const STOPPED_WITHIN: Duration = Duration::from_secs(20);
/// What a person waits for before looking elsewhere, on a busy machine.
pub const SEEN_WITHIN: Duration = Duration::from_secs(60);

/// As a container without a display and without the makers' services runs it.
const FLAGS: [&str; 9] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
];

/// A window.
#[derive(Debug)]
pub struct Browser {
    session: String,
    client: reqwest::blocking::Client,
    // Before the folder and the port: the programs end first.
    part: Part,
    _port: Port,
    folder: TempDir,
}

/// How a page is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Light {
    Light,
    Dark,
}

impl Browser {
    /// An empty window. Without the programs the test is marked as skipped and there is none.
    pub fn start() -> Option<Browser> {
        if let Err(reason) = programs() {
            skip(&reason);
            return None;
        }
        let folder = tempfile::Builder::new().prefix("kedge-browser-").tempdir().unwrap();
        let port = Port::claim();
        let number = port.address().port();
        let mut driver = Command::new("chromedriver");
        driver.arg(format!("--port={number}")).env("HOME", folder.path());
        let part = Part::start("chromedriver", &mut driver, &folder.path().join("chromedriver.log"));
        let client = lab_http::client();
        let base = format!("http://{}", port.address());
        await_true("chromedriver is ready", READY_WITHIN, || {
            let answer = client.get(format!("{base}/status")).send().and_then(|answer| answer.json::<Value>());
            answer.is_ok_and(|status| status["value"]["ready"] == true)
        });
        let mut flags: Vec<String> = FLAGS.iter().map(|flag| (*flag).to_owned()).collect();
        flags.push(format!("--user-data-dir={}", folder.path().join("profile").display()));
        let wish = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": flags},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let made: Value = client.post(format!("{base}/session")).json(&wish).send().unwrap().json().unwrap();
        let id = made["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("no window: {made}")).to_owned();
        Some(Browser { session: format!("{base}/session/{id}"), client, part, _port: port, folder })
    }

    fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value, String> {
        let mut request = self.client.request(method, format!("{}/{path}", self.session));
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer: Value = request.send().and_then(|answer| answer.json()).map_err(|error| error.to_string())?;
        match answer["value"]["error"].as_str() {
            Some(error) => Err(format!("{error}: {}", answer["value"]["message"].as_str().unwrap_or_default())),
            None => Ok(answer["value"].clone()),
        }
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.call(Method::POST, path, Some(body)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Goes to an address and waits until it is loaded.
    pub fn open(&self, url: &str) {
        self.post("url", json!({"url": url}));
    }

    pub fn address(&self) -> String {
        self.call(Method::GET, "url", None).unwrap().as_str().unwrap().to_owned()
    }

    /// Runs a function's body in the page.
    pub fn run(&self, script: &str, arguments: Value) -> Value {
        self.post("execute/sync", json!({"script": script, "args": arguments}))
    }

    /// The same for a body that waits; its value is what it returns.
    pub fn run_waiting(&self, script: &str) -> Value {
        let wrapped = format!(
            "const done = arguments[0]; (async () => {{ {script} }})().then(done, (error) => done('' + error));"
        );
        self.post("timeouts", json!({"script": 60_000}));
        self.post("execute/async", json!({"script": wrapped, "args": []}))
    }

    /// What a person can read on the page.
    pub fn text(&self) -> String {
        self.run("return document.body.innerText", json!([])).as_str().unwrap_or_default().to_owned()
    }

    /// Waits, without loading anew, until the page says this.
    #[track_caller]
    pub fn await_text(&self, text: &str) {
        let seen = || self.text().contains(text);
        let mut looks = 0;
        let found = await_or_none(SEEN_WITHIN, || {
            looks += 1;
            seen().then_some(())
        });
        assert!(found.is_some(), "the page doesn't say {text:?} ({looks} looks):\n{}\n{}", self.address(), self.text());
    }

    /// Waits until the script's value is true.
    #[track_caller]
    pub fn await_script(&self, what: &str, script: &str) {
        let found = await_or_none(SEEN_WITHIN, || (self.run(script, json!([])) == true).then_some(()));
        assert!(found.is_some(), "{what}: not after {SEEN_WITHIN:?}\n{}\n{}", self.address(), self.text());
    }

    fn element(&self, using: &str, value: &str) -> Result<String, String> {
        let found = self.call(Method::POST, "element", Some(json!({"using": using, "value": value})))?;
        let id = found.as_object().and_then(|found| found.values().next()).and_then(Value::as_str);
        Ok(id.ok_or("no element")?.to_owned())
    }

    /// Clicks the link or button with exactly this text.
    #[track_caller]
    pub fn click_text(&self, text: &str) {
        let path = format!("//*[self::a or self::button][normalize-space(.)={}]", quoted(text));
        self.click_by("xpath", &path);
    }

    #[track_caller]
    pub fn click(&self, selector: &str) {
        self.click_by("css selector", selector);
    }

    #[track_caller]
    fn click_by(&self, using: &str, value: &str) {
        // A live part may be swapped between finding and clicking: then it is found again.
        let mut last = String::new();
        let clicked = await_or_none(SEEN_WITHIN, || {
            let element = self.element(using, value).map_err(|error| last = error).ok()?;
            let click = self.call(Method::POST, &format!("element/{element}/click"), Some(json!({})));
            click.map_err(|error| last = error).ok()
        });
        assert!(clicked.is_some(), "{value} can't be clicked: {last}\n{}\n{}", self.address(), self.text());
    }

    /// Types into a field.
    #[track_caller]
    pub fn type_into(&self, selector: &str, text: &str) {
        let element = self.element("css selector", selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
        self.post(&format!("element/{element}/value"), json!({"text": text}));
    }

    /// Presses keys wherever the page's attention is.
    pub fn press(&self, keys: &str) {
        let steps: Vec<Value> = keys
            .chars()
            .flat_map(|key| [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})])
            .collect();
        self.post("actions", json!({"actions": [{"type": "key", "id": "keys", "actions": steps}]}));
    }

    fn devtools(&self, command: &str, parameters: Value) -> Value {
        self.post("goog/cdp/execute", json!({"cmd": command, "params": parameters}))
    }

    /// The window is so many pixels wide, also narrower than a desktop lets it be.
    pub fn resize(&self, width: u32, height: u32) {
        self.devtools(
            "Emulation.setDeviceMetricsOverride",
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}),
        );
        self.devtools("Emulation.setScrollbarsHidden", json!({"hidden": true}));
    }

    pub fn light(&self, light: Light) {
        let value = if light == Light::Dark { "dark" } else { "light" };
        let features = json!([{"name": "prefers-color-scheme", "value": value}]);
        self.devtools("Emulation.setEmulatedMedia", json!({"features": features}));
    }

    /// Pages run no script from now on, or do again.
    pub fn scripts(&self, run: bool) {
        self.devtools("Emulation.setScriptExecutionDisabled", json!({"value": !run}));
    }

    /// The whole page as a picture.
    pub fn picture(&self, path: &Path) {
        let shot = self.devtools("Page.captureScreenshot", json!({"format": "png", "captureBeyondViewport": true}));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, BASE64.decode(shot["data"].as_str().unwrap()).unwrap()).unwrap();
    }

    /// What the page's console said since the last look: errors and refusals of the policy.
    pub fn complaints(&self) -> Vec<String> {
        let log = self.call(Method::POST, "se/log", Some(json!({"type": "browser"}))).unwrap();
        let entries = log.as_array().cloned().unwrap_or_default();
        let serious = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        serious.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// What the folder of the profile holds, for a look at what a browser keeps.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Chromium ends with its window; the driver then has nothing left.
        let _ = self.client.delete(&self.session).send();
        if !std::thread::panicking() {
            self.part.stop(Signal::SIGTERM, STOPPED_WITHIN);
        }
    }
}

fn await_or_none<T>(within: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let began = std::time::Instant::now();
    await_some("a look", within + Duration::from_secs(30), || {
        let seen = look();
        (seen.is_some() || began.elapsed() > within).then_some(seen)
    })
}

/// A text in XPath, which has no escapes.
fn quoted(text: &str) -> String {
    assert!(!(text.contains('\'') && text.contains('"')), "no such text in XPath");
    if text.contains('\'') { format!("\"{text}\"") } else { format!("'{text}'") }
}

fn programs() -> Result<(), String> {
    if let Ok(why) = std::env::var("KEDGE_NO_BROWSER") {
        return Err(why);
    }
    let found = Command::new("chromedriver").arg("--version").output().is_ok_and(|ran| ran.status.success());
    if found {
        Ok(())
    } else {
        Err("there is no chromedriver (Debian's packages chromium, chromium-driver)".to_owned())
    }
}

/// The text of axe-core, which looks for what people with other senses can't use. None where it can't be had, and the test says so.
pub fn axe() -> Option<String> {
    let path = std::env::var("KEDGE_AXE").ok();
    let text = path.and_then(|path| fs::read_to_string(path).ok());
    if text.is_none() {
        skip(
            &std::env::var("KEDGE_NO_AXE")
                .unwrap_or_else(|_| "axe-core isn't here (./tests/run web fetches it)".to_owned()),
        );
    }
    text
}
