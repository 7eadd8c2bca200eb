//! CosId in ZooKeeper, below the path of the URL.
//!
//! ```text
//! /cosid/NAMESPACE/__itc_idx/…    machine IDs in use
//! /cosid/NAMESPACE/__revert/…     machine IDs given back
//! /cosid/NAMESPACE/__counter      4 bytes: the number of machine IDs handed out
//! /cosid/NAMESPACE.NAME           8 bytes: a segment
//! ```

use vesta_service::lease::StoreError;
use zookeeper_client::Stat;

use super::{Entry, Machines, Source, is_within};
use crate::backends::zookeeper::Store;

/// CosId's znodes.
pub(super) struct Tree<'a> {
    store: &'a Store,
    root: String,
}

impl<'a> Tree<'a> {
    pub(super) fn new(store: &'a Store, path: &str) -> Self {
        let root = if path.is_empty() {
            "/cosid".into()
        } else {
            format!("/{path}/cosid")
        };
        Self { store, root }
    }

    /// The children of a znode, with their data as decoded by `value`; others are skipped.
    fn below(
        &self,
        path: &str,
        value: impl Fn(&str, &[u8], &Stat) -> Option<String>,
    ) -> Result<Vec<Entry>, StoreError> {
        let children = self.store.children(path)?.unwrap_or_default();
        let entry = |(key, data, stat): (String, Vec<u8>, Stat)| {
            let value = value(&key, &data, &stat)?;
            Some(Entry {
                place: format!("{path}/{key}"),
                key,
                value,
            })
        };
        Ok(children.into_iter().filter_map(entry).collect())
    }
}

impl Source for Tree<'_> {
    fn machines(&self, namespace: &str) -> Result<Machines, StoreError> {
        let path = format!("{}/{namespace}", self.root);
        let text =
            |_: &str, data: &[u8], _: &Stat| Some(String::from_utf8_lossy(data).into_owned());
        let given_back = self.below(&format!("{path}/__revert"), text)?;
        let in_use = self.below(&format!("{path}/__itc_idx"), text)?;
        let counter = |name: &str, data: &[u8], _: &Stat| {
            let highest = |bytes| i64::from(i32::from_be_bytes(bytes)) - 1;
            (name == "__counter").then(|| whole(data, highest))
        };
        let counter = self.below(&path, counter)?.pop();
        Ok(Machines {
            in_use,
            given_back,
            counter,
        })
    }

    fn segments(&self, namespace: &str) -> Result<Vec<Entry>, StoreError> {
        self.below(&self.root, |name, data, stat| {
            // Empty znodes belong to locks, and to namespaces whose names contain a dot.
            let is_folder = data.is_empty() && (stat.num_children > 0 || name.ends_with("-locker"));
            let is_segment = is_within(namespace, name) && !is_folder;
            is_segment.then(|| whole(data, i64::from_be_bytes))
        })
    }
}

/// The number encoded in exactly N bytes, as text.
fn whole<const N: usize>(data: &[u8], number: impl Fn([u8; N]) -> i64) -> String {
    match data.try_into() {
        Ok(bytes) => number(bytes).to_string(),
        Err(_) => format!("{} bytes, not {N}", data.len()),
    }
}
