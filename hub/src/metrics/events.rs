//! How the webhooks that go out are doing, by the names that the configuration gives their destinations. Pure;
//! called at a scrape.

use kedge_model::wire::Timestamp;

use super::series::{Measure, Series, age};
use crate::store::events::Delivery;

pub fn series(deliveries: &[Delivery], now: Timestamp) -> Vec<Series> {
    let mut waiting = Series::new(
        "event_waiting_oldest",
        Measure::Seconds,
        "For how long the oldest event that a destination hasn't taken has waited; 0: none waits",
    );
    let mut failing = Series::new(
        "event_failing",
        Measure::Seconds,
        "For how long a destination of events has taken none; 0: it takes them",
    );
    let mut sent =
        Series::new("events_sent", Measure::Total, "Events that a destination has taken since it was configured");
    let mut refused = Series::new(
        "events_refused",
        Measure::Total,
        "Events that a destination refused for so long that they were given up",
    );
    for delivery in deliveries {
        let labels = [("destination", delivery.name.as_str())];
        waiting = waiting.with(&labels, age(delivery.waiting_since, now));
        failing = failing.with(&labels, age(delivery.failing_since, now));
        sent = sent.with(&labels, delivery.sent);
        refused = refused.with(&labels, delivery.given_up);
    }
    vec![waiting, failing, sent, refused]
}
