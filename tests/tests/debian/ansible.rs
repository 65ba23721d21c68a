//! A cluster type of hosts that Ansible keeps: real `ansible-playbook` runs what the hub published, the agent only observes, and
//! what `kedge-agent report` says is on the hub.

use kedge_tests::lab::await_true;
use kedge_tests::lab::host::Network;
use kedge_tests::lab::image::Flavour;
use kedge_tests::world::SOON;
use kedge_tests::world::line::{FIRST, HOST, Line};

const TEMPLATE: &str = r#"apiVersion: scheduler.kalypso.io/v1alpha1
kind: Template
metadata:
  name: ansible
spec:
  type: reconciler
  manifests:
    - |
      - name: {{ .DeploymentTargetName }}
        hosts: all
        gather_facts: false
        tasks:
          - name: Its folder
            ansible.builtin.file:
              path: /opt/{{ .DeploymentTargetName }}
              state: directory
              mode: "0750"
          - name: Where its manifests are
            ansible.builtin.copy:
              dest: /opt/{{ .DeploymentTargetName }}/source
              content: "{{ .Manifests.branch }} {{ .Manifests.path }}"
"#;

const CLUSTER_TYPE: &str = "apiVersion: scheduler.kalypso.io/v1alpha1
kind: ClusterType
metadata:
  name: ansible-box
  labels:
    region: south
    runs: host
    accelerator: nvidia
spec:
  reconciler: ansible
  namespaceService: kedge-host-namespace
  configType: env
";

#[test]
fn what_ansible_did_with_the_output_of_its_cluster_type_is_on_the_hub() {
    let Some(line) = Line::prepare(Flavour::Ansible, Network::Shared, |_, _| {}) else { return };
    let world = &line.world;
    let control_plane = &world.sample.control_plane;
    let old = control_plane.head("main");
    control_plane.switch("main");
    let main = control_plane.change("templates/ansible.yaml", TEMPLATE);
    control_plane.switch("dev");
    control_plane.change("cluster-types/south/ansible-box/cluster-type.yaml", CLUSTER_TYPE);
    world.sample.edit("dev", "base-repo.yaml", &old, &main);
    let file = format!("ansible-box/{FIRST}/reconciler.yaml");
    await_true(&format!("{file} is published"), SOON, || {
        world.api.generation("dev", "ansible-box").is_some() && world.sample.gitops.read_remote("dev", &file).is_some()
    });
    line.install_agent();
    let token = world.token("ansible-box", &[]).to_string();
    line.host.ok(&["kedge-agent", "join", "--token", &token, "--name", HOST]);

    // What a pipeline of the platform team does: the branch's head, and Ansible on the host.
    let run = || {
        let playbook = world.sample.gitops.read_remote("dev", &file).expect("it stays published");
        line.host.write("/root/playbook.yaml", playbook);
        let ran = line.host.run(&["ansible-playbook", "-i", "localhost,", "-c", "local", "/root/playbook.yaml"]);
        (ran, world.git.head("gitops", "dev").unwrap())
    };
    let report = |revision: &str, result: &str, message: &str| {
        let told = line.agent(&[
            "report",
            "--assignment",
            FIRST,
            "--revision",
            revision,
            "--result",
            result,
            "--message",
            message,
        ]);
        assert_eq!(told.code, 0, "{}{}", told.stdout, told.stderr);
    };
    let await_seen = |condition: &str, message: &str| {
        await_true(&format!("the hub knows that it is {condition}"), SOON, || {
            line.condition(FIRST).is_some_and(|seen| {
                seen["condition"] == condition
                    && (message.is_empty() || seen["message"].as_str().is_some_and(|text| text.contains(message)))
            })
        });
    };

    let (ran, revision) = run();
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(line.host.read(&format!("/opt/{FIRST}/source")).as_deref(), Some("dev ./line-test"));
    report(&revision, "ok", "");
    await_seen("Converged", "");
    assert!(line.host.version_of("tool").is_none(), "the agent itself changes nothing there");
    let status = line.agent(&["status"]);
    assert!(status.stdout.contains(FIRST) && status.stdout.contains("Converged"), "{}", status.stdout);

    // Ansible fails, and says so.
    line.host.sh(&format!("rm -r /opt/{FIRST}; touch /opt/{FIRST}; chattr +i /opt/{FIRST} 2>/dev/null || true"));
    let (ran, revision) = run();
    assert_ne!(ran.code, 0, "{}", ran.stdout);
    report(&revision, "failed", "a file is in the way of the folder");
    await_seen("Failed", "a file is in the way");
}
