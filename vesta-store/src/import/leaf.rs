//! Machine IDs handed out by Leaf.

use serde::Deserialize;
use vesta_service::contract::UnixMillis;
use vesta_service::lease::StoreError;

use super::legacy::ask;
use crate::backends::zookeeper::{Children, Store};
use crate::foreign_owner::ForeignOwner;
use crate::{OpenError, StoreUrl};

const EXAMPLE: &str = "the znode of Leaf's workers as the path, for example \
                       zookeeper://zk1:2181/snowflake/com.sankuai.leaf.opensource.test/forever";

/// Data of a worker's znode.
#[derive(Deserialize)]
struct Endpoint {
    ip: String,
    port: String,
    /// Milliseconds since 1970; updated every 3 s.
    timestamp: u64,
}

/// Reads the machine IDs that Meituan's Leaf has handed out in snowflake mode, for an import. The
/// path of the URL is the znode that has a child per worker, `/snowflake/LEAF-NAME/forever`:
///
/// ```text
/// 10.0.0.5:8080-0000000003  {"ip":"10.0.0.5","port":"8080","timestamp":1767225600000}
/// ```
/// The number after the last hyphen is the machine ID; the time is the worker's last report, which
/// it sends every 3 seconds. Changes nothing.
///
/// # Errors
/// [`OpenError::Malformed`] for a URL without a path; [`OpenError::Store`] if ZooKeeper does not answer
/// within 2 s, the znode does not exist, or it has children that are not Leaf workers, which are named.
pub(super) fn leaf_machine_ids(url: &StoreUrl) -> Result<Vec<ForeignOwner>, OpenError> {
    if url.path.is_empty() {
        let reason = "the path is missing".into();
        return Err(OpenError::Malformed {
            reason,
            example: EXAMPLE,
        });
    }
    let path = format!("/{}", url.path);
    ask(url, |ensemble: &Store| {
        owners(&path, ensemble.children(&path)?)
    })
}

fn owners(path: &str, children: Option<Children>) -> Result<Vec<ForeignOwner>, StoreError> {
    let Some(children) = children else {
        return Err(StoreError::permanent(format!(
            "no znode {path}; write {EXAMPLE}"
        )));
    };
    let (mut found, mut odd) = (Vec::new(), Vec::new());
    for (name, data, _) in children {
        match predecessor(&name, &data) {
            Some(predecessor) => found.push(predecessor),
            None => odd.push(name),
        }
    }
    if !odd.is_empty() {
        odd.sort_unstable();
        return Err(StoreError::permanent(format!(
            "these children of {path} are not Leaf workers: {}; write {EXAMPLE}",
            odd.join(", ")
        )));
    }
    found.sort_unstable_by_key(|predecessor| predecessor.machine);
    Ok(found)
}

fn predecessor(name: &str, data: &[u8]) -> Option<ForeignOwner> {
    let (address, number) = name.rsplit_once('-')?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let machine = digits.then(|| number.parse().ok()).flatten()?;
    let Endpoint {
        ip,
        port,
        timestamp,
    } = serde_json::from_slice(data).ok()?;
    let host = format!("{ip}:{port}");
    let is_leafs = host == address;
    is_leafs.then_some(ForeignOwner {
        machine,
        host,
        last_used: Some(UnixMillis(timestamp)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_id_is_the_number_of_the_znode() {
        let data = br#"{"ip":"10.0.0.5","port":"8080","timestamp":1767225600000}"#;
        let expected = ForeignOwner {
            machine: 3,
            host: "10.0.0.5:8080".into(),
            last_used: Some(UnixMillis(1_767_225_600_000)),
        };
        assert_eq!(
            predecessor("10.0.0.5:8080-0000000003", data),
            Some(expected)
        );
        for odd in [
            "10.0.0.5:8080-",
            "10.0.0.5:8080-x",
            "10.0.0.5:8080-+3",
            "10.0.0.5:8080",
            "10.0.0.6:8080-0000000003",
            "10.0.0.5:8080-99999999999999999999",
        ] {
            assert_eq!(predecessor(odd, data), None, "{odd}");
        }
        let name = "10.0.0.5:8080-0000000003";
        for odd in ["", "{}", r#"{"ip":"10.0.0.5","port":"8080"}"#] {
            assert_eq!(predecessor(name, odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn a_url_without_a_path_is_refused() {
        let error = leaf_machine_ids(&"zookeeper://zk1:2181".parse().unwrap())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the path is missing") && error.contains("/forever"),
            "{error}"
        );
    }
}
