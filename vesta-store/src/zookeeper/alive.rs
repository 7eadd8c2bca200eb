//! The liveness znodes: for people, who see in them which owner is connected now. Nothing depends on
//! them, nobody waits for them, and what goes wrong with them is only noted.

use std::sync::Arc;

use vesta_service::Record;
use zookeeper_client::{CreateMode, Error};

use super::format;
use super::link::Session;
use super::records::Place;

/// Follows a change of a record that this session has made.
pub(super) fn show(session: &Arc<Session>, place: &Place, machine: u64, record: &Record) {
    let path = place.alive(machine);
    let held = record.owner != 0 && record.owner != Record::FOREIGN;
    let changes =
        if held { session.alive().insert(path.clone()) } else { session.alive().remove(&path) };
    if changes {
        let data = held.then(|| format::alive(record));
        tokio::spawn(replace(session.clone(), path, data));
    }
}

async fn replace(session: Arc<Session>, path: String, data: Option<Vec<u8>>) {
    // Both are sent at once, so that a later change does not come in between. An earlier session may
    // have left a znode, which would go only when that session runs out.
    let removed = session.client.delete(&path, None);
    let ephemeral = CreateMode::Ephemeral.with_acls(session.acls);
    let made = data.map(|data| session.client.create(&path, &data, &ephemeral));
    let mut outcome = match removed.await {
        Err(Error::NoNode) => Ok(()),
        outcome => outcome,
    };
    if let Some(made) = made {
        outcome = outcome.and(made.await.map(drop));
    }
    if let Err(error) = outcome {
        tracing::debug!(path, %error, "the liveness znode is not up to date");
        session.alive().remove(&path); // the next change tries again
    }
}
