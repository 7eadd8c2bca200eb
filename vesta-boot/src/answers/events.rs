//! Events of leases.

use serde::Serialize;

/// Event of a machine ID.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// Sequence number, from 1.
    pub number: u64,
    /// When it happened, by the server's clock.
    pub moment: String,
    /// Kind of event.
    pub kind: &'static str,
    /// Machine ID; if the event concerns none, the one held last.
    pub machine: u64,
    /// One sentence for people.
    pub text: String,
}

impl From<vesta_service::lease::Event> for Event {
    fn from(event: vesta_service::lease::Event) -> Self {
        Self {
            number: event.number,
            moment: event.at.to_string(),
            kind: event.kind.name(),
            machine: event.machine,
            text: event.text,
        }
    }
}

/// The events after one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Events {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// Number of the last one.
    pub last_number: u64,
}
