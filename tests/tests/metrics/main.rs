//! The suite `metrics`: what others watch a fleet with. Numbers in a real Prometheus, alerts with promtool, dashboards, and
//! webhooks to real receivers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod alerts;
mod dashboards;
mod events;
mod packaging;
