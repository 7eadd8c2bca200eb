//! The number at the end of this host's name.

use vesta_intf::IdError;

/// The ordinal of a StatefulSet's pod: the digits after the last hyphen of the host name's first
/// label.
pub(super) fn ordinal(name: &str) -> Result<u64, IdError> {
    let label = name.split('.').next().unwrap_or_default();
    let digits = label.rsplit_once('-').map(|(_, digits)| digits).unwrap_or_default();
    let all_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| all_digits).ok_or_else(|| {
        IdError::invalid(
            "machine ordinal",
            format!(
                "host name `{name}` does not end in a hyphen and a number, as the pods of a \
                 StatefulSet do; set machine.id instead"
            ),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_at_the_end_counts_and_nothing_is_guessed() {
        assert_eq!(ordinal("vesta-0").unwrap(), 0);
        assert_eq!(ordinal("vesta-ids-12.vesta.prod.svc.cluster.local").unwrap(), 12);
        for name in [
            "vesta",
            "vesta-",
            "vesta-7f9c",
            "vesta3",
            "",
            "vesta-+3",
            "vesta-99999999999999999999",
        ] {
            assert!(ordinal(name).is_err(), "{name}");
        }
    }
}
