//! A renderer and those who ask it: what is refused, who is cut off, and what a hub sees when it goes.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use kedge_hub::pack::archive::Contents;
use kedge_hub::pack::request::RenderError;

use crate::stand::{HUB, Served, request, runs, script};

const ECHO: &str = "cat \"$2/file\"";

fn echo() -> Option<Served> {
    Served::start(|folder| script(folder, ECHO))
}

/// The head as a hub writes it, and bytes as an attacker likes them.
fn asked(path: &str, release: &str, bytes: u64, body: &[u8]) -> Vec<u8> {
    let head = format!(
        r#"{{"ask":"render","program":"kustomize","path":"{path}","release":"{release}","namespace":"n","bytes":{bytes}}}"#
    );
    [&u32::try_from(head.len()).unwrap().to_be_bytes()[..], head.as_bytes(), body].concat()
}

fn tar_of(files: &[(&str, &str)]) -> Vec<u8> {
    request(files, "app").files.tar().unwrap()
}

/// What is answered to raw bytes.
fn answer(socket: &Path, bytes: &[u8]) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // A refusal may come before all is sent.
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(answer.get(4..).unwrap_or_default()).into_owned()
}

#[tokio::test]
async fn hostile_requests_are_refused_and_concern_themselves_only() {
    let Some(served) = echo() else { return };
    let (plain, socket) = (tar_of(&[("app/file", "ours")]), served.client.socket());
    let length = |tar: &[u8]| tar.len() as u64;
    assert!(answer(socket, &asked("app", "r", length(&plain), &plain)).ends_with("ours"));
    let mut link = tar::Header::new_gnu();
    link.set_path("app/file").unwrap();
    link.set_entry_type(tar::EntryType::Symlink);
    link.set_link_name("/etc/passwd").unwrap();
    link.set_size(0);
    link.set_cksum();
    let mut builder = tar::Builder::new(Vec::new());
    builder.append(&link, &b""[..]).unwrap();
    let link = builder.into_inner().unwrap();
    let mut outside = plain.clone();
    outside[..8].copy_from_slice(b"../../fi");
    let below = tar_of(&[("app/file", ""), ("app/file/below", "")]);
    let huge = vec![b'x'; 100 << 20];
    for (what, bytes, why) in [
        ("..", asked("app/..", "r", length(&plain), &plain), "can't be the path"),
        ("absolute", asked("/etc", "r", length(&plain), &plain), "can't be the path"),
        ("option", asked("app", "--enable-exec", length(&plain), &plain), "can't be the name"),
        ("symlink", asked("app", "r", length(&link), &link), "isn't a plain file"),
        ("outside", asked("app", "r", length(&outside), &outside), "can't be"),
        ("below a file", asked("app", "r", length(&below), &below), "another file is below it"),
        ("100 MB of nothing", asked("app", "r", length(&huge), &huge), "Refused or read"),
        ("too many bytes", asked("app", "r", 1 << 40, &plain), "are more than"),
        ("garbage", vec![b'\n'; 10_000], "longer than 64 KiB"),
        ("not JSON", [&4_u32.to_be_bytes()[..], b"????"].concat(), "can't be read"),
        (
            "more than asked",
            asked("app", "r", length(&plain), &[&plain[..], b"more"].concat()),
            "more than the request",
        ),
    ] {
        let refused = answer(socket, &bytes);
        let fits = refused.contains(why) || (why == "Refused or read" && refused.contains("can't be read"));
        assert!((refused.contains("refused") || refused.contains("failed")) && fits, "{what}: {refused}");
    }
    let output = served.client.render(&request(&[("app/file", "ours")], "app")).await.unwrap();
    assert_eq!(output, b"ours");
    assert_eq!(served.left(), 0);
}

#[tokio::test]
async fn what_is_too_big_is_refused_before_it_is_sent() {
    let mut contents = Contents::default();
    contents.add("a", vec![0; 60 << 20], false).unwrap();
    assert!(contents.add("b", vec![0; 40 << 20], false).is_err());
}

#[tokio::test]
async fn silent_clients_are_cut_off_and_others_are_served() {
    let Some(served) = echo() else { return };
    let plain = tar_of(&[("app/file", "ours")]);
    let half = asked("app", "r", plain.len() as u64, &plain[..100]);
    let silent: Vec<UnixStream> = (0..6)
        .map(|number| {
            let mut stream = UnixStream::connect(served.client.socket()).unwrap();
            stream.write_all(if number % 2 == 0 { &half } else { &[] }).unwrap();
            stream
        })
        .collect();
    let began = Instant::now();
    let output = served.client.render(&request(&[("app/file", "ours")], "app")).await.unwrap();
    assert_eq!(output, b"ours");
    assert!(began.elapsed() < Duration::from_secs(40));
    for mut stream in silent {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        assert!(String::from_utf8_lossy(&said).contains("didn't arrive within"), "{said:?}");
    }
}

#[tokio::test]
async fn a_renderer_that_is_killed_is_away_until_it_is_back() {
    let Some(mut served) =
        Served::start(|folder| script(folder, "[ -e \"$2/wait\" ] && exec sleep 3133.5; cat \"$2/file\""))
    else {
        return;
    };
    let client = served.client.clone();
    let waiting =
        tokio::spawn(async move { client.render(&request(&[("app/wait", ""), ("app/file", "")], "app")).await });
    while !runs("3133.5") {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    served.kill();
    let outcome = waiting.await.unwrap();
    assert!(matches!(outcome, Err(RenderError::Away(_))), "{outcome:?}");
    // The program goes with its renderer.
    goes("3133.5").await;
    let outcome = served.client.render(&request(&[("app/file", "x")], "app")).await;
    let Err(RenderError::Away(why)) = outcome else { panic!("{outcome:?}") };
    assert!(why.contains("renderer.sock` doesn't answer"), "{why}");
    served.start_again();
    assert_eq!(served.client.render(&request(&[("app/file", "x")], "app")).await.unwrap(), b"x");
    // What the killed one left is gone.
    assert_eq!(served.left(), 0);
}

#[tokio::test]
async fn a_hub_that_hangs_up_ends_its_rendering() {
    let Some(served) = Served::start(|folder| script(folder, "[ \"$1\" = version ] || sleep 3134.5")) else { return };
    let plain = tar_of(&[("app/file", "")]);
    let mut stream = UnixStream::connect(served.client.socket()).unwrap();
    stream.write_all(&asked("app", "r", plain.len() as u64, &plain)).unwrap();
    let began = Instant::now();
    while !runs("3134.5") {
        assert!(began.elapsed() < Duration::from_secs(20));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(stream);
    goes("3134.5").await;
}

async fn goes(word: &str) {
    let began = Instant::now();
    while runs(word) {
        assert!(began.elapsed() < Duration::from_secs(20), "{word} stays");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn two_at_once_see_nothing_of_each_other() {
    let look = "ls \"$2/../../..\" \"$2/../../../\"*/source/app 2>/dev/null; cat \"$2/file\"; sleep 1";
    let Some(served) = Served::start(|folder| script(folder, look)) else { return };
    let one = |text: &'static str| {
        let client = served.client.clone();
        async move { client.render(&request(&[("app/file", text)], "app")).await.unwrap() }
    };
    let (first, second) = tokio::join!(one("first"), one("second"));
    assert_eq!((first.as_slice(), second.as_slice()), (&b"first"[..], &b"second"[..]));
}

#[tokio::test]
async fn the_socket_is_for_its_user_and_group_and_a_second_renderer_is_refused() {
    let Some(served) = echo() else { return };
    let mode = std::fs::metadata(served.client.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o660);
    let second = |socket: &Path| {
        let mut renderer = Command::new(HUB);
        renderer.args(["renderer", "--socket"]).arg(socket).arg("--folder").arg(served.folder.path());
        let output = renderer.output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let said = second(served.client.socket());
    assert!(said.contains("another renderer serves on"), "{said}");
    let file = served.folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let said = second(&file);
    assert!(said.contains("there is a file of that name"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "kept");
}

#[tokio::test]
async fn check_config_says_whether_the_renderer_answers() {
    let Some(mut served) =
        Served::start(|folder| script(folder, "[ \"$1\" = version ] && echo v5.8.1 && echo second line"))
    else {
        return;
    };
    let config = served.folder.path().join("hub.toml");
    std::fs::write(&config, "[packages]\nrenderer = \"renderer.sock\"\n").unwrap();
    let check = || {
        let output = Command::new(HUB).args(["check-config", "--config"]).arg(&config).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let said = check();
    assert!(
        said.contains("renderer.sock answers.\n# kustomize: v5.8.1\n# helm: there is no `/nowhere/helm`\n"),
        "{said}"
    );
    served.kill();
    let said = check();
    assert!(said.contains("kustomize and helm can't be run: the renderer at") && said.contains("# Hint: "), "{said}");
}
