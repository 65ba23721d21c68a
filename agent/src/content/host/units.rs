//! A HostWorkload's units, and the drop-ins that put each of them into the namespace's slice and, where the workload brought the unit
//! itself, under the namespace's user.

use std::collections::{BTreeMap, BTreeSet};

use kedge_host_policy::judge::Judgement;
use kedge_host_policy::{DROP_IN, unit_name};
use kedge_model::kinds::HostWorkload;

use super::Making;
use super::namespace::UNITS;
use crate::goal::{Part, UnitGoal};
use crate::record::Failure;

/// In `restartOn`: the platform configuration, whatever its files are called.
const PLATFORM: &str = "platform-config";

impl Making<'_> {
    pub fn units(&mut self, workload: &HostWorkload, judgement: &Judgement) -> Result<(), Failure> {
        let brought = &judgement.brought;
        let mut seen = BTreeSet::new();
        let allowed = workload.units.iter().zip(&judgement.units).filter(|(_, allowed)| **allowed);
        for (unit, _) in allowed {
            if !seen.insert(unit.name.as_str()) {
                return Err(Failure::new("BadPackage", format!("the unit `{}` is wanted twice", unit.name)));
            }
            if unit.name.contains("@.") {
                return Err(Failure::new(
                    "BadPackage",
                    format!("`{}` is a template: name an instance of it", unit.name),
                ));
            }
            let restart_on = self.restart_on(&unit.name, &unit.restart_on, brought);
            let name = unit.name.clone();
            self.goal.units.push(UnitGoal { name, enabled: unit.enabled, running: unit.running, restart_on });
        }
        if self.paths.is_host() {
            self.own_units(brought);
            self.drop_ins(brought)?;
        }
        Ok(())
    }

    /// Units that must be the workload's own on the host too, whatever their names say.
    fn own_units(&mut self, brought: &BTreeMap<String, Vec<String>>) {
        let named = self.goal.units.iter().map(|unit| &unit.name);
        // Those that its files start or stop are there already.
        let own = named.chain(brought.keys()).chain(&self.goal.own_units).filter(|unit| !self.tenant.names_unit(unit));
        self.goal.own_units = own.filter(|unit| unit_name::check(unit).is_ok()).map(|unit| instance_of(unit)).collect();
    }

    /// What the workload asked for, and the unit's own files: a changed command line runs only after a restart.
    fn restart_on(&self, name: &str, asked: &[String], brought: &BTreeMap<String, Vec<String>>) -> Vec<String> {
        let mut all = BTreeSet::new();
        for word in asked {
            match word == PLATFORM || word.trim_end_matches('/') == self.tenant.settings() {
                true => all.extend(self.platform_paths()),
                false => _ = all.insert(word.clone()),
            }
        }
        for unit in [Some(name.to_owned()), unit_name::template_of(name)].into_iter().flatten() {
            all.extend(brought.get(&unit).into_iter().flatten().cloned());
            if self.paths.is_host() && self.drop_in(&unit, brought).is_some() {
                all.insert(path_of_drop_in(&unit));
            }
        }
        all.into_iter().collect()
    }

    fn drop_ins(&mut self, brought: &BTreeMap<String, Vec<String>>) -> Result<(), Failure> {
        let named = self.goal.units.iter().map(|unit| unit.name.clone());
        let units: BTreeSet<String> = named.chain(brought.keys().cloned()).collect();
        for unit in units {
            let Some(text) = self.drop_in(&unit, brought) else { continue };
            self.add_made(path_of_drop_in(&unit), &text, Part::Workload)?;
        }
        Ok(())
    }

    /// The text of the drop-in that the agent makes for a unit; none: it makes none.
    fn drop_in(&self, unit: &str, brought: &BTreeMap<String, Vec<String>>) -> Option<String> {
        // A drop-in alone says what runs as well as a unit's file does.
        let is_tenants = brought.contains_key(unit)
            || unit_name::template_of(unit).is_some_and(|template| brought.contains_key(&template));
        self.tenant.drop_in(unit, is_tenants && !self.tenant.names_unit(unit))
    }
}

fn path_of_drop_in(unit: &str) -> String {
    format!("{UNITS}/{unit}.d/{DROP_IN}")
}

/// systemd tells nothing of a template, but of its instances, whether they are used or not.
fn instance_of(unit: &str) -> String {
    unit.replace("@.", "@kedge.")
}
