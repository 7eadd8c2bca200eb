//! Entries as keys.

use vesta_service::{KvStore, StoreError, Timing};

use super::Cluster;
use super::client::Client;
use super::errors::Failure;
use super::pb::compare::{CompareTarget, TargetUnion};
use super::pb::request_op::Request as Op;
use super::pb::{Compare, KeyValue, PutRequest, RangeRequest, RequestOp, TxnRequest};
use crate::Options;
use crate::backends::text;

/// The number of entries that are listed with one request: well below what fits into an answer.
const PAGE: i64 = 1000;

/// Entries in etcd, version 3.4 or later: the pool of the processes that share a cluster.
///
/// The URL is `etcd://[user:password@]host:port,host:port[/prefix]`, or `etcds://…` with TLS. The port
/// is 2379 and the prefix `vesta` if there is none. The names must be those of members of *one*
/// cluster; an answer of another one is refused for good. With TLS the certificates are checked
/// against the roots of the web, or against those of a PEM file: `etcds://host/prefix?ca=FILE`. In a
/// user, a password and a FILE, other characters than letters, digits and `-._~` may be written as
/// `%` and two digits, and `/ ? # @ : & %` must be. The prefix and its parts consist of letters,
/// digits and `-._`.
///
/// A name that does not answer costs its share of the request time-out; then the next one is asked,
/// and stays the one to ask. The user needs to read and write what begins with `PREFIX/`
/// (`etcdctl role grant-permission ROLE --prefix=true readwrite vesta/`).
///
/// There is one key for each entry. They can be read with `etcdctl get --prefix vesta/lease/orders/`:
/// ```text
/// PREFIX/AREA/KEY
///
/// vesta/lease/orders/namespace
/// {"schema":1,…}
/// vesta/lease/orders/17
/// {"schema":1,…}
/// ```
/// They are never deleted and have no lease; one that somebody attached a lease to is refused.
///
/// A change is one transaction: `If mod_revision(key) = what was read with the old value, Then put`.
/// Reads are linearizable. Every change adds a revision to etcd's history, so have it compacted
/// (`--auto-compaction-retention`), as for every other use.
#[derive(Debug)]
pub(super) struct EtcdKv {
    pub(super) cluster: Cluster,
    pub(super) options: Options,
}

impl EtcdKv {
    /// The beginning of the keys of an area.
    fn area(&self, area: &str) -> String {
        format!("{}/{area}/", self.cluster.prefix)
    }
}

impl KvStore for EtcdKv {
    fn describe(&self) -> String {
        self.cluster.shown.clone()
    }

    fn timing(&self) -> Timing {
        Timing { request_timeout: self.cluster.limit, ..Timing::NETWORK }
    }

    fn list(&self, area: &str) -> Result<Vec<(String, String)>, StoreError> {
        let area = self.area(area);
        self.cluster.ask(|client| async move { list(&client, &area).await })
    }

    fn get(&self, area: &str, key: &str) -> Result<Option<String>, StoreError> {
        let key = self.area(area) + key;
        self.cluster.ask(|client| async move { Ok(read(&client, &key).await?.0) })
    }

    fn put_if(
        &self,
        area: &str,
        key: &str,
        old: Option<&str>,
        new: &str,
    ) -> Result<bool, StoreError> {
        self.options.check_put(area, key, old)?;
        let key = self.area(area) + key;
        let (old, new) = (old.map(str::to_owned), new.to_owned());
        self.cluster.ask(|client| async move {
            let (found, revision) = read(&client, &key).await?;
            if found != old {
                return Ok(false);
            }
            let txn = TxnRequest {
                compare: vec![unchanged(&key, revision)],
                success: vec![put(&key, new)],
                ..TxnRequest::default()
            };
            Ok(client.change(txn).await?.succeeded)
        })
    }
}

/// The value of a key, and the revision of its last change; 0 if there is no such key.
async fn read(client: &Client, key: &str) -> Result<(Option<String>, i64), Failure> {
    let range = RangeRequest { key: key.into(), ..RangeRequest::default() };
    let [found] = client.read([range]).await?;
    let Some(kv) = found.kvs.into_iter().next() else { return Ok((None, 0)) };
    let revision = kv.mod_revision;
    Ok((Some(entry(kv)?.1), revision))
}

async fn list(client: &Client, area: &str) -> Result<Vec<(String, String)>, Failure> {
    let mut entries = Vec::new();
    let mut end = area.as_bytes().to_vec();
    end.pop();
    end.push(b'/' + 1);
    let mut range = RangeRequest { key: area.into(), range_end: end, limit: PAGE };
    loop {
        let [page] = client.read([range.clone()]).await?;
        let last = page.kvs.last().map(|kv| kv.key.clone());
        for kv in page.kvs {
            let (key, value) = entry(kv)?;
            // Those of areas whose names go on with a slash lie between.
            if let Some(key) = key.strip_prefix(area).filter(|key| !key.contains('/')) {
                entries.push((key.into(), value));
            }
        }
        match last {
            // The very next key that there could be.
            Some(last) if page.more => range.key = [&*last, b"\0"].concat(),
            _ => return Ok(entries),
        }
    }
}

/// A key and its value.
pub(super) fn entry(kv: KeyValue) -> Result<(String, String), StoreError> {
    let KeyValue { key, value, lease, .. } = kv;
    let key = text("a key", key)?;
    if lease != 0 {
        return Err(StoreError::permanent(format!(
            "the key {key} has a lease and would be deleted with it; put it again without one"
        )));
    }
    let value = text(&format!("the key {key}"), value)?;
    Ok((key, value))
}

fn put(key: &str, value: String) -> RequestOp {
    let put = PutRequest { key: key.into(), value: value.into() };
    RequestOp { request: Some(Op::RequestPut(put)) }
}

/// The condition that a key was not changed since this revision; 0 is that there is none.
fn unchanged(key: &str, revision: i64) -> Compare {
    Compare {
        target: CompareTarget::Mod.into(),
        key: key.into(),
        target_union: Some(TargetUnion::ModRevision(revision)),
        ..Compare::default()
    }
}
