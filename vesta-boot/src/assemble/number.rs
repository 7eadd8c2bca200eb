//! The machine ID of this host, where it is known before anybody is asked.

use std::net::IpAddr;

use vesta_service::IpMap;

use super::StartError;
use crate::Number;

/// The name that the kernel has for this host.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The machine ID, and how it was found.
pub(super) fn resolve(number: &Number) -> Result<(u64, String), StartError> {
    match number {
        Number::Id(id) => Ok((*id, "machine.id".to_owned())),
        Number::IpMap(map) => {
            let interfaces = if_addrs::get_if_addrs().map_err(|error| {
                StartError::Unavailable(format!("cannot list this host's addresses: {error}"))
            })?;
            let own: Vec<IpAddr> = interfaces.iter().map(if_addrs::Interface::ip).collect();
            by_address(map, &own)
        }
        Number::HostOrdinal => by_name(&host_name()),
    }
}

fn by_address(map: &IpMap, own: &[IpAddr]) -> Result<(u64, String), StartError> {
    let mut found = map.entries().filter(|(address, _)| own.contains(address));
    match (found.next(), found.next()) {
        (Some((address, id)), None) => Ok((id, format!("address {address} in machine.ips"))),
        (None, _) => {
            let own: Vec<_> = own.iter().map(IpAddr::to_string).collect();
            Err(StartError::Setting(format!(
                "machine.ips has none of this host's addresses ({}); add one of them",
                own.join(", ")
            )))
        }
        (Some((one, _)), Some((other, _))) => Err(StartError::Setting(format!(
            "machine.ips has several of this host's addresses ({one}, {other}); leave one of them in"
        ))),
    }
}

/// The digits after the last hyphen of the host name's first label.
fn by_name(name: &str) -> Result<(u64, String), StartError> {
    let label = name.split('.').next().unwrap_or_default();
    let digits = label.rsplit_once('-').map_or("", |(_, digits)| digits);
    let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    match digits.parse() {
        Ok(id) if all_digits => Ok((id, format!("ordinal of host name {name}"))),
        _ => Err(StartError::Setting(format!(
            "machine.ordinal is set, but host name `{name}` does not end in a hyphen and a number, as \
             the pods of a StatefulSet do; set machine.id instead"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_of_the_hosts_addresses_counts() {
        let map = IpMap::parse("10.0.0.1=1,10.0.0.2=2").expect("a map");
        let id = |own: &[&str]| {
            let own: Vec<_> = own.iter().map(|it| it.parse().expect("an address")).collect();
            by_address(&map, &own).map(|found| found.0).map_err(|error| error.to_string())
        };
        assert_eq!(id(&["127.0.0.1", "10.0.0.2"]), Ok(2));
        assert!(id(&["127.0.0.1", "10.0.0.3"]).is_err_and(|said| said.contains("10.0.0.3")));
        assert!(id(&["10.0.0.1", "10.0.0.2"]).is_err_and(|said| said.contains("several")));
    }

    #[test]
    fn the_number_at_the_end_of_the_name_counts_and_nothing_is_guessed() {
        let id = |name| by_name(name).ok().map(|found| found.0);
        assert_eq!(id("vesta-0"), Some(0));
        assert_eq!(id("vesta-ids-12.vesta.prod.svc.cluster.local"), Some(12));
        for name in
            ["vesta", "vesta-", "vesta-7f9c", "vesta3", "", "vesta-+3", "v-99999999999999999999"]
        {
            assert_eq!(id(name), None, "{name}");
        }
    }
}
