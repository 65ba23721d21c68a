//! Programs that render: what they see, their limits, and their absence.

use std::time::Instant;

use super::*;

/// A program of our own in place of kustomize.
fn script(folder: &Path, body: &str) -> PathBuf {
    let path = folder.join("kustomize");
    fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

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

async fn render(body: &str) -> Result<String, Problem> {
    let folder = tempfile::tempdir().unwrap();
    let program = script(folder.path(), body);
    let programs = Programs::new(&program, Path::new("helm"), folder.path().join("copies"));
    let rendered = programs.render(job_of(&[("app/kustomization.yaml", "namePrefix: x-\n")]), "r", "n").await;
    let left = fs::read_dir(folder.path().join("copies")).unwrap().count();
    assert_eq!(left, 0, "the copy is gone");
    match rendered {
        Ok(output) => Ok(String::from_utf8(output).unwrap()),
        Err(Fault::Quarantine(mut problems)) => Err(problems.remove(0)),
        Err(Fault::Failed(error)) => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_program_sees_its_copy_and_nothing_of_our_environment() {
    let seen = render("[ \"$1\" = build ] && cat \"$2/kustomization.yaml\" && env | cut -d= -f1 | sort | tr '\\n' ' '")
        .await
        .unwrap();
    assert!(seen.starts_with("namePrefix: x-\n"), "{seen}");
    assert!(!seen.contains("CARGO") && !seen.contains("USER"), "{seen}");
}

#[tokio::test]
async fn a_program_has_no_network() {
    if probe().await == Isolation::Proxies {
        eprintln!("skipped: no network namespaces on this machine");
        return;
    }
    let seen = render("grep : /proc/net/dev | cut -d: -f1; grep -v Iface /proc/net/route; true").await.unwrap();
    // The loopback interface, which is down, and no route.
    assert_eq!(seen.split_whitespace().collect::<Vec<_>>(), ["lo"]);
}

#[tokio::test]
async fn a_missing_program_quarantines_and_says_the_way_out() {
    let folder = tempfile::tempdir().unwrap();
    let programs = Programs::new(Path::new("/nowhere/kustomize"), Path::new("helm"), folder.path().to_owned());
    let Err(Fault::Quarantine(problems)) = programs.render(job_of(&[("app/x", "")]), "r", "n").await else { panic!() };
    assert_eq!(problems[0].code, "ProgramMissing");
    assert!(problems[0].hint.as_ref().unwrap().contains("install kustomize"));
}

#[tokio::test]
async fn what_a_program_complains_of_is_said() {
    let problem = render("echo 'no such base' >&2; exit 3").await.unwrap_err();
    assert_eq!(problem.code, "RenderingFailed");
    assert!(problem.message.contains("no such base"), "{}", problem.message);
}

#[tokio::test]
async fn endless_output_is_cut() {
    let started = Instant::now();
    let problem = render("yes x").await.unwrap_err();
    assert!(problem.message.contains("more than 16 MiB"), "{}", problem.message);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn memory_is_bounded() {
    let problem = render("head -c 6000000000 /dev/zero | tail").await;
    assert!(problem.is_err());
}

#[test]
fn a_kustomization_can_not_lead_out_of_the_repository() {
    for (folder, text, out) in [
        ("overlays/dev", "../../base", false),
        ("overlays/dev", "../../../etc", true),
        ("", "..", true),
        ("a", "name=../../x", true),
        ("a", "../b/../../c", true),
        ("a/b", "x/../../../d", false),
    ] {
        assert_eq!(leaves(text, folder), out, "{folder} {text}");
    }
}

/// The real programs, where this machine has them.
async fn render_really(program: Program, files: &[(&str, &str)], path: &str) -> Option<String> {
    let name = Path::new(program.name());
    if find(name).is_none() {
        println!("KEDGE-SKIP pack::workload::program: there is no {}", program.name());
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = Programs::new(Path::new("kustomize"), Path::new("helm"), folder.path().to_owned());
    let job = Job { program, path: path.to_owned(), ..job_of(files) };
    match programs.render(job, "hello", "dev-drone-hello").await {
        Ok(output) => Some(String::from_utf8(output).unwrap()),
        Err(Fault::Quarantine(problems)) => panic!("{problems:?}"),
        Err(Fault::Failed(error)) => panic!("{error}"),
    }
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: hello\n";

#[tokio::test]
async fn the_real_kustomize_renders_an_overlay_within_its_limits() {
    let files = [
        ("base/service.yaml", SERVICE),
        ("base/kustomization.yaml", "resources: [service.yaml]\n"),
        ("overlay/kustomization.yaml", "resources: [../base]\nnamePrefix: x-\n"),
    ];
    let Some(output) = render_really(Program::Kustomize, &files, "overlay").await else { return };
    assert!(output.contains("name: x-hello"), "{output}");
}

#[tokio::test]
async fn the_real_helm_renders_a_chart_with_its_release_and_namespace() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\n";
    let files =
        [("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"), ("chart/templates/map.yaml", template)];
    let Some(output) = render_really(Program::Helm, &files, "chart").await else { return };
    assert!(output.contains("name: hello") && output.contains("namespace: dev-drone-hello"), "{output}");
}

#[test]
fn what_a_killed_hub_left_is_cleared_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["render-0123", "other"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    Programs::new(Path::new("kustomize"), Path::new("helm"), folder.path().to_owned());
    assert!(!folder.path().join("render-0123").exists() && folder.path().join("other").exists());
}
