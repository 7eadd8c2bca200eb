//! Every notation of one moment, read by each command, by settings and by REST.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use crate::line::vesta;
use vesta_testkit::programs::{FREE_PORTS, Program};

/// Noon in UTC, the start of the day and of the month.
const NOON: u64 = 1_769_860_800_000;
const DAY: u64 = 1_769_817_600_000;
const MONTH: u64 = 1_767_225_600_000;
const YEAR: u64 = MONTH;
/// Epoch of the layout snowflake.
const SNOWFLAKE: u64 = 1_288_834_974_657;

/// True for a day, a month or a year, which is refused where a moment is stored.
fn is_period(text: &str) -> bool {
    ["2026-01-31", "2026-01", "2026"].contains(&text)
}

/// Each notation and the millisecond that it means; `None` if it is refused.
const FORMS: [(&str, Option<u64>); 17] = [
    ("2026-01-31T12:00:00Z", Some(NOON)),
    ("2026-01-31T12:00:00+00:00", Some(NOON)),
    ("2026-01-31T07:00:00-05:00", Some(NOON)),
    ("2026-01-31T17:30:00+05:30", Some(NOON)),
    ("2026-01-31T20:00:00+08:00", Some(NOON)),
    ("2026-01-31 20:00:00+08:00", Some(NOON)),
    ("2026-01-31T20:00:00.000+08:00", Some(NOON)),
    ("20260131T200000+0800", Some(NOON)),
    ("2026-01-31t12:00:00z", Some(NOON)),
    ("2026-01-31T20:00:00+08:00[Asia/Shanghai]", Some(NOON)),
    ("1769860800000", Some(NOON)),
    ("2026-01-31", Some(DAY)),
    ("2026-01", Some(MONTH)),
    ("2026", Some(YEAR)),
    ("2026-01-31T12:00:00", None),
    ("2026-01-31 12:00", None),
    ("1769860800", None),
];

/// Output of a command that must accept the text; `None` if it must refuse the text, and does.
fn read(folder: &Path, args: &[&str], is_read: bool) -> Option<String> {
    let (said, error, code) = vesta(folder, args);
    if is_read {
        assert!(
            matches!(code, Some(0 | 1)) && !said.is_empty(),
            "{args:?}: {code:?} {error}"
        );
        return Some(said);
    }
    assert_eq!((said.as_str(), code), ("", Some(64)), "{args:?}");
    assert!(
        error.contains("+08:00 in China") || error.contains("12 digits"),
        "{error}"
    );
    None
}

fn rfc_3339(millis: u64) -> String {
    vesta_intf::UnixMillis(millis).to_string()
}

fn first_number(text: &str) -> u64 {
    text.split_whitespace()
        .next()
        .expect("a word")
        .parse()
        .expect("a number")
}

#[test]
fn bound_reads_each_form() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, moment) in FORMS {
        let args = ["bound", text, "--layout", "snowflake"];
        let said = read(folder.path(), &args, moment.is_some());
        assert_eq!(
            said.map(|said| (first_number(&said) >> 22) + SNOWFLAKE),
            moment,
            "{text}"
        );
        let range = format!("2025/{text}");
        let args = ["bound", &range, "--layout", "snowflake", "-o", "csv"];
        let said = read(folder.path(), &args, moment.is_some());
        let last =
            said.map(|said| first_number(said.split(&[',', '\n'][..]).nth(6).expect("upper")));
        assert_eq!(
            last.map(|last| ((last + 1) >> 22) + SNOWFLAKE),
            moment,
            "{text}"
        );
    }
}

#[test]
fn known_bounds_are_reproduced() {
    let folder = tempfile::tempdir().expect("a folder");
    let bound = |text: &str| {
        let (said, error, code) = vesta(folder.path(), &["bound", text, "--layout", "snowflake"]);
        assert_eq!(code, Some(0), "{error}");
        said
    };
    assert_eq!(
        first_number(&bound("2024-05-01T20:34:56+08:00")),
        1_785_649_100_616_630_272
    );
    let lowest = |millis: u64| (millis - SNOWFLAKE) << 22;
    let day = format!("{} {}\n", lowest(DAY), lowest(DAY + 86_400_000) - 1);
    assert_eq!(bound("2026-01-31"), day);
    let month = format!(
        "{} {}\n",
        lowest(MONTH),
        lowest(MONTH + 31 * 86_400_000) - 1
    );
    assert_eq!(bound("2026-01"), month);
    let noon = format!("{} {}\n", lowest(NOON), lowest(NOON + 1) - 1);
    assert_eq!(bound("2026-01-31T20:00:00+08:00[Asia/Shanghai]"), noon);
}

/// The moment at which a set of `plan overlap` ends or begins, found by comparison with adjacent
/// sets.
fn planned(folder: &Path, of: impl Fn(&str) -> String, moment: Option<u64>) {
    let meets = |set: &str, other: String| {
        let said = read(folder, &["plan", "overlap", set, &other], moment.is_some());
        said.map(|said| said != "disjoint\n")
    };
    let Some(moment) = moment else {
        for key in ["from", "until"] {
            meets(&of(key), "snowflake".to_owned());
        }
        return;
    };
    let at = rfc_3339(moment);
    let before = rfc_3339(moment - 1);
    let after = rfc_3339(moment + 1);
    for (key, other, expected) in [
        ("until", format!("snowflake,from={at}"), false),
        ("until", format!("snowflake,from={before}"), true),
        ("from", format!("snowflake,until={at}"), false),
        ("from", format!("snowflake,until={after}"), true),
    ] {
        assert_eq!(meets(&of(key), other), Some(expected), "{key} {at}");
    }
}

#[test]
fn plan_overlap_reads_each_form_in_words_and_in_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, moment) in FORMS {
        planned(
            folder.path(),
            |key| format!("snowflake,{key}={text}"),
            moment,
        );
        let file = |key: &str| {
            let file = format!("{key}.toml");
            let lines = format!("layout = \"snowflake\"\n{key} = \"{text}\"\n");
            std::fs::write(folder.path().join(&file), lines).expect("a file");
            file
        };
        planned(folder.path(), file, moment);
    }
}

#[test]
fn plan_overlap_finds_the_meeting_of_two_offsets() {
    let folder = tempfile::tempdir().expect("a folder");
    let old = "max-peak,genMethod=1,until=2026-06-01T12:00:00+08:00";
    let new = "max-peak,genMethod=1,from=2026-06-01T00:00:00Z";
    let (said, _, code) = vesta(folder.path(), &["plan", "overlap", old, new]);
    assert!(
        code == Some(1) && said.starts_with("they meet at "),
        "{said}"
    );
    assert!(said.contains("2026-06-01T0"), "{said}");
}

#[test]
fn layout_design_and_a_settings_file_read_each_form_of_an_epoch() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let design = [
        "layout",
        "design",
        "--years",
        "10",
        "--machines",
        "9",
        "--per-second",
        "9",
    ];
    for (text, moment) in FORMS {
        let moment = moment.filter(|_| !is_period(text));
        let args = [&design[..], &["--toml", "--epoch", text]].concat();
        let said = read(folder, &args, moment.is_some());
        if let (Some(said), Some(moment)) = (said, moment) {
            assert!(
                said.contains(&moment.to_string()) || said.contains(&rfc_3339(moment)),
                "{said}"
            );
        }
        let table = format!(
            "[layout.custom]\ntime_bits = 41\nmachine_bits = 10\nseq_bits = 12\n\
             unit = \"millisecond\"\nepoch = \"{text}\"\n"
        );
        std::fs::write(folder.join("own.toml"), table).expect("a file");
        let said = read(
            folder,
            &["layout", "check", "own.toml", "-o", "json"],
            moment.is_some(),
        );
        if let (Some(said), Some(moment)) = (said, moment) {
            assert!(
                said.contains(&format!("\"epoch\":\"{}\"", rfc_3339(moment))),
                "{said}"
            );
        }
    }
    let args = [
        &design[..],
        &["--toml", "--epoch", "2019-02-20T00:00:00+08:00"],
    ]
    .concat();
    let (said, ..) = vesta(folder, &args);
    assert!(
        said.contains("1550592000000") || said.contains("2019-02-19T16:00:00"),
        "{said}"
    );
}

#[test]
fn a_settings_file_takes_an_epoch_as_a_date_or_a_number_of_toml() {
    let folder = tempfile::tempdir().expect("a folder");
    for (epoch, begins) in [
        ("\"2016-05-20T00:00:00Z\"", "2016-05-20T00:00:00.000Z"),
        ("2016-05-20T08:00:00+08:00", "2016-05-20T00:00:00.000Z"),
        ("1463702400000", "2016-05-20T00:00:00.000Z"),
        ("0", "1970-01-01T00:00:00.000Z"),
    ] {
        let table = format!(
            "[layout.custom]\ntime_bits = 41\nmachine_bits = 10\nseq_bits = 12\n\
             unit = \"millisecond\"\nepoch = {epoch}\n"
        );
        std::fs::write(folder.path().join("own.toml"), table).expect("a file");
        let (said, error, code) = vesta(folder.path(), &["layout", "check", "own.toml"]);
        assert!(
            code == Some(0) && said.contains(begins),
            "{epoch}: {said}{error}"
        );
    }
    // In Shanghai, where the `epochStr` of a uid-generator began, this day began eight hours earlier.
    for epoch in ["\"2016-05-20\"", "2016-05-20", "\"2016\""] {
        let table = format!(
            "[layout.custom]\ntime_bits = 28\nmachine_bits = 22\nseq_bits = 13\n\
             unit = \"second\"\nepoch = {epoch}\n"
        );
        std::fs::write(folder.path().join("own.toml"), table).expect("a file");
        let (said, error, code) = vesta(folder.path(), &["layout", "check", "own.toml"]);
        assert_eq!(
            (said.as_str(), code),
            ("", Some(64)),
            "{epoch}: {said}{error}"
        );
        assert!(
            error.contains("T00:00:00Z in UTC") && error.contains("T00:00:00+08:00 in China"),
            "{error}"
        );
    }
}

#[test]
fn a_guess_reads_each_form() {
    let folder = tempfile::tempdir().expect("a folder");
    for (text, moment) in FORMS {
        let id = ((NOON - SNOWFLAKE) << 22).to_string();
        let args = ["explain", &id, "--layout", "guess", "--made", text];
        read(folder.path(), &args, moment.is_some());
    }
}

#[test]
fn a_guess_asks_for_the_month_and_proposes_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let args = ["explain", "175928847299117063", "--layout", "guess"];
    let (said, asked, _) = vesta(folder.path(), &args);
    assert!(said.contains("discord") && said.contains("2016"), "{said}");
    let names_a_year = asked.contains("20");
    assert!(asked.contains("--made YYYY-MM") && !names_a_year, "{asked}");
}

#[test]
fn raise_floor_reads_each_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    for (index, (text, moment)) in FORMS.into_iter().enumerate() {
        let moment = moment.filter(|_| !is_period(text));
        let store = format!("sqlite:{index}.db");
        let of_store = ["--machine-store", &store, "--layout", "snowflake"];
        let (_, error, code) = vesta(folder, &[&["store", "init"], &of_store[..]].concat());
        assert_eq!(code, Some(0), "{error}");
        let raise = ["store", "raise-floor", "--yes", "--to", text];
        let said = read(
            folder,
            &[&raise[..], &of_store[..]].concat(),
            moment.is_some(),
        );
        if let (Some(said), Some(moment)) = (said, moment) {
            assert!(
                said.contains(&format!("is now {}", rfc_3339(moment))),
                "{said}"
            );
        }
    }
}

#[test]
fn rest_reads_each_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut serve = Command::new(env!("CARGO_BIN_EXE_vesta"));
    serve
        .args(["serve", "rest", "--layout", "snowflake"])
        .args(FREE_PORTS);
    let server = Program::serve(serve.env("VESTA_STATE_DIR", folder.path())).expect("it starts");
    let at = server.fact("HTTP").to_owned();
    for (text, moment) in FORMS {
        let time: String = text.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let mut stream = TcpStream::connect(&at).expect("a listener");
        let head = format!("GET /v1/ids:bound?time={time} HTTP/1.0\r\nhost: localhost\r\n\r\n");
        stream.write_all(head.as_bytes()).expect("a request");
        let mut said = String::new();
        stream.read_to_string(&mut said).expect("an answer");
        match moment {
            Some(moment) => {
                let expected = format!("\"moment\":\"{}\"", rfc_3339(moment));
                assert!(said.contains(&expected), "{text}: {said}");
            }
            None => assert!(
                said.starts_with("HTTP/1.1 400") || said.starts_with("HTTP/1.0 400"),
                "{said}"
            ),
        }
    }
    assert_eq!(server.stop().0, Some(0));
}
