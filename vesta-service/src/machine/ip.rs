//! A machine ID by this host's address.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::net::IpAddr;

use vesta_intf::IdError;

/// Which address has which machine ID. An explicit map and not, as in the original, a list in which
/// the position counts: taking an address out of a list renumbers all that follow.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IpMap(BTreeMap<IpAddr, u64>);

impl IpMap {
    /// Reads `10.0.0.1=1,10.0.0.2=2`.
    ///
    /// # Errors
    /// [`IdError::Invalid`] for an entry that is not `address=number`, and for an address or a
    /// number that comes twice.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let flaw = |reason: String| IdError::invalid("machine IPs", reason);
        let mut map = BTreeMap::new();
        for entry in text.split(',') {
            let (address, machine) = entry
                .split_once('=')
                .and_then(|(a, m)| Some((a.trim().parse::<IpAddr>().ok()?, m.trim().parse().ok()?)))
                .ok_or_else(|| {
                    flaw(format!("`{entry}` is not `address=number`, as in 10.0.0.1=1,10.0.0.2=2"))
                })?;
            if map.values().any(|m| *m == machine) {
                return Err(flaw(format!("machine ID {machine} is given to two addresses")));
            }
            match map.entry(address) {
                Entry::Vacant(vacant) => vacant.insert(machine),
                Entry::Occupied(_) => return Err(flaw(format!("address {address} comes twice"))),
            };
        }
        Ok(Self(map))
    }

    /// The addresses and their machine IDs.
    pub fn entries(&self) -> impl Iterator<Item = (IpAddr, u64)> {
        self.0.iter().map(|(address, machine)| (*address, *machine))
    }

    /// The entry of the one address that this host has.
    ///
    /// # Errors
    /// [`IdError::Invalid`] if this host has none of the addresses, or several.
    pub fn find_own(&self) -> Result<(IpAddr, u64), IdError> {
        let interfaces = if_addrs::get_if_addrs()
            .map_err(|e| IdError::invalid("machine IPs", format!("cannot list addresses: {e}")))?;
        self.find(interfaces.iter().map(if_addrs::Interface::ip))
    }

    fn find(&self, own: impl Iterator<Item = IpAddr>) -> Result<(IpAddr, u64), IdError> {
        let own: Vec<IpAddr> = own.collect();
        let list = |addresses: &[IpAddr]| {
            addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        let found: Vec<_> = self.entries().filter(|(address, _)| own.contains(address)).collect();
        match found[..] {
            [entry] => Ok(entry),
            [] => Err(IdError::invalid(
                "machine IPs",
                format!("none of this host's addresses ({}) is in the map", list(&own)),
            )),
            _ => Err(IdError::invalid(
                "machine IPs",
                "this host has several of the map's addresses; leave one of them in",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_gives_one_number_to_each_address_and_one_address_to_each_number() {
        let map = IpMap::parse("10.0.0.1=1, ::1=7").unwrap();
        assert_eq!(map.to_string(), "10.0.0.1=1,::1=7");
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
    fn exactly_one_of_the_hosts_addresses_must_be_in_it() {
        let map = IpMap::parse("10.0.0.1=1,10.0.0.2=2").unwrap();
        let own = |text: &str| text.split(' ').map(|a| a.parse().unwrap()).collect::<Vec<IpAddr>>();
        let find = |text| map.find(own(text).into_iter());
        assert_eq!(find("127.0.0.1 10.0.0.2").unwrap().1, 2);
        assert!(find("127.0.0.1 10.0.0.3").unwrap_err().to_string().contains("10.0.0.3"));
        assert!(find("10.0.0.1 10.0.0.2").unwrap_err().to_string().contains("several"));
    }
}
