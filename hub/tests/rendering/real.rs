//! The real programs, where this machine has them: both ways give the same bytes.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use kedge_hub::pack::installed::Installed;
use kedge_hub::pack::request::{Program, RenderError, Request};

use crate::stand::{request, skip, stands};

/// The folder of a program that the lab built, or where programs are.
fn built(program: Program) -> PathBuf {
    let folder = std::env::var_os(format!("KEDGE_{}", program.name().to_uppercase()));
    folder.map_or_else(|| program.name().into(), |folder| Path::new(&folder).join(program.name()))
}

fn installed() -> Installed {
    Installed { kustomize: built(Program::Kustomize), helm: built(Program::Helm) }
}

/// By each way.
async fn render_really(program: Program, files: &[(&str, &str)], path: &str) -> Vec<Result<String, RenderError>> {
    if installed().find(program).is_none() {
        skip(&format!("there is no {}", program.name()));
        return Vec::new();
    }
    let mut outcomes = Vec::new();
    for stand in stands(|_| installed()).await {
        // As if nobody had looked at the kustomization before.
        let request = Request { program, ..request(files, path) };
        outcomes.push(stand.render(request).await.map(|output| String::from_utf8(output).unwrap()));
    }
    outcomes
}

fn same(outcomes: Vec<Result<String, RenderError>>) -> Option<String> {
    let outputs: Vec<String> = outcomes.into_iter().map(Result::unwrap).collect();
    assert!(outputs.iter().all(|output| output == &outputs[0]), "{outputs:?}");
    outputs.into_iter().next()
}

const SERVICE: &str = "apiVersion: v1\nkind: Service\nmetadata:\n  name: hello\n";

#[tokio::test]
async fn the_real_kustomize_renders_an_overlay_within_its_limits() {
    let files = [
        ("base/service.yaml", SERVICE),
        ("base/kustomization.yaml", "resources: [service.yaml]\n"),
        ("overlay/kustomization.yaml", "resources: [../base]\nnamePrefix: x-\n"),
    ];
    let Some(output) = same(render_really(Program::Kustomize, &files, "overlay").await) else { return };
    assert!(output.contains("name: x-hello"), "{output}");
}

#[tokio::test]
async fn the_real_kustomize_reads_no_other_tenants_mirror_though_its_field_was_not_checked() {
    let folder = tempfile::tempdir().unwrap();
    let mirror = folder.path().join("other");
    std::fs::create_dir_all(mirror.join("deploy")).unwrap();
    std::fs::write(mirror.join("deploy/kustomization.yaml"), "resources: [s.yaml]\n").unwrap();
    std::fs::write(mirror.join("deploy/s.yaml"), SERVICE).unwrap();
    let git = "git init -q . && git add . && git -c user.name=a -c user.email=a@b commit -qm x";
    match Command::new("sh").args(["-c", git]).current_dir(&mirror).status() {
        Ok(status) if status.success() => {}
        _ => return skip("there is no git"),
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let loopback = format!("http://{}/x.yaml", listener.local_addr().unwrap());
    let mirror = mirror.display();
    for resource in [
        format!("file://{mirror}//deploy"),
        format!("{mirror}/deploy"),
        format!("{mirror}/.git/config"),
        loopback,
        "/etc/hostname".to_owned(),
    ] {
        let text = format!("resources: ['{resource}']\nnamePrefix: x-\n");
        for outcome in render_really(Program::Kustomize, &[("app/kustomization.yaml", &text)], "app").await {
            assert!(matches!(outcome, Err(RenderError::Failed(_))), "{resource}: {outcome:?}");
            assert!(listener.accept().is_err(), "{resource} reached this machine");
        }
    }
}

#[tokio::test]
async fn the_real_helm_renders_a_chart_with_its_release_and_namespace() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\n";
    let files =
        [("chart/Chart.yaml", "apiVersion: v2\nname: c\nversion: 0.1.0\n"), ("chart/templates/map.yaml", template)];
    let Some(output) = same(render_really(Program::Helm, &files, "chart").await) else { return };
    assert!(output.contains("name: hello") && output.contains("namespace: dev-drone-hello"), "{output}");
}
