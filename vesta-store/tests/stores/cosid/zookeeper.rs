//! CosId's znodes in ZooKeeper.

use zookeeper_client::CreateMode::Persistent;

use crate::zookeeper::tree::Tree;

/// A path on the server.
pub(crate) struct Place(Tree);

impl Place {
    pub(crate) fn new() -> Self {
        Self(Tree::new())
    }

    /// Creates a znode below `/cosid`, and empty ones above it.
    fn put(&self, path: &str, data: &str) {
        let mut above = String::from("cosid");
        for part in path.split('/') {
            if self.0.stat(&above).is_none() {
                self.0.create(&above, "", Persistent);
            }
            above = format!("{above}/{part}");
        }
        self.0.create(&above, data, Persistent);
    }
}

impl super::Place for Place {
    fn url(&self) -> String {
        self.0.url()
    }

    fn namespace(&self) -> String {
        "shop".into()
    }

    fn hand_out(&self) {
        self.put("shop/__itc_idx/10.0.0.0:8080", "0|1769832060123");
        self.put("shop/__itc_idx/10.0.0.2:8080", "2|1769832062000");
        self.put("shop/__itc_idx/10.0.0.4:8080", "4|1769832004000");
        self.put("shop/__itc_idx/10.0.0.9:1234", "1|1769832064000");
        self.put("shop/__revert/3", "3|1769832063000");
        self.put("shop/__counter-locker", "");
        self.put("shop/__counter", "\0\0\0\x05");
        self.put("shopx/__itc_idx/10.0.0.5:8080", "5|1769832064000");
    }

    fn count_on(&self) -> bool {
        self.0.set("cosid/shop/__counter", b"\0\0\0\x07");
        true
    }

    fn damage(&self) -> Vec<String> {
        self.put("shop/__itc_idx/10.0.0.7:8080", "7");
        self.put("shop/__revert/2", "5|1769832063000");
        self.0.set("cosid/shop/__counter", b"7");
        let at = |path: &str| self.0.at(&format!("cosid/shop/{path}"));
        vec![
            format!("{} = \"7\"", at("__itc_idx/10.0.0.7:8080")),
            format!("{} = \"5|1769832063000\"", at("__revert/2")),
            format!("{} = \"1 bytes, not 4\"", at("__counter")),
        ]
    }

    fn segments(&self) {
        self.put("shop.order", "");
        self.0.set("cosid/shop.order", b"\0\0\0\0\0\0\x08\x98");
        self.put("shop.order-locker", "");
        self.put("shop.order@260131", "\0\0\0\0\0\0\0\0");
        self.put("shop.eu.item", "\0\0\0\0\0\0\0\x0f");
        self.put("shopx.order", "x");
        // Machine IDs of the namespace shop.eu.
        self.put("shop.eu/__itc_idx/10.0.0.5:8080", "5|1769832064000");
    }

    fn damage_segment(&self) -> String {
        self.put("shop.user", "");
        format!("{} = \"0 bytes, not 8\"", self.0.at("cosid/shop.user"))
    }
}

/// A segment may have the name of another segment's lock.
#[test]
fn a_lock_is_distinguished_from_a_segment_by_its_data() {
    let place = Place::new();
    place.put("shop.a-locker", "\0\0\0\0\0\0\0\x07");
    place.put("shop.b", "\0\0\0\0\0\0\0\x08");
    place.put("shop.b-locker/_c_b9a4ace5-lock-0000000058", "127.0.0.1");
    let found = super::segments(&place).expect("a right state");
    let found: Vec<_> = found.iter().map(|it| (it.key.as_str(), it.last)).collect();
    assert_eq!(found, [("shop.a-locker", 7), ("shop.b", 8)]);
}
