//! Ordinal at the end of this host's name.

use vesta_intf::IdError;

/// The ordinal of a StatefulSet's pod: N of the host name `NAME-N`, where NAME contains no number. A name with
/// several numbers, such as `ip-10-0-3-17`, is an address: many hosts share its last number. With `of`, NAME
/// must equal it, and may contain numbers.
pub(super) fn ordinal(name: &str, of: Option<&str>) -> Result<u64, IdError> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let (label, domain) = name.split_once('.').unwrap_or((name, ""));
    let refuse = |flaw: &str, expected: &str| {
        let reason = format!("host name `{name}` {flaw}; {expected}, or set machine.id instead");
        Err(IdError::invalid("machine ordinal", reason))
    };
    let pods = "the pods of a StatefulSet are named NAME-N";
    let parts = label
        .rsplit_once('-')
        .filter(|(front, last)| !front.is_empty() && is_number(last));
    let Some((front, number)) = parts else {
        return refuse("does not end in a hyphen and a number", pods);
    };
    if of.is_some_and(|of| of != front) {
        let expected = format!("the ordinal is of {}-N", of.unwrap_or_default());
        return refuse("is of another set", &expected);
    }
    if of.is_none() && front.split('-').chain(domain.split('.')).any(is_number) {
        let expected = "name the part before the number, as in machine.id = ordinal:NAME, if the number alone identifies a host";
        return refuse("has several numbers, like an address", expected);
    }
    number
        .parse()
        .or_else(|_| refuse("ends in a number of more than 64 bits", pods))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, of: Option<&str>) -> String {
        ordinal(name, of).expect_err(name).to_string()
    }

    #[test]
    fn the_only_number_at_the_end_of_a_name_counts() {
        assert_eq!(ordinal("vesta-0", None).unwrap(), 0);
        assert_eq!(ordinal("web1-02", None).unwrap(), 2);
        let full = "vesta-ids-12.vesta.prod-2.svc.cluster.local";
        assert_eq!(ordinal(full, None).unwrap(), 12);
        for name in [
            "vesta",
            "vesta-",
            "vesta-7f9c",
            "vesta3",
            "",
            "vesta-+3",
            "-3",
            "7",
            "10.0.3.17",
        ] {
            assert!(
                refusal(name, None).contains("are named NAME-N, or set machine.id instead"),
                "{name}"
            );
        }
        assert!(ordinal("vesta-99999999999999999999", None).is_err());
    }

    #[test]
    fn a_name_that_looks_like_an_address_is_refused() {
        for name in [
            "ip-10-0-3-17",
            "ip-10-0-4-17.eu-west-1.compute.internal",
            "10-0-3-17.ec2",
            "10-17",
            "host-10.0.3.17",
            "host10-0-3-17",
            "vesta-2-0",
            "vesta-2-blue-0",
        ] {
            assert!(
                refusal(name, None).contains("has several numbers"),
                "{name}"
            );
        }
    }

    #[test]
    fn the_name_of_the_set_is_compared_and_may_hold_numbers() {
        assert_eq!(ordinal("vesta-3", Some("vesta")).unwrap(), 3);
        assert_eq!(ordinal("vesta-2-0.vesta.prod", Some("vesta-2")).unwrap(), 0);
        for name in [
            "vesta-ids-3",
            "other-3",
            "vest-3",
            "vesta-2-0",
            "ip-10-0-3-17",
        ] {
            assert!(
                refusal(name, Some("vesta")).contains("the ordinal is of vesta-N"),
                "{name}"
            );
        }
        assert!(ordinal("vesta-x", Some("vesta")).is_err());
    }

    /// Every name of up to eight of these characters: a name is accepted only if nothing else in it is a number.
    #[test]
    fn every_name_with_another_number_is_refused() {
        let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c == '1');
        let (mut names, mut taken) = (vec![String::new()], 0);
        for _ in 0..8 {
            let longer = |name: &String| ["a", "1", "-", "."].map(|more| format!("{name}{more}"));
            names = names.iter().flat_map(longer).collect();
            for name in &names {
                let (label, domain) = name.split_once('.').unwrap_or((name, ""));
                let parts: Vec<_> = label.split('-').chain(domain.split('.')).collect();
                let numbers = parts.iter().filter(|part| is_number(part)).count();
                let last = label.split('-').next_back().unwrap_or_default();
                let is_named = label.len() > last.len() + 1;
                let expected =
                    (numbers == 1 && is_number(last) && is_named).then(|| last.parse().unwrap());
                assert_eq!(ordinal(name, None).ok(), expected, "{name}");
                taken += usize::from(expected.is_some());
            }
        }
        assert!(taken > 1000, "{taken}");
    }
}
