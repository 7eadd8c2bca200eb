//! Reading and changing keys.

use std::sync::Arc;

use vesta_service::{Cas, Expect, Namespace, Record, StoreError};

use super::client::{Client, gets, got};
use super::errors::Failure;
use super::format;
use super::pb::compare::{CompareTarget, TargetUnion};
use super::pb::request_op::Request as Op;
use super::pb::{
    Compare, KeyValue, PutRequest, RangeRequest, RangeResponse, RequestOp, TxnRequest,
};

/// So many records are listed with one request: well below what fits into an answer.
const PAGE: i64 = 1000;

/// The keys of a namespace.
pub(super) struct Area {
    client: Arc<Client>,
    namespace: String,
    /// The key of the namespace itself.
    meta: String,
    /// What the keys of its records begin with.
    records: String,
}

/// What a key held, and since which revision.
struct Held<T> {
    value: T,
    revision: i64,
}

impl Area {
    pub(super) fn new(
        client: Arc<Client>,
        prefix: &str,
        namespace: &str,
    ) -> Result<Self, StoreError> {
        // A slash would lead into the keys of others.
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if namespace.is_empty() || !namespace.chars().all(allowed) {
            return Err(StoreError::permanent(
                "the name of a namespace consists of letters, digits and -._",
            ));
        }
        let below = format!("{prefix}/{namespace}");
        let (meta, records) = (format!("{below}/meta"), format!("{below}/record/"));
        Ok(Self { client, namespace: namespace.into(), meta, records })
    }

    pub(super) async fn open(
        &self,
        auto_init: bool,
        fingerprint: String,
    ) -> Result<Namespace, Failure> {
        let [meta] = self.client.read([get(&self.meta)]).await?;
        if let Some(found) = held(&meta, format::read_namespace)? {
            return Ok(found.value);
        }
        if !auto_init {
            return Err(not_prepared().into());
        }
        let made = Namespace { uuid: new_uuid()?, fingerprint, floor: 0 };
        let answer = self
            .client
            .change(TxnRequest {
                compare: vec![unchanged(&self.meta, 0)],
                success: vec![put(&self.meta, format::namespace(&made)?)],
                failure: gets([get(&self.meta)]),
            })
            .await?;
        if answer.succeeded {
            return Ok(made);
        }
        let [meta] = got(answer)?;
        Ok(self.opened(&meta)?.value)
    }

    pub(super) async fn raise_floor(&self, floor: u64) -> Result<u64, Failure> {
        let floor = format::within_63_bits(floor)?;
        let [mut meta] = self.client.read([get(&self.meta)]).await?;
        loop {
            let Held { value: found, revision } = self.opened(&meta)?;
            if found.floor >= floor {
                return Ok(found.floor);
            }
            let raised = Namespace { floor, ..found };
            let answer = self
                .client
                .change(TxnRequest {
                    compare: vec![unchanged(&self.meta, revision)],
                    success: vec![put(&self.meta, format::namespace(&raised)?)],
                    failure: gets([get(&self.meta)]),
                })
                .await?;
            if answer.succeeded {
                return Ok(floor);
            }
            [meta] = got(answer)?;
        }
    }

    pub(super) async fn list(&self) -> Result<Vec<(u64, Record)>, Failure> {
        let mut records = Vec::new();
        let mut from = self.records.clone().into_bytes();
        loop {
            let range = RangeRequest { key: from, range_end: self.records_end(), limit: PAGE };
            let [meta, page] = self.client.read([get(&self.meta), range]).await?;
            self.opened(&meta)?;
            for kv in &page.kvs {
                let name = kv.key.strip_prefix(self.records.as_bytes()).unwrap_or_default();
                records.push((format::read_machine(kv, name)?, format::read_record(kv)?));
            }
            match page.kvs.into_iter().next_back() {
                // The very next key that there could be.
                Some(last) if page.more => from = [&*last.key, b"\0"].concat(),
                _ => return Ok(records),
            }
        }
    }

    pub(super) async fn read(&self, machine: u64) -> Result<Option<Record>, Failure> {
        let [meta, record] =
            self.client.read([get(&self.meta), get(&self.record(machine)?)]).await?;
        self.opened(&meta)?;
        Ok(held(&record, format::read_record)?.map(|found| found.value))
    }

    pub(super) async fn cas(
        &self,
        machine: u64,
        expect: &Expect,
        new: &Record,
    ) -> Result<Cas, Failure> {
        let key = self.record(machine)?;
        let value = format::record(new)?;
        let mut seen = self.client.read([get(&self.meta), get(&key)]).await?;
        loop {
            let [meta, record] = &seen;
            let namespace = self.opened(meta)?;
            let record = held(record, format::read_record)?;
            let compare = match &record {
                Some(found) => vec![unchanged(&key, found.revision)],
                // The floor counts: it must not be raised meanwhile.
                None => vec![unchanged(&key, 0), unchanged(&self.meta, namespace.revision)],
            };
            let current = record
                .map_or_else(|| Record::unclaimed(namespace.value.floor), |found| found.value);
            if !current.meets(expect) {
                return Ok(Cas::Conflict(current));
            }
            let answer = self
                .client
                .change(TxnRequest {
                    compare,
                    success: vec![put(&key, value.clone())],
                    failure: gets([get(&self.meta), get(&key)]),
                })
                .await?;
            if answer.succeeded {
                return Ok(Cas::Done);
            }
            // Something changed. That may be what the condition is not about.
            seen = got(answer)?;
        }
    }

    fn record(&self, machine: u64) -> Result<String, StoreError> {
        Ok(format!("{}{}", self.records, format::machine(machine)?))
    }

    /// The key after all that begin with `records`.
    fn records_end(&self) -> Vec<u8> {
        let mut end = self.records.clone().into_bytes();
        end.pop();
        end.push(b'/' + 1);
        end
    }

    fn opened(&self, meta: &RangeResponse) -> Result<Held<Namespace>, StoreError> {
        held(meta, format::read_namespace)?.ok_or_else(|| {
            StoreError::permanent(format!("namespace `{}` was not opened", self.namespace))
        })
    }
}

fn held<T>(
    range: &RangeResponse,
    read: impl FnOnce(&KeyValue) -> Result<T, StoreError>,
) -> Result<Option<Held<T>>, StoreError> {
    let held = |kv: &KeyValue| Ok(Held { value: read(kv)?, revision: kv.mod_revision });
    range.kvs.first().map(held).transpose()
}

fn get(key: &str) -> RangeRequest {
    RangeRequest { key: key.into(), ..RangeRequest::default() }
}

fn put(key: &str, value: Vec<u8>) -> RequestOp {
    RequestOp { request: Some(Op::RequestPut(PutRequest { key: key.into(), value })) }
}

/// That a key was not changed since this revision; 0 is that there is none.
fn unchanged(key: &str, revision: i64) -> Compare {
    Compare {
        target: CompareTarget::Mod.into(),
        key: key.into(),
        target_union: Some(TargetUnion::ModRevision(revision)),
        ..Compare::default()
    }
}

fn new_uuid() -> Result<u128, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| StoreError::unavailable("there are no random numbers", error))?;
    Ok(u128::from_be_bytes(bytes))
}

fn not_prepared() -> StoreError {
    StoreError::permanent(
        "the namespace does not exist, and auto_init is off; have it created by `vesta-server store \
         init`",
    )
}
