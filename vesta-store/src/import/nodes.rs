//! Machine IDs that are the names of a znode's children.

use vesta_service::lease::StoreError;
use zookeeper_client::Stat;

use super::legacy::ask;
use crate::backends::zookeeper::{Children, Store, is_ours};
use crate::foreign_owner::ForeignOwner;
use crate::{OpenError, StoreUrl};

const EXAMPLE: &str = "the znode whose children are the worker IDs as the path, for example \
                       zookeeper://zk1:2181/snowflake/orders";

/// Reads the machine IDs that a system holds as children of a znode, for an import. The path of the URL is that
/// znode. A child whose name is a number is a machine ID, with or without zeros in front, ephemeral or not; its
/// data names the holder. Other children, and those of Vesta itself, are left out. Changes nothing.
///
/// # Errors
/// [`OpenError::Malformed`] for a URL without a path; [`OpenError::Store`] if ZooKeeper does not answer within 2 s,
/// or the znode does not exist.
pub(super) fn machine_ids(url: &StoreUrl) -> Result<Vec<ForeignOwner>, OpenError> {
    if url.path.is_empty() {
        let reason = "the path is missing".into();
        return Err(OpenError::Malformed {
            reason,
            example: EXAMPLE,
        });
    }
    let path = format!("/{}", url.path);
    ask(url, |ensemble: &Store| match ensemble.children(&path)? {
        Some(children) => Ok(owners(&path, children)),
        None => Err(StoreError::permanent(format!(
            "no znode {path}; write {EXAMPLE}"
        ))),
    })
}

fn owners(path: &str, children: Children) -> Vec<ForeignOwner> {
    let owner = |(name, data, stat): (String, Vec<u8>, Stat)| {
        let machine = number(&name)?;
        let said = String::from_utf8_lossy(&data);
        let host = format!("{said} (znode {path}/{name})");
        let host = host.trim_start().to_owned();
        (!is_ours(&data, &stat)).then_some(ForeignOwner {
            machine,
            host,
            last_used: None,
        })
    };
    let mut found: Vec<_> = children.into_iter().filter_map(owner).collect();
    found.sort_unstable_by_key(|owner| owner.machine);
    found
}

fn number(name: &str) -> Option<u64> {
    let digits = name.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| name.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_consists_of_digits() {
        assert_eq!(number("17"), Some(17));
        assert_eq!(number("0000000003"), Some(3));
        for other in ["", "+3", "-3", "3a", "lease:ids", "99999999999999999999"] {
            assert_eq!(number(other), None, "{other}");
        }
    }

    #[test]
    fn a_url_without_a_path_is_refused() {
        let error = machine_ids(&"zookeeper://zk1:2181".parse().unwrap()).unwrap_err();
        assert!(error.to_string().contains("the path is missing"), "{error}");
    }
}
