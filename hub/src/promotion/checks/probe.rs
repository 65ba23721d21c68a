//! One question to something outside, and what its answer means. Our own client: ring, limits on time and size, no way to
//! another host. Pure but for `ask`.

use std::sync::OnceLock;
use std::time::Duration;

use kedge_model::kinds::{Check, Probe};
use reqwest::Url;
use serde_json::Value;

use super::About;
use crate::promotion::branches::Branches;
use crate::publish::forge::Forge;

/// An answer that says yes or no is short.
const ANSWER_LIMIT: usize = 1024 * 1024;

/// Of what was answered.
const SAID: usize = 200;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A load balancer may redirect within its own host.
const REDIRECTS: usize = 3;

/// Whether it holds, and what was said. The caller limits the time.
pub async fn ask(check: &Check, about: &About, branches: &Branches) -> (bool, String) {
    let outcome = match &check.probe {
        Probe::Http { url, pointer, equals } => match fetch(url).await {
            Ok(answer) => answer.good().and_then(|body| judge_json(body, pointer, equals)),
            Err(why) => Err(why),
        },
        Probe::Prometheus { url, query } => match query_url(url, query) {
            Some(url) => match fetch(&url).await {
                // A query that can't be run is answered with a status of its own, and the reason in JSON.
                Ok(answer) => match (judge_prometheus(&answer.body), answer.good()) {
                    (Err(why), Err(_)) if why.starts_with(QUERY_FAILS) => Err(why),
                    (_, Err(why)) => Err(why),
                    (judged, Ok(_)) => judged,
                },
                Err(why) => Err(why),
            },
            None => Err("the address of the Prometheus can't be used".to_owned()),
        },
        Probe::CommitStatus { context } => commit_status(about, context, branches).await,
    };
    match outcome {
        Ok((ok, said)) => (ok, short(&said)),
        Err(why) => (false, short(&why)),
    }
}

type Judged = Result<(bool, String), String>;

/// What came back, whatever its status.
struct Reply {
    status: reqwest::StatusCode,
    body: Vec<u8>,
}

impl Reply {
    fn good(&self) -> Result<&[u8], String> {
        match self.status.is_success() {
            true => Ok(&self.body),
            false => Err(format!("it answers {}", self.status.as_u16())),
        }
    }
}

const QUERY_FAILS: &str = "the query fails";

async fn commit_status(about: &About, context: &str, branches: &Branches) -> Judged {
    let forge = Forge::of(&about.repo, &branches.forges, &*branches.remote).map_err(|error| error.to_string())?;
    let forge = forge.ok_or("its repository is on no server that is configured as a forge")?;
    let found = forge.status(&about.commit, context).await.map_err(|error| error.to_string())?;
    Ok(match found {
        Some(status) => (status.state == "success", format!("{context} is {}", status.state)),
        None => (false, format!("{context} isn't set on the commit")),
    })
}

/// The address of one instant query.
fn query_url(base: &str, query: &str) -> Option<String> {
    let mut url = Url::parse(base).ok()?;
    let path = format!("{}/api/v1/query", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_query(Some(&format!("query={}", crate::publish::forge::segment(query))));
    Some(url.into())
}

async fn fetch(url: &str) -> Result<Reply, String> {
    let url = Url::parse(url).map_err(|error| format!("its address can't be used: {error}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("only http and https are asked".to_owned());
    }
    let unreachable = |error: reqwest::Error| {
        let error = error.without_url();
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(next) = cause {
            text = next.to_string();
            cause = next.source();
        }
        format!("it can't be asked: {text}")
    };
    let request = client()?.get(url).header(reqwest::header::ACCEPT, "application/json");
    let mut response = request.send().await.map_err(unreachable)?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        if body.len() + chunk.len() > ANSWER_LIMIT {
            return Err("its answer is longer than we read".to_owned());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Reply { status, body })
}

/// One client for all checks: its connections are kept.
fn client() -> Result<reqwest::Client, String> {
    static CLIENT: OnceLock<reqwest::Client> = OnceLock::new();
    if let Some(client) = CLIENT.get() {
        return Ok(client.clone());
    }
    // An error means that the program has chosen a provider already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let redirects = reqwest::redirect::Policy::custom(|attempt| {
        let first = attempt.previous().first();
        let same = first.is_some_and(|first| {
            first.host_str() == attempt.url().host_str()
                && first.port_or_known_default() == attempt.url().port_or_known_default()
                && first.scheme() == attempt.url().scheme()
        });
        match same && attempt.previous().len() <= REDIRECTS {
            true => attempt.follow(),
            false => attempt.error("it redirects to another host"),
        }
    });
    let built = reqwest::Client::builder()
        .user_agent(concat!("kedge-hub/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(redirects)
        .build()
        .map_err(|error| error.to_string())?;
    Ok(CLIENT.get_or_init(|| built).clone())
}

/// Whether the value at a place is the wanted one.
fn judge_json(body: &[u8], pointer: &str, equals: &str) -> Judged {
    let answer: Value = serde_json::from_slice(body).map_err(|_| "its answer isn't JSON".to_owned())?;
    let Some(found) = answer.pointer(pointer) else {
        return Ok((false, format!("its answer has nothing at `{pointer}`")));
    };
    // `ok` without quotes means the text.
    let wanted = serde_json::from_str::<Value>(equals).ok();
    let same =
        wanted.as_ref() == Some(found) || found.as_str() == Some(equals) || numbers_equal(wanted.as_ref(), found);
    Ok((same, format!("{pointer} is {found}")))
}

/// 1 and 1.0 are the same to people.
fn numbers_equal(wanted: Option<&Value>, found: &Value) -> bool {
    matches!((wanted.and_then(Value::as_f64), found.as_f64()), (Some(one), Some(other)) if one == other)
}

/// Whether a query's answer is not empty and has no zero.
fn judge_prometheus(body: &[u8]) -> Judged {
    let answer: Value = serde_json::from_slice(body).map_err(|_| "its answer isn't JSON".to_owned())?;
    if answer.get("status").and_then(Value::as_str) != Some("success") {
        let why = answer.get("error").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(format!("{QUERY_FAILS}: {why}"));
    }
    let data = answer.get("data").ok_or("its answer has no data")?;
    let result = data.get("result").ok_or("its answer has no result")?;
    let sample = |pair: &Value| pair.get(1).and_then(Value::as_str).and_then(number);
    let values: Vec<Option<f64>> = match data.get("resultType").and_then(Value::as_str) {
        Some("scalar") => vec![sample(result)],
        Some("vector") => {
            let series = result.as_array().map(Vec::as_slice).unwrap_or_default();
            series.iter().map(|one| one.get("value").and_then(sample)).collect()
        }
        _ => return Err("the query gives neither a number nor a list of numbers".to_owned()),
    };
    if values.is_empty() {
        return Ok((false, "the query gives nothing".to_owned()));
    }
    let bad = values.iter().filter(|value| value.is_none_or(|value| value == 0.0 || value.is_nan())).count();
    let (all, shown) = (values.len(), values.first().copied().flatten());
    Ok(match (bad, shown) {
        (0, Some(value)) if all == 1 => (true, format!("the query gives {value}")),
        (0, _) => (true, format!("the query gives {all} values, none of them zero")),
        (bad, _) => (false, format!("{bad} of {all} values of the query are zero or no number")),
    })
}

fn number(text: &str) -> Option<f64> {
    match text {
        "+Inf" => Some(f64::INFINITY),
        "-Inf" => Some(f64::NEG_INFINITY),
        text => text.parse().ok(),
    }
}

fn short(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SAID).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_json_answer_holds_when_the_value_is_there_and_the_same() {
        let body = br#"{"status": {"ok": true, "word": "green", "n": 1.0}}"#;
        for (pointer, equals, ok) in [
            ("/status/ok", "true", true),
            ("/status/ok", "false", false),
            ("/status/word", "green", true),
            ("/status/word", "\"green\"", true),
            ("/status/n", "1", true),
            ("/status/gone", "true", false),
            ("", "true", false),
        ] {
            assert_eq!(judge_json(body, pointer, equals).unwrap().0, ok, "{pointer} {equals}");
        }
        assert!(judge_json(b"<html>", "/x", "1").is_err());
    }

    #[test]
    fn a_query_holds_when_it_gives_something_and_no_zero() {
        let vector =
            |values: &str| format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{values}]}}}}"#);
        let one = |value: &str| format!(r#"{{"metric":{{}},"value":[1, "{value}"]}}"#);
        assert!(!judge_prometheus(vector("").as_bytes()).unwrap().0);
        assert!(judge_prometheus(vector(&one("1")).as_bytes()).unwrap().0);
        assert!(!judge_prometheus(vector(&format!("{},{}", one("1"), one("0"))).as_bytes()).unwrap().0);
        assert!(!judge_prometheus(vector(&one("NaN")).as_bytes()).unwrap().0);
        let scalar = br#"{"status":"success","data":{"resultType":"scalar","result":[1,"2.5"]}}"#;
        assert_eq!(judge_prometheus(scalar).unwrap(), (true, "the query gives 2.5".to_owned()));
        let failed = br#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert_eq!(judge_prometheus(failed).unwrap_err(), "the query fails: parse error");
    }

    #[test]
    fn a_query_is_asked_below_the_servers_path() {
        let url = query_url("http://prometheus:9090/tenant/", "up == 1").unwrap();
        assert_eq!(url, "http://prometheus:9090/tenant/api/v1/query?query=up%20%3D%3D%201");
    }

    proptest! {
        #[test]
        fn any_answer_gives_a_short_word(body in prop::collection::vec(any::<u8>(), 0..500), pointer in ".{0,20}", equals in ".{0,20}") {
            let _ = judge_json(&body, &pointer, &equals);
            let _ = judge_prometheus(&body);
            prop_assert!(short(&String::from_utf8_lossy(&body)).chars().count() <= SAID);
        }

        #[test]
        fn any_value_is_judged(value in "[-+.0-9a-zA-Z]{0,12}", kind in "(vector|scalar|matrix)") {
            let body = format!(r#"{{"status":"success","data":{{"resultType":"{kind}","result":[{{"value":[0,"{value}"]}}]}}}}"#);
            let _ = judge_prometheus(body.as_bytes());
        }
    }
}
