//! A browser with one cookie.

use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};

use crate::api::tests::fixture::{Answer, Hub};

pub struct Browser<'a> {
    hub: &'a Hub,
    pub cookie: String,
}

impl<'a> Browser<'a> {
    pub fn new(hub: &'a Hub) -> Browser<'a> {
        Browser { hub, cookie: String::new() }
    }

    /// Logged in with a token.
    pub async fn of(hub: &'a Hub, token: &str) -> Browser<'a> {
        let mut browser = Browser::new(hub);
        let answer = browser.post("/login", &[("token", token), ("next", "/")]).await;
        assert_eq!(answer.status, StatusCode::SEE_OTHER, "{}", answer.text);
        browser
    }

    pub async fn get(&mut self, path: &str) -> Answer {
        self.send(Method::GET, path, None, &[]).await
    }

    /// The page at a path, whole.
    pub async fn page(&mut self, path: &str) -> String {
        let answer = self.get(path).await;
        assert_eq!(answer.status, StatusCode::OK, "{path}: {}", answer.text);
        assert!(answer.text.ends_with("</html>\n") || answer.text.ends_with("</html>"), "{path} is cut");
        answer.text
    }

    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Answer {
        self.send(Method::POST, path, Some(fields), &[]).await
    }

    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        fields: Option<&[(&str, &str)]>,
        headers: &[(header::HeaderName, &str)],
    ) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header(header::ACCEPT, "text/html");
        if !self.cookie.is_empty() {
            request = request.header(header::COOKIE, &self.cookie);
        }
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        let body = match fields {
            Some(fields) => {
                request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
                let pairs = fields.iter().map(|(name, value)| format!("{name}={}", crate::web::links::part(value)));
                Body::from(pairs.collect::<Vec<_>>().join("&"))
            }
            None => Body::empty(),
        };
        let answer = self.hub.call(request.body(body).unwrap()).await;
        if let Some(cookie) = answer.headers.get(header::SET_COOKIE) {
            self.cookie = cookie.to_str().unwrap().split(';').next().unwrap().to_owned();
        }
        answer
    }

    /// What a form of the page carries.
    pub async fn csrf(&mut self) -> String {
        let page = self.page("/keys").await;
        let from = page.find("name=\"csrf\" value=\"").unwrap() + 19;
        page[from..].split('"').next().unwrap().to_owned()
    }
}
