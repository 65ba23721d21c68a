//! What becomes of a rendering that can't be made. What programs see and their limits: hub/tests/rendering.rs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use super::*;

fn job_of(files: &[(&str, &str)]) -> Job {
    let mut contents = Contents::default();
    for (path, text) in files {
        contents.add(path, text.as_bytes().to_vec(), false).unwrap();
    }
    let origin = crate::pack::platform::origin("https://h/r", "main", "c", "app");
    Job {
        program: Program::Kustomize,
        root: ObjectId::null(gix::hash::Kind::Sha1),
        path: "app".to_owned(),
        origin,
        files: contents,
    }
}

fn packages(kustomize: &Path, renderer: Option<PathBuf>) -> config::Packages {
    config::Packages {
        folder: None,
        keep: Duration::ZERO,
        hosts: Vec::new(),
        kustomize: kustomize.to_owned(),
        helm: "/nowhere/helm".into(),
        renderer,
    }
}

async fn problem(programs: &Programs) -> Problem {
    let rendered = programs.render(job_of(&[("app/x", "")]), "r", "n").await;
    let Err(Fault::Quarantine(mut problems)) = rendered else { panic!("{rendered:?}") };
    problems.remove(0)
}

#[test]
fn without_a_sandbox_nothing_is_run() {
    for (lack, hint) in [
        (NoSandbox::Missing, "install bubblewrap"),
        (NoSandbox::Refused("No permissions".to_owned()), "user namespaces"),
    ] {
        let (code, message, way_out) = no_sandbox("kustomize", "app", &lack);
        assert_eq!(code, "SandboxMissing");
        assert!(message.contains("`app` needs kustomize"), "{message}");
        assert!(way_out.contains(hint) && way_out.contains("packages.renderer"), "{way_out}");
    }
}

#[tokio::test]
async fn a_missing_program_quarantines_and_says_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let programs = Programs::new(&packages(Path::new("/nowhere/kustomize"), None), folder.path().to_owned());
    let problem = problem(&programs).await;
    assert_eq!(problem.code, "ProgramMissing");
    assert!(problem.hint.as_ref().unwrap().contains("install kustomize"));
}

#[tokio::test]
async fn with_a_renderer_the_hub_runs_no_program_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (program, ran) = (folder.path().join("kustomize"), folder.path().join("ran"));
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", ran.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let config = packages(&program, Some(folder.path().join("renderer.sock")));
    let programs = Programs::new(&config, folder.path().join("copies"));
    let problem = problem(&programs).await;
    assert_eq!(problem.code, "RendererAway");
    assert!(problem.hint.as_ref().unwrap().contains("kedge-hub renderer"), "{problem:?}");
    assert!(!ran.exists() && !folder.path().join("copies").exists());
}
