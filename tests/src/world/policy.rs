//! A PromotionPolicy that a test writes, as YAML on `main`: quick by default, where the kind's own defaults are careful.

use std::fmt::Write as _;

/// The whole policy. Fields of environments and rings are lines of inline YAML: `soak: 2s`.
#[derive(Debug, Clone)]
pub struct Policy {
    pub external: bool,
    pub environments: Vec<Stage>,
}

/// An environment of the chain.
#[derive(Debug, Clone)]
pub struct Stage {
    pub name: String,
    pub lines: Vec<String>,
    pub rings: Vec<RingText>,
}

/// One ring: its name and its lines.
#[derive(Debug, Clone)]
pub struct RingText {
    pub name: String,
    pub lines: Vec<String>,
}

/// Where the policy is, on main.
pub const FILE: &str = "promotion.yaml";

/// Tests wait for nothing that they don't test.
const QUICK: [&str; 3] = ["soak: 0s", "gate: {reached: 100%}", "maxUnavailable: 100%"];

impl Policy {
    /// A chain of these environments in their order, each with one ring.
    pub fn chain(names: &[&str]) -> Policy {
        let stage = |name: &&str| Stage {
            name: (*name).to_owned(),
            lines: QUICK.iter().map(|line| (*line).to_owned()).collect(),
            rings: Vec::new(),
        };
        Policy { external: false, environments: names.iter().map(stage).collect() }
    }

    #[must_use]
    pub fn external(mut self) -> Policy {
        self.external = true;
        self
    }

    /// Sets fields of an environment; a field that it has is replaced.
    #[must_use]
    pub fn with(mut self, environment: &str, lines: &[&str]) -> Policy {
        replace(&mut self.stage(environment).lines, lines);
        self
    }

    /// Adds a ring to an environment, after those that it has.
    #[must_use]
    pub fn ring(mut self, environment: &str, name: &str, lines: &[&str]) -> Policy {
        let mut ring = RingText { name: name.to_owned(), lines: Vec::new() };
        replace(&mut ring.lines, lines);
        self.stage(environment).rings.push(ring);
        self
    }

    fn stage(&mut self, environment: &str) -> &mut Stage {
        self.environments.iter_mut().find(|stage| stage.name == environment).expect("an environment of the chain")
    }

    pub fn yaml(&self) -> String {
        let mut text =
            "apiVersion: kedge.dev/v1alpha1\nkind: PromotionPolicy\nmetadata:\n  name: promotion\nspec:\n".to_owned();
        let promoter = if self.external { "external" } else { "kedge" };
        _ = writeln!(text, "  promoter: {promoter}\n  environments:");
        for stage in &self.environments {
            _ = writeln!(text, "    - name: {}", stage.name);
            stage.lines.iter().for_each(|line| _ = writeln!(text, "      {line}"));
            if !stage.rings.is_empty() {
                _ = writeln!(text, "      rings:");
            }
            for ring in &stage.rings {
                _ = writeln!(text, "        - name: {}", ring.name);
                ring.lines.iter().for_each(|line| _ = writeln!(text, "          {line}"));
            }
        }
        text
    }
}

/// The later line of a field wins.
fn replace(lines: &mut Vec<String>, with: &[&str]) {
    for line in with {
        let field = line.split(':').next().unwrap_or_default();
        lines.retain(|known| known.split(':').next() != Some(field));
        lines.push((*line).to_owned());
    }
}
