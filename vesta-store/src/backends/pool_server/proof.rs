//! Proof that two servers share a store: what is put by way of one is found by way of the other. Numbers prove nothing:
//! they are copied with their store.

use vesta_intf::grpc::v1::{GetEntryRequest, PutEntriesRequest, PutEntry};
use vesta_service::lease::{PROOFS, StoreError, StoreIdentity};

use super::{Connection, PoolServer, explain};
use crate::remote::Result;

const AREA: &str = "pool/proof";
/// Tries, if other members put their values at the same place at the same time.
const TRIES: usize = 4;

impl PoolServer {
    /// True if two servers with one identity share a store, false if one of them has a copy.
    ///
    /// # Errors
    /// [`StoreError`] if one does not answer.
    pub(super) async fn share(
        &self,
        one: &mut Connection,
        other: &mut Connection,
        identity: StoreIdentity,
    ) -> Result<bool> {
        for _ in 0..TRIES {
            let (key, value) = (
                (random() % PROOFS).to_string(),
                format!("{:016x}", random()),
            );
            let old = self.read(one, &key, identity).await?;
            if !self.write(one, &key, old, &value, identity).await? {
                continue;
            }
            let found = self.read(other, &key, identity).await?;
            if found.as_ref() == Some(&value) {
                return Ok(true);
            }
            // Unless another member has replaced it, one store would have shown it: it was there before and is there now.
            if self.read(one, &key, identity).await? == Some(value) {
                return Ok(false);
            }
        }
        let busy = std::io::Error::other("other members put theirs at the same places");
        Err(StoreError::unavailable(
            "no value is found again by way of another server",
            busy,
        ))
    }

    async fn read(
        &self,
        to: &mut Connection,
        key: &str,
        of: StoreIdentity,
    ) -> Result<Option<String>> {
        let (area, key, identity) = (AREA.into(), key.into(), of.number);
        let answer = to
            .client
            .get(self.request(GetEntryRequest {
                area,
                key,
                identity,
            }))
            .await;
        let answer = answer.map_err(|status| explain(&to.server, &status))?;
        Ok(answer.into_inner().value)
    }

    async fn write(
        &self,
        to: &mut Connection,
        key: &str,
        old: Option<String>,
        new: &str,
        of: StoreIdentity,
    ) -> Result<bool> {
        let put = PutEntry {
            key: key.into(),
            old,
            new: new.into(),
            secret: None,
        };
        let request = PutEntriesRequest {
            area: AREA.into(),
            puts: vec![put],
            identity: of.number,
        };
        let answer = to.client.put(self.request(request)).await;
        let answer = answer.map_err(|status| explain(&to.server, &status))?;
        Ok(answer.into_inner().done == [true])
    }
}

fn random() -> u64 {
    getrandom::u64().expect("the operating system's random generator works")
}
