//! What the fuzz targets of the backends share: records of any numbers, and URLs with a password that
//! must not show.

use std::fmt::{Debug, Display};

use vesta_service::{Namespace, Record, StoreError, UnixMillis};

use crate::{OpenError, redact};

#[path = "../../scripts/fuzz/texts.rs"]
mod texts;
#[path = "../../scripts/fuzz/urls.rs"]
mod urls;

pub(crate) use texts::{Changes, damaged};
pub(crate) use urls::{Around, PIECES, SECRET, with_secret};

/// A record in numbers, half of which are beyond 63 bits.
pub(crate) type Numbers = ([u64; 4], u128, bool, String, u32);

pub(crate) fn record((numbers, owner, released, host, pid): &Numbers) -> Record {
    let [epoch, bound, attempt, time] = numbers.map(|n| if n % 4 == 0 { n } else { n >> 1 });
    let (owner, released, host, pid) = (*owner, *released, host.clone(), *pid);
    Record { epoch, owner, bound, attempt, released, host, pid, info_time: UnixMillis(time) }
}

pub(crate) fn fits(record: &Record) -> bool {
    [record.epoch, record.bound, record.attempt, record.info_time.0]
        .iter()
        .all(|number| i64::try_from(*number).is_ok())
}

/// Some records in the text of a backend.
pub(crate) fn examples() -> [Record; 3] {
    let claimed = Record {
        epoch: 3,
        owner: 0x92b1_04c8_d37e_4f15_a6d0_7e38_1b59_c2f4,
        bound: 369_899_123_507_200,
        attempt: 8_203_774_192_230_847_113,
        released: false,
        host: "ids-1 \"é\"\n".into(),
        pid: 4711,
        info_time: UnixMillis(1_767_225_600_000),
    };
    let released = Record { owner: 0, released: true, host: String::new(), ..claimed.clone() };
    [Record::default(), claimed, released]
}

pub(crate) fn namespace() -> Namespace {
    let fingerprint = vesta_intf::IdMeta::MAX_PEAK.fingerprint();
    Namespace { uuid: 0x5f0c_7b1e_93a2_4d68_8e17_c2b4_f690_3ad5, fingerprint, floor: 7 }
}

/// What is read is what could have been written; everything else is refused for good.
pub(crate) fn check_read<T: PartialEq + Debug>(
    read: impl Fn(&[u8]) -> Result<T, StoreError>,
    write: impl Fn(&T) -> Result<Vec<u8>, StoreError>,
    value: &[u8],
) {
    match read(value) {
        Ok(found) => {
            let written = write(&found).expect("what was read fits");
            assert_eq!(read(&written).expect("what was written is read"), found);
        }
        Err(error) => assert!(error.is_permanent(), "{error}"),
    }
}

/// Neither the shown URL nor what a backend makes of it shows the password.
pub(crate) fn check_url<T: Display + Debug>(
    parse: impl Fn(&str) -> Result<T, OpenError>,
    schemes: &[&str],
    around: &Around,
) {
    let url = with_secret(schemes, around);
    if !schemes.iter().any(|scheme| url.split(':').next() == Some(scheme)) {
        return; // it comes to no backend
    }
    let said = match parse(&url) {
        Ok(target) => format!("{target} {target:?}"),
        Err(error) => format!("{error} {error:?}"),
    };
    assert!(!said.contains(SECRET), "{url:?} says {said}");
}

#[test]
fn urls_never_show_their_password() {
    let schemes = ["mysql", "postgresql", "redis", "etcds", "zookeeper", "sqlite", "my sql", "ftp"];
    bolero::check!().with_iterations(50_000).with_type().for_each(|around: &Around| {
        let url = with_secret(&schemes, around);
        let shown = redact(&url);
        assert!(!shown.contains(SECRET), "{url:?} shows as {shown:?}");
    });
}

/// Any text at all: what stays is a part of it.
#[test]
fn any_text_is_shown() {
    bolero::check!().with_iterations(20_000).with_type().for_each(
        |(pieces, text): &(Vec<u8>, String)| {
            let pieces: String =
                pieces.iter().map(|i| PIECES[usize::from(*i) % PIECES.len()]).collect();
            for url in [pieces.clone() + text, text.clone() + &pieces] {
                let shown = redact(&url);
                let mut rest = url.as_str();
                for part in shown.split("***").filter(|part| !part.is_empty()) {
                    let at = rest.find(part).unwrap_or_else(|| panic!("{url:?}: {shown:?}"));
                    rest = &rest[at + part.len()..];
                }
            }
        },
    );
}

/// Hides what stands between the first colon and the first `@`.
fn planted(url: &str) -> String {
    match url.split_once("://").and_then(|(_, rest)| rest.split_once(':')?.1.split_once('@')) {
        Some((password, _)) => url.replace(password, "***"),
        None => url.into(),
    }
}

#[test]
#[should_panic(expected = "test failed")]
fn one_that_shows_a_password_with_an_at_sign_is_noticed() {
    bolero::check!()
        .with_iterations(50_000)
        .with_shrink_time(std::time::Duration::ZERO)
        .with_type()
        .for_each(|(_, which, noise): &Around| {
            let url = with_secret(&["mysql"], &(0, *which, noise.clone()));
            assert!(!planted(&url).contains(SECRET));
        });
}
