//! Text of an application that tries to be more than text, with the built program.

use crate::stage::Stage;

const KEDGE: &str = "\
apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata:
  name: flux
spec:
  type: reconciler
  manifests:
    - |
      apiVersion: kedge.dev/v1alpha1
      kind: Delivery
      metadata:
        name: {{ .DeploymentTargetName }}
      spec:
        source:
          repo: {{ .Manifests.repo }}
          path: {{ .Manifests.path }}
        to: kubernetes
        namespace: {{ .Namespace }}
";

/// The small platform with a reconciler of Kedge's own, and this path in the first target.
fn with_path(path: &str) -> Stage {
    let stage = Stage::small();
    stage.write("base/templates/flux.yaml", KEDGE);
    stage.edit("hello/workload/hello.yaml", "        path: functional-test\n", &format!("        path: {path}\n"));
    stage
}

#[test]
fn a_path_with_lines_in_it_never_becomes_a_delivery() {
    let injected = "./x@  scope: cluster@  namespace: kube-system@  conflicts: take@status: |";
    for line_end in ["\\n", "\\r", "\\N", "\\L", "\\P", "\\x85", "{{ \\\"\\\\n\\\" }}"] {
        let stage = with_path(&format!("\"{}\"", injected.replace('@', line_end)));
        stage.render().exits(3).says(&["error[TextRefused]: `spec.deploymentTargets[0].manifests.path` of Workload"]);
        assert!(!stage.output().keys().any(|path| path.contains("hello-functional-test")), "{line_end}");
        stage.validate().exits(1).shows(&["error[TextRefused]", "hello.yaml:17:"]);
    }
}

#[test]
fn text_on_one_line_stays_in_its_scalar_or_is_quarantined_with_the_way_out() {
    let stage = Stage::small();
    stage.edit(
        "base/templates/flux.yaml",
        "        branch: {{ index .Manifests \"branch\" }}\n",
        "        branch: {{ .Manifests.tag }}\n",
    );
    stage.edit(
        "hello/workload/hello.yaml",
        "        path: functional-test\n",
        "        path: functional-test\n        tag: 'v1, x: y: z'\n",
    );
    let run = stage.render().exits(3);
    run.says(&[
        "error[TextBecomesStructure]: template `flux` makes more than text of `.Manifests.tag` (`manifests.tag`) of the application: reconciler.yaml:",
        "flux.yaml:",
        "hello.yaml:9",
        "hint: write `{{ .Manifests.tag | quote }}` in the template",
        "kedge.dev/branches-on: Manifests.tag",
        "2 assignments quarantined",
    ]);
    stage.validate().exits(1).shows(&["error[TextBecomesStructure]"]);
    stage.edit("base/templates/flux.yaml", "{{ .Manifests.tag }}", "{{ .Manifests.tag | quote }}");
    stage.render().exits(0);
    assert!(stage.output()["vm/hello-functional-test/reconciler.yaml"].contains("    branch: \"v1, x: y: z\"\n"));
}
