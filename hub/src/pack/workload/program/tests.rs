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
    if !walled("a_program_sees_its_copy_and_nothing_of_our_environment").await {
        return;
    }
    let seen = render("[ \"$1\" = build ] && cat \"$2/kustomization.yaml\" && env | cut -d= -f1 | sort | tr '\\n' ' '")
        .await
        .unwrap();
    assert!(seen.starts_with("namePrefix: x-\n"), "{seen}");
    assert!(!seen.contains("CARGO") && !seen.contains("USER"), "{seen}");
}

/// A wall that isn't there can't be tried; on such a machine nothing is run at all.
async fn walled(test: &str) -> bool {
    match Sandbox::find().await {
        Ok(_) => true,
        Err(lack) => {
            println!("KEDGE-SKIP pack::workload::program::tests::{test}: {lack}");
            false
        }
    }
}

#[tokio::test]
async fn a_program_reaches_neither_the_network_nor_this_machine() {
    if !walled("a_program_reaches_neither_the_network_nor_this_machine").await {
        return;
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reach = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' 2>/dev/null && echo reached; echo tried");
    assert_eq!(render(&reach).await.unwrap(), "tried\n");
}

#[tokio::test]
async fn a_program_sees_its_source_alone() {
    if !walled("a_program_sees_its_source_alone").await {
        return;
    }
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("mirror"), "of another tenant").unwrap();
    let own = std::process::id();
    let look = format!(
        "cat {}/mirror /etc/passwd /proc/{own}/environ /var/lib/kedge-hub/hub.db 2>/dev/null; kill -0 {own} 2>/dev/null && echo killed; \
         touch /source/x /x /dev/x 2>/dev/null && echo wrote; id -u; echo /*; ls /source",
        secret.path().display()
    );
    let seen = render(&look).await.unwrap();
    assert!(!seen.contains("tenant") && !seen.contains("root:") && !seen.contains("killed"), "{seen}");
    assert!(!seen.contains("wrote"), "{seen}");
    let lines: Vec<&str> = seen.lines().collect();
    let [user, top, source] = lines.as_slice() else { panic!("{seen}") };
    assert_eq!((*user, *source), ("65534", "app"));
    let known = ["/bin", "/dev", "/lib", "/lib32", "/lib64", "/program", "/source", "/tmp", "/usr"];
    assert!(top.split(' ').all(|name| known.contains(&name)), "{top}");
}

#[tokio::test]
async fn without_a_sandbox_nothing_is_run() {
    let folder = tempfile::tempdir().unwrap();
    let job = job_of(&[("app/x", "")]);
    for (lack, hint) in [
        (NoSandbox::Missing, "install bubblewrap"),
        (NoSandbox::Refused("No permissions".to_owned()), "user namespaces"),
    ] {
        let Fault::Quarantine(problems) = no_sandbox(&job, &lack) else { panic!() };
        assert_eq!(problems[0].code, "SandboxMissing");
        assert!(problems[0].hint.as_ref().unwrap().contains(hint), "{problems:?}");
    }
    drop(folder);
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
    if !walled("what_a_program_complains_of_is_said").await {
        return;
    }
    let problem = render("echo 'no such base' >&2; exit 3").await.unwrap_err();
    assert_eq!(problem.code, "RenderingFailed");
    assert!(problem.message.contains("no such base"), "{}", problem.message);
}

#[tokio::test]
async fn endless_output_is_cut() {
    if !walled("endless_output_is_cut").await {
        return;
    }
    let started = Instant::now();
    let problem = render("yes x").await.unwrap_err();
    assert!(problem.message.contains("more than 16 MiB"), "{}", problem.message);
    assert!(started.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn memory_is_bounded() {
    if !walled("memory_is_bounded").await {
        return;
    }
    let problem = render("head -c 6000000000 /dev/zero | tail").await;
    assert!(problem.is_err());
}

/// The real programs, where this machine has them.
async fn render_really(program: Program, files: &[(&str, &str)], path: &str) -> Option<String> {
    match try_really(program, files, path).await? {
        Ok(output) => Some(output),
        Err(problem) => panic!("{problem:?}"),
    }
}

/// The folder of a program that the lab built, or where programs are.
fn built(program: Program) -> PathBuf {
    let folder = std::env::var_os(format!("KEDGE_{}", program.name().to_uppercase()));
    folder.map_or_else(|| program.name().into(), |folder| Path::new(&folder).join(program.name()))
}

async fn try_really(program: Program, files: &[(&str, &str)], path: &str) -> Option<Result<String, Problem>> {
    if find(&built(program)).is_none() {
        println!("KEDGE-SKIP pack::workload::program: there is no {}", program.name());
        return None;
    }
    if !walled("try_really").await {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let programs = Programs::new(&built(Program::Kustomize), &built(Program::Helm), folder.path().to_owned());
    // As if nobody had looked at the kustomization before.
    let job = Job { program, path: path.to_owned(), ..job_of(files) };
    match programs.render(job, "hello", "dev-drone-hello").await {
        Ok(output) => Some(Ok(String::from_utf8(output).unwrap())),
        Err(Fault::Quarantine(mut problems)) => Some(Err(problems.remove(0))),
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
async fn the_real_kustomize_reads_no_other_tenants_mirror_though_its_field_was_not_checked() {
    let folder = tempfile::tempdir().unwrap();
    let other = crate::git::testing::Remote::new(folder.path(), "other");
    other.commit("main", &[("deploy/kustomization.yaml", "resources: [s.yaml]\n"), ("deploy/s.yaml", SERVICE)]);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let loopback = format!("http://{}/x.yaml", listener.local_addr().unwrap());
    let mirror = other.path();
    for resource in
        [format!("file://{mirror}//deploy"), format!("{mirror}/config"), loopback, "/etc/hostname".to_owned()]
    {
        let text = format!("resources: ['{resource}']\nnamePrefix: x-\n");
        let Some(outcome) = try_really(Program::Kustomize, &[("app/kustomization.yaml", &text)], "app").await else {
            return;
        };
        let problem = outcome.unwrap_err();
        assert_eq!(problem.code, "RenderingFailed", "{resource}");
        assert!(listener.accept().is_err(), "{resource} reached this machine");
    }
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
