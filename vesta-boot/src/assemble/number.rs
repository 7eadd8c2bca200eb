//! The machine ID of this host, where settings and host alone determine it.

use vesta_intf::IdError;
use vesta_service::host_ordinal;

use super::StartError;
use crate::settings::Number;

/// This host's name according to the kernel.
pub(crate) fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The machine ID and its source.
pub(super) fn resolve(number: &Number) -> Result<(u64, String), StartError> {
    let refused = |error: IdError| StartError::Setting(error.to_string());
    match number {
        Number::Id(id) => Ok((*id, "machine.id".to_owned())),
        Number::IpMap(map) => {
            let (address, id) = map.find_own().map_err(refused)?;
            Ok((id, format!("address {address} in machine.ips")))
        }
        Number::HostOrdinal => {
            let id = host_ordinal().map_err(refused)?;
            Ok((id, format!("ordinal of host name {}", host_name())))
        }
    }
}
