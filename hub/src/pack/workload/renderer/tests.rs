//! The renderer without its processes: what is refused before anything runs. With them: hub/tests/rendering.rs.

use super::server::{self, Options, ServerError};
use super::*;
use crate::pack::workload::installed::Installed;

/// This test's program isn't a hub: what the renderer starts to prove itself proves nothing.
#[tokio::test]
async fn a_renderer_without_its_proof_serves_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("renderer.sock");
    let installed = Installed { kustomize: "kustomize".into(), helm: "helm".into() };
    let options = Options { socket: socket.clone(), installed, folder: folder.path().join("renderings") };
    let (_stop, stopped) = tokio::sync::watch::channel(false);
    let outcome = server::serve(options, stopped).await;
    assert!(matches!(outcome, Err(ServerError::NotEnclosed(_))), "{outcome:?}");
    assert!(!socket.exists());
}

#[tokio::test]
async fn heads_are_bounded_and_strict() {
    let read = async |bytes: &[u8]| wire::head::<Question>(&mut &*bytes).await.map_err(|error| error.to_string());
    let framed = |json: &str| [&u32::try_from(json.len()).unwrap().to_be_bytes()[..], json.as_bytes()].concat();
    assert_eq!(read(&framed(r#"{"ask":"programs"}"#)).await, Ok(Question::Programs {}));
    for (bytes, why) in [
        (framed(r#"{"ask":"programs","more":1}"#), "unknown field"),
        (framed(r#"{"ask":"shell"}"#), "unknown variant"),
        (
            framed(r#"{"ask":"render","program":"sh","path":"","release":"","namespace":"","bytes":0}"#),
            "unknown variant",
        ),
        (framed("{"), "can't be read"),
        (vec![0xff; 100], "longer than 64 KiB"),
        (framed(r#"{"ask":"programs"}"#)[..10].to_vec(), "end of file"),
    ] {
        let refused = read(&bytes).await.unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }
    assert!(wire::body(&mut &[0; 10][..], 11, 20).await.is_err(), "less than promised");
    assert!(wire::body(&mut &[0; 10][..], 10, 9).await.is_err(), "more than allowed");
}
