//! The hub: reads Git, schedules, publishes, packs, signs, enrols agents, serves desired states and takes in status.
//! The rooms follow the way of a change; `run` puts them together.

pub mod agents;
pub mod airgap;
pub mod api;
pub mod backup;
pub mod catalog;
pub mod causes;
pub mod command;
pub mod compare;
pub mod config;
pub mod connections;
pub mod events;
pub mod git;
pub mod history;
pub mod keys;
pub mod metrics;
pub mod pack;
pub mod platform;
pub mod private;
pub mod promotion;
pub mod publish;
pub mod rollout;
pub mod run;
pub mod state;
pub mod store;
pub mod trial;
pub mod truth;
pub mod walk;
pub mod web;
