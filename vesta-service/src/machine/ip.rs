//! Machine ID by this host's address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use vesta_intf::IdError;

/// Maps addresses to machine IDs. An explicit map and not, as in the original, a list in which the
/// position counts: removing an address from a list renumbers all that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpMap(BTreeMap<IpAddr, u64>);

impl IpMap {
    /// Parses `10.0.0.1=1,10.0.0.2=2`.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for an entry that is not `address=number`, and for an address or a number that
    /// occurs twice. Also for an address that does not identify a single host: loopback, link-local,
    /// unspecified, multicast or broadcast. Every host has those, so two hosts would take the same machine ID.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let flaw = |reason: String| IdError::invalid("machine IPs", reason);
        let mut map = BTreeMap::new();
        for entry in text.split(',') {
            let (address, machine) = entry
                .split_once('=')
                .and_then(|(a, m)| Some((a.trim().parse::<IpAddr>().ok()?, m.trim().parse().ok()?)))
                .ok_or_else(|| {
                    flaw(format!(
                        "`{entry}` is not `address=number`, as in 10.0.0.1=1,10.0.0.2=2"
                    ))
                })?;
            if !names_one_host(address) {
                return Err(flaw(format!(
                    "{address} does not name one host; use the address at which other hosts reach \
                     this one"
                )));
            }
            if map.values().any(|m| *m == machine) {
                return Err(flaw(format!(
                    "machine ID {machine} is assigned to two addresses"
                )));
            }
            if map.insert(address, machine).is_some() {
                return Err(flaw(format!("address {address} is listed twice")));
            }
        }
        Ok(Self(map))
    }

    /// The addresses and their machine IDs.
    pub fn entries(&self) -> impl Iterator<Item = (IpAddr, u64)> {
        self.0.iter().map(|(address, machine)| (*address, *machine))
    }

    /// The entry of the only listed address that this host has.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if this host has none of the addresses, or several.
    pub fn find_own(&self) -> Result<(IpAddr, u64), IdError> {
        let interfaces = if_addrs::get_if_addrs()
            .map_err(|e| IdError::invalid("machine IPs", format!("cannot list addresses: {e}")))?;
        self.find(interfaces.iter().map(if_addrs::Interface::ip))
    }

    fn find(&self, own: impl Iterator<Item = IpAddr>) -> Result<(IpAddr, u64), IdError> {
        let own: Vec<IpAddr> = own.filter(|address| names_one_host(*address)).collect();
        let list = |addresses: &[IpAddr]| {
            addresses
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        let found: Vec<_> = self
            .entries()
            .filter(|(address, _)| own.contains(address))
            .collect();
        match found[..] {
            [entry] => Ok(entry),
            [] => Err(IdError::invalid(
                "machine IPs",
                format!(
                    "none of this host's addresses ({}) is in the map",
                    list(&own)
                ),
            )),
            _ => Err(IdError::invalid(
                "machine IPs",
                "this host has several of the map's addresses; keep only one of them",
            )),
        }
    }
}

fn names_one_host(address: IpAddr) -> bool {
    let shared = match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let address = address.to_canonical();
    !shared && !address.is_loopback() && !address.is_unspecified() && !address.is_multicast()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_every_host_has_are_neither_accepted_nor_proposed() {
        let every_host_has = [
            "127.0.0.1",
            "127.8.0.1",
            "::1",
            "::ffff:127.0.0.1",
            "0.0.0.0",
            "::",
            "169.254.1.1",
            "fe80::1",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "::ffff:169.254.1.1",
        ];
        for address in every_host_has {
            let error = IpMap::parse(&format!("{address}=1"))
                .expect_err(address)
                .to_string();
            assert!(error.contains("does not name one host"), "{error}");
        }
        let own = every_host_has.into_iter().chain(["10.0.0.9"]);
        let map = IpMap::parse("10.0.0.1=1").unwrap();
        let error = map
            .find(own.map(|address| address.parse().unwrap()))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("none of this host's addresses (10.0.0.9) is in the map"),
            "{error}"
        );
    }

    #[test]
    fn a_map_gives_one_number_to_each_address_and_one_address_to_each_number() {
        let map = IpMap::parse("10.0.0.1=1, fd00::1=7").unwrap();
        assert_eq!(map.to_string(), "10.0.0.1=1,fd00::1=7");
        for (text, about) in [
            ("", "address=number"),
            ("10.0.0.1", "address=number"),
            ("10.0.0.1=x", "address=number"),
            ("10.0.0.1=-1", "address=number"),
            ("10.0.0.1=1,10.0.0.1=2", "twice"),
            ("10.0.0.1=1,10.0.0.2=1", "two addresses"),
        ] {
            let error = IpMap::parse(text).unwrap_err().to_string();
            assert!(error.contains(about), "{text}: {error}");
        }
    }

    #[test]
    fn exactly_one_of_the_hosts_addresses_must_be_in_the_map() {
        let map = IpMap::parse("10.0.0.1=1,10.0.0.2=2").unwrap();
        let own = |text: &str| {
            text.split(' ')
                .map(|a| a.parse().unwrap())
                .collect::<Vec<IpAddr>>()
        };
        let find = |text| map.find(own(text).into_iter());
        assert_eq!(find("127.0.0.1 10.0.0.2").unwrap().1, 2);
        assert!(
            find("127.0.0.1 10.0.0.3")
                .unwrap_err()
                .to_string()
                .contains("10.0.0.3")
        );
        assert!(
            find("10.0.0.1 10.0.0.2")
                .unwrap_err()
                .to_string()
                .contains("several")
        );
    }
}
