//! Entries as keys.

use futures_util::future::try_join_all;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Put, StoreError};

use super::pb::compare::{CompareTarget, TargetUnion};
use super::pb::request_op::Request as Op;
use super::pb::{Compare, KeyValue, PutRequest, RangeRequest, RequestOp, TxnRequest};
use super::{Connection, Etcd};
use crate::backends::text;
use crate::remote::{Entries, Kv, Result};

/// Entries per list request: well below the size limit of a response.
const PAGE: i64 = 1000;

impl Kv for Etcd {
    const HAS_CLOCK: bool = true;

    async fn list(&self, connection: &mut Connection, area: &str) -> Result<Entries> {
        let mut entries = Vec::new();
        let area = self.key(area, "");
        let mut end = area.clone().into_bytes();
        end.pop();
        end.push(b'/' + 1);
        let mut range = RangeRequest {
            key: area.clone().into(),
            range_end: end,
            limit: PAGE,
        };
        loop {
            let page = self.read(connection, range.clone()).await?;
            let last = page.kvs.last().map(|kv| kv.key.clone());
            for kv in page.kvs {
                let (key, value) = entry(kv)?;
                // Keys of areas whose names continue with a slash are in between.
                if let Some(key) = key.strip_prefix(&area).filter(|key| !key.contains('/')) {
                    entries.push((key.into(), value));
                }
            }
            match last {
                // The smallest possible next key.
                Some(last) if page.more => range.key = [&*last, b"\0"].concat(),
                _ => return Ok(entries),
            }
        }
    }

    async fn get(
        &self,
        connection: &mut Connection,
        area: &str,
        key: &str,
    ) -> Result<Option<String>> {
        Ok(self.current(connection, &self.key(area, key)).await?.0)
    }

    /// Concurrently, over one connection.
    async fn get_all(
        &self,
        connection: &mut Connection,
        area: &str,
        keys: &[String],
    ) -> Result<Entries> {
        let get = |key: &String| {
            let (mut connection, name, key) =
                (connection.clone(), self.key(area, key), key.clone());
            async move { Ok((key, self.current(&mut connection, &name).await?.0)) }
        };
        let found = try_join_all(keys.iter().map(get)).await?;
        let there = |(key, value): (String, Option<String>)| Some((key, value?));
        Ok(found.into_iter().filter_map(there).collect())
    }

    /// Concurrently, over one connection.
    async fn put_all(
        &self,
        connection: &mut Connection,
        area: &str,
        puts: &[Put],
    ) -> Result<Vec<bool>> {
        try_join_all(
            puts.iter()
                .map(|put| self.put_if(connection.clone(), area, put)),
        )
        .await
    }

    async fn now(&self, connection: &mut Connection) -> Result<Option<UnixMillis>> {
        self.clock(connection).await
    }
}

impl Etcd {
    async fn put_if(&self, mut connection: Connection, area: &str, put: &Put) -> Result<bool> {
        let key = self.key(area, &put.key);
        let (found, revision) = self.current(&mut connection, &key).await?;
        if found != put.old {
            return Ok(false);
        }
        // Unchanged since it was read; revision 0 means absent.
        let unchanged = Compare {
            target: CompareTarget::Mod.into(),
            key: key.clone().into(),
            target_union: Some(TargetUnion::ModRevision(revision)),
            ..Compare::default()
        };
        let change = PutRequest {
            key: key.into(),
            value: put.new.clone().into(),
        };
        let txn = TxnRequest {
            compare: vec![unchanged],
            success: vec![RequestOp {
                request: Some(Op::RequestPut(change)),
            }],
            ..TxnRequest::default()
        };
        Ok(self.send(&mut connection, txn).await?.succeeded)
    }

    fn key(&self, area: &str, key: &str) -> String {
        format!("{}/{area}/{key}", self.config.prefix)
    }

    /// The value of a key, and the revision of its last change; 0 if the key does not exist.
    async fn current(
        &self,
        connection: &mut Connection,
        key: &str,
    ) -> Result<(Option<String>, i64)> {
        let range = RangeRequest {
            key: key.into(),
            ..RangeRequest::default()
        };
        let Some(kv) = self.read(connection, range).await?.kvs.into_iter().next() else {
            return Ok((None, 0));
        };
        let revision = kv.mod_revision;
        Ok((Some(entry(kv)?.1), revision))
    }
}

/// Decodes a key and its value.
pub(super) fn entry(kv: KeyValue) -> Result<(String, String)> {
    let KeyValue {
        key, value, lease, ..
    } = kv;
    let key = text("a key", key)?;
    if lease != 0 {
        return Err(StoreError::permanent(format!(
            "the key {key} has a lease and would be deleted with it; put it again without one"
        )));
    }
    let value = text(&format!("the key {key}"), value)?;
    Ok((key, value))
}
