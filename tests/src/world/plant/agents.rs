//! The plant's boxes: how they come in, and what is on their disks.

use std::thread;

use crate::lab::root_agent::RootAgent;
use crate::lab::site::Site;

use super::{Plant, assignment};

/// Joining is a few processes each; more at once would only wait for each other.
const AT_ONCE: usize = 4;

impl Plant {
    /// Lets so many boxes join, named `<environment>-<type>-<number>`, and starts them.
    pub fn add(&mut self, environment: &str, cluster_type: &str, labels: &str, count: usize) {
        let known = self.boxes(environment).filter(|name| name.contains(cluster_type)).count();
        let names: Vec<String> =
            (known..known + count).map(|number| format!("{environment}-{cluster_type}-{}", number + 1)).collect();
        let token = self.join_token(environment, cluster_type, labels, count);
        let start = |name: &String| RootAgent::start(name, &token).expect("the program is there");
        let share = count.div_ceil(AT_ONCE).max(1);
        let started = thread::scope(|scope| {
            let some = |names: &'_ [String]| names.iter().map(start).collect::<Vec<_>>();
            let threads: Vec<_> = names.chunks(share).map(|names| scope.spawn(move || some(names))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        self.agents.extend(started);
    }

    /// One box more with a cable that can be cut.
    pub fn add_with_cable(&mut self, environment: &str, cluster_type: &str, labels: &str, name: &str) {
        let token = self.join_token(environment, cluster_type, labels, 1);
        let hub = self.world.hub.places().agents;
        self.agents.push(RootAgent::start_with_cable(name, &token, hub).expect("the program is there"));
    }

    /// Boxes of a site, each in a network of its own, named `<environment>-<type>-<number>`; they have joined and don't run.
    pub fn add_site(&mut self, site: &Site, environment: &str, cluster_type: &str, count: usize) {
        let uses = count.to_string();
        let token = self.world.kedge.run([
            "token",
            "create",
            "--environment",
            environment,
            "--cluster-type",
            cluster_type,
            "--uses",
            &uses,
            "--site",
            "hall-7",
        ]);
        for host in 0..count {
            let name = format!("{environment}-{cluster_type}-{}", host + 1);
            let mut agent = RootAgent::join(&name, token.trim(), None).expect("the program is there");
            agent.write("etc/kedge/agent.toml", "[peers]\ninterfaces = [\"lan0\"]\n");
            agent.move_to(&site.namespace(host));
            self.agents.push(agent);
        }
    }

    pub fn join_token(&self, environment: &str, cluster_type: &str, labels: &str, uses: usize) -> String {
        let uses = uses.to_string();
        let mut arguments =
            vec!["token", "create", "--environment", environment, "--cluster-type", cluster_type, "--uses", &uses];
        if !labels.is_empty() {
            arguments.extend(["--labels", labels]);
        }
        self.world.kedge.run(arguments).trim().to_owned()
    }

    /// Its cable is mended, and it starts anew: after a while without the hub it would ask again in minutes only.
    pub fn comes_back(&mut self, name: &str) {
        let agent = self.agent(name);
        agent.stop();
        agent.cable.as_ref().expect("it has a cable of its own").mend();
        agent.start_again();
    }

    #[track_caller]
    pub fn agent(&mut self, name: &str) -> &mut RootAgent {
        self.agents.iter_mut().find(|agent| agent.name() == name).unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Names of an environment's boxes, in the order in which they came.
    pub fn boxes(&self, environment: &str) -> impl Iterator<Item = &str> {
        let prefix = format!("{environment}-");
        self.agents.iter().map(RootAgent::name).filter(move |name| name.starts_with(&prefix))
    }

    /// The application's text on a box.
    #[track_caller]
    pub fn text_on(&self, name: &str) -> Option<String> {
        let environment = name.split('-').next().unwrap_or_default();
        let text = self.find(name).read(&format!("srv/{}/app.txt", assignment(environment)))?;
        Some(text.trim_end().to_owned())
    }

    /// The platform's greeting on a box.
    #[track_caller]
    pub fn greeting_on(&self, name: &str) -> Option<String> {
        self.setting_on(name, "GREETING")
    }

    /// A value of the platform's configuration on a box.
    #[track_caller]
    pub fn setting_on(&self, name: &str, key: &str) -> Option<String> {
        let environment = name.split('-').next().unwrap_or_default();
        self.setting_of(name, assignment(environment), key)
    }

    /// The same of any assignment.
    #[track_caller]
    pub(super) fn setting_of(&self, name: &str, assignment: &str, key: &str) -> Option<String> {
        let text = self.find(name).read(&format!("etc/kedge/workloads/{assignment}/platform-config.env"))?;
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches(['"', '\'']).to_owned())
    }

    #[track_caller]
    pub(super) fn find(&self, name: &str) -> &RootAgent {
        self.agents.iter().find(|agent| agent.name() == name).unwrap_or_else(|| panic!("there is no {name}"))
    }
}
