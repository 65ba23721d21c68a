//! The parts of a kubeconfig that lead to a server: the current context's cluster and user. What a person's kubectl may do and an agent
//! doesn't is refused by name, with the way out. Called by `Access`.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use kedge_goyaml::{Limits, Node, node};

use super::{Access, AccessError, DEFAULT_NAMESPACE, Token, certificates, key, read, server};

/// A person's file with some hundred clusters.
const LIMITS: Limits = Limits { bytes: 1 << 20, nodes: 50_000, depth: 20 };
/// Fields of a user that need more than a file.
const REFUSED: [&str; 5] = ["exec", "auth-provider", "username", "password", "as"];

/// `folder` is where the file is: its paths are relative to that.
pub fn read_access(text: &str, folder: &Path) -> Result<Access, AccessError> {
    let documents = node::parse(text, &LIMITS).map_err(|error| wrong(error.to_string()))?;
    let file = documents.first().ok_or_else(|| wrong("it is empty"))?;
    let context = file.get("current-context").and_then(Node::text).filter(|name| !name.is_empty());
    let context = context.ok_or_else(|| wrong("it names no `current-context`: kubectl config use-context NAME"))?;
    let context = named(file, "context", context)?;
    let part = |kind: &str| {
        let name = context.get(kind).and_then(Node::text);
        named(file, kind, name.ok_or_else(|| wrong(format!("the current context names no {kind}")))?)
    };
    let (cluster, user) = (Place { node: part("cluster")?, folder }, Place { node: part("user")?, folder });
    if let Some(field) = REFUSED.into_iter().find(|field| user.node.get(field).is_some_and(|value| !value.is_null())) {
        let way = "give it a service account's token (kubectl create token) or a client certificate";
        return Err(wrong(format!("line {}: `{field}` isn't something that the agent does; {way}", user.node.line)));
    }
    for field in ["insecure-skip-tls-verify", "proxy-url"] {
        if cluster.text(field).is_some_and(|text| text != "false") {
            return Err(wrong(format!("line {}: `{field}` isn't supported", cluster.node.line)));
        }
    }
    let address = cluster.text("server").ok_or_else(|| wrong(format!("line {}: no `server`", cluster.node.line)))?;
    let namespace = context.get("namespace").and_then(Node::text).filter(|name| !name.is_empty());
    let mut access = Access {
        server: server(address)?,
        authorities: Vec::new(),
        identity: None,
        token: Token::none(),
        namespace: namespace.unwrap_or(DEFAULT_NAMESPACE).to_owned(),
        server_name: cluster.text("tls-server-name").map(str::to_owned),
    };
    if let Some(pem) = cluster.pem("certificate-authority")? {
        access.authorities = certificates(&pem, "`certificate-authority`")?;
    } else if access.is_secure() {
        return Err(wrong(format!("line {}: `certificate-authority` is missing: whom to believe?", cluster.node.line)));
    }
    access.identity = match (user.pem("client-certificate")?, user.pem("client-key")?) {
        (Some(chain), Some(private)) => {
            Some((certificates(&chain, "`client-certificate`")?, key(&private, "`client-key`")?))
        }
        (None, None) => None,
        _ => {
            return Err(wrong(format!(
                "line {}: a certificate needs its key, and the other way round",
                user.node.line
            )));
        }
    };
    if let Some(token) = user.text("token") {
        access.token = Token::fixed(token)?;
    } else if let Some(path) = user.text("tokenFile") {
        access.token = Token::of_file(&folder.join(path))?;
    }
    Ok(access)
}

/// A cluster or a user, and where its paths begin.
struct Place<'a> {
    node: &'a Node,
    folder: &'a Path,
}

impl<'a> Place<'a> {
    fn text(&self, field: &str) -> Option<&'a str> {
        self.node.get(field).and_then(Node::text).filter(|text| !text.is_empty())
    }

    /// `FIELD-data` in base64, or the file that `FIELD` names.
    fn pem(&self, field: &str) -> Result<Option<String>, AccessError> {
        if let Some(data) = self.text(&format!("{field}-data")) {
            let bytes = BASE64.decode(data.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            return bytes
                .map(Some)
                .ok_or_else(|| wrong(format!("line {}: `{field}-data` isn't base64", self.node.line)));
        }
        self.text(field).map(|path| read(&self.folder.join(path))).transpose()
    }
}

/// `contexts: [{name: …, context: {…}}]`, and clusters and users alike.
fn named<'a>(file: &'a Node, kind: &str, name: &str) -> Result<&'a Node, AccessError> {
    let entries = file.get(&format!("{kind}s")).and_then(Node::items).unwrap_or_default();
    let entry = entries.iter().find(|entry| entry.get("name").and_then(Node::text) == Some(name));
    entry
        .and_then(|entry| entry.get(kind))
        .ok_or_else(|| wrong(format!("there is no {kind} `{}`", name.escape_debug())))
}

fn wrong(why: impl Into<String>) -> AccessError {
    AccessError::Wrong(why.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

    use proptest::prelude::*;

    use super::*;

    fn file(cluster: &str, user: &str) -> String {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\ncontexts:\n- name: here\n  context: {{cluster: c, user: u, namespace: n}}\n\
             clusters:\n- name: c\n  cluster: {cluster}\nusers:\n- name: u\n  user: {user}\n"
        )
    }

    fn refusal(cluster: &str, user: &str) -> String {
        read_access(&file(cluster, user), Path::new("/nowhere")).unwrap_err().to_string()
    }

    fn authority() -> String {
        let made = rcgen::generate_simple_self_signed(vec!["server".to_owned()]).unwrap();
        BASE64.encode(made.cert.pem())
    }

    #[test]
    fn the_current_context_says_where_and_as_whom() {
        let cluster = format!(
            "{{server: \"https://[::1]:6443/k8s\", certificate-authority-data: {}, tls-server-name: server}}",
            authority()
        );
        let access = read_access(&file(&cluster, "{token: abc}"), Path::new("/")).unwrap();
        assert_eq!((access.server.path(), access.namespace.as_str()), ("/k8s", "n"));
        assert_eq!((access.authorities.len(), access.server_name.as_deref()), (1, Some("server")));
        assert_eq!(access.token.header().unwrap(), "Bearer abc");
    }

    #[test]
    fn paths_are_relative_to_the_file_and_a_token_is_read_from_one() {
        let folder = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["anna".to_owned()]).unwrap();
        std::fs::write(folder.path().join("ca.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("anna.key"), made.signing_key.serialize_pem()).unwrap();
        std::fs::write(folder.path().join("token"), "xyz\n").unwrap();
        let text = file(
            "{server: \"https://10.0.0.1\", certificate-authority: ca.crt}",
            "{tokenFile: token, client-certificate: ca.crt, client-key: anna.key}",
        );
        let access = read_access(&text, folder.path()).unwrap();
        assert_eq!(access.token.header().unwrap(), "Bearer xyz");
        assert!(access.identity.is_some());
    }

    #[test]
    fn what_an_agent_does_not_do_is_refused_with_the_way_out() {
        let http = "{server: \"http://127.0.0.1:8001\"}";
        insta::assert_snapshot!(refusal(http, "{exec: {command: aws}}"), @"line 12: `exec` isn't something that the agent does; give it a service account's token (kubectl create token) or a client certificate");
        insta::assert_snapshot!(refusal("{server: \"https://10.0.0.1\"}", "{}"), @"line 9: `certificate-authority` is missing: whom to believe?");
        insta::assert_snapshot!(refusal("{server: \"https://10.0.0.1\", insecure-skip-tls-verify: true}", "{}"), @"line 9: `insecure-skip-tls-verify` isn't supported");
        insta::assert_snapshot!(refusal("{server: \"ftp://10.0.0.1\"}", "{}"), @"`ftp://10.0.0.1` isn't the address of a server");
        insta::assert_snapshot!(refusal(http, "{client-certificate-data: aGVsbG8=}"), @"line 12: a certificate needs its key, and the other way round");
        let elsewhere = file(http, "{}").replace("current-context: here", "current-context: there");
        insta::assert_snapshot!(read_access(&elsewhere, Path::new("/")).unwrap_err().to_string(), @"there is no context `there`");
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "\\PC{0,400}") {
            let _ = read_access(&text, Path::new("/nowhere"));
            let _ = read_access(&file(&text, &text), Path::new("/nowhere"));
        }
    }
}
