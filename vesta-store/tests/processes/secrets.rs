//! The password in a URL is shown by nothing, whatever goes wrong.

use std::net::{Ipv4Addr, TcpListener};

use crate::process::{Event, Process};
use crate::stores::Store;
use crate::worker::{TRACING, Task};
use crate::world::World;

const PLANTED: &str = "Hunter2-planted-9c1f";

/// Not even at TRACE, by any crate, in any error or `Debug`.
pub(crate) fn passwords_are_never_shown(store: &Store) {
    let world = World::of(store);
    let namespace = world.namespace();
    let good = world.task(&namespace, "good");
    let Parts { login, host, rest } = Parts::of(&good.url);
    let own = login.split_once(':').map(|(_, password)| password);
    let user = login.split(':').next().filter(|user| !user.is_empty());
    let with = |login: &str, host: &str| format!("{}://{login}@{host}{rest}", store.name);
    let planted = format!("{}:{PLANTED}", user.unwrap_or("vesta"));
    let nowhere = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|one| one.local_addr());
    let nowhere = nowhere.expect("a free port").to_string();
    let has_ids = |event: &Event| matches!(event, Event::Ids(_)).then_some(());
    let is_settled =
        |event: &Event| matches!(event, Event::Ids(_) | Event::Refused(_)).then_some(());
    let is_trying = |event: &Event| match event {
        Event::Log(line) => line.contains("the store does not answer").then_some(()),
        _ => None,
    };

    let mut said = String::new();
    let mut run = |url: String, until: &dyn Fn(&Event) -> Option<()>| {
        let mut process = Process::start(&Task { url, traces: true, ..good.clone() });
        process.until(until);
        process.kill();
        assert!(process.log.contains(TRACING), "{}", process.log);
        for text in process.other.iter().chain(&process.held).chain([&process.log]) {
            said.extend([text, "\n"]);
        }
    };
    run(good.url.clone(), &has_ids);
    // Refused, where there are users.
    run(with(&planted, host), &is_settled);
    run(with(&planted, &nowhere), &is_trying);
    // Characters that somebody forgot to encode.
    for flaw in ["/", "?", "#", "@", ":", "%zz", "["] {
        run(with(&format!("{planted}{flaw}{PLANTED}"), &nowhere), &|event| {
            is_trying(event).or(is_settled(event))
        });
    }
    run(format!("{}:{planted}", store.name), &is_settled);
    for option in ["password", "auth", PLANTED] {
        run(format!("{}?{option}={PLANTED}", with(&planted, &nowhere)), &|event| {
            is_trying(event).or(is_settled(event))
        });
    }

    for secret in own.into_iter().chain([PLANTED]) {
        assert_eq!(shape_in(secret, &said), None, "{secret} is shown");
    }
    println!("{:9} | no password in {} KiB of traces", world.name, said.len() / 1024);
}

/// The shape in which a text shows a secret, if it does.
fn shape_in(secret: &str, said: &str) -> Option<String> {
    let lower = said.to_ascii_lowercase();
    let shown =
        shapes(secret).into_iter().find(|shape| lower.contains(&shape.to_ascii_lowercase()));
    let decoded = || {
        let text = percent_decoded(said).to_ascii_lowercase();
        text.contains(&secret.to_ascii_lowercase()).then(|| format!("{secret}, percent-encoded"))
    };
    shown.or_else(decoded).or_else(|| in_base64(secret).into_iter().find(|it| said.contains(it)))
}

/// As text, and as bytes are printed.
fn shapes(secret: &str) -> [String; 3] {
    let bytes = secret.bytes().map(|byte| byte.to_string());
    let hex = secret.bytes().map(|byte| format!("{byte:02x}"));
    [secret.to_owned(), bytes.collect::<Vec<_>>().join(", "), hex.collect()]
}

/// Whatever of it is encoded.
fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if byte.is_ascii() => decoded.extend([char::from(byte)]),
            _ => decoded += part.get(..2).unwrap_or(part),
        }
        decoded += part.get(2..).unwrap_or_default();
    }
    decoded
}

/// The characters that are the secret's alone, in either alphabet, wherever it begins in the bytes that
/// were encoded, as in `user:password`. Of a short secret they are too few to mean anything.
fn in_base64(secret: &str) -> Vec<String> {
    let alphabet =
        |last: &'static str| ('A'..='Z').chain('a'..='z').chain('0'..='9').chain(last.chars());
    let mut found = Vec::new();
    for alphabet in [alphabet("+/"), alphabet("-_")] {
        let alphabet: Vec<char> = alphabet.collect();
        for before in 0..3_usize {
            let bytes = vec![0; before].into_iter().chain(secret.bytes());
            let bits: Vec<_> =
                bytes.flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
            let own = bits.chunks_exact(6).skip((before * 8).div_ceil(6));
            let digit = |bits: &[u8]| bits.iter().fold(0, |sum, bit| sum * 2 + usize::from(*bit));
            found.push(own.map(|bits| alphabet[digit(bits)]).collect::<String>());
        }
    }
    found.retain(|text| text.len() >= 8);
    found
}

#[test]
fn the_search_finds_a_planted_secret_in_each_shape() {
    for shown in [
        "Hunter2-planted-9c1f",
        "hunter2-PLANTED-9c1f",
        "[72, 117, 110, 116, 101, 114, 50, 45, 112, 108, 97, 110, 116, 101, 100, 45, 57, 99, 49, 102]",
        "48756E746572322D706C616E7465642D39633166",
        "mysql://vesta:Hunter2%2Dplanted%2d9c1f@db",
        "%48unter2-%70lanted-9c1%66 of 100% %zz",
        "SHVudGVyMi1wbGFudGVkLTljMWY=",               // itself
        "Basic dmVzdGE6SHVudGVyMi1wbGFudGVkLTljMWY=", // vesta:…
        "eDpIdW50ZXIyLXBsYW50ZWQtOWMxZg==",           // x:…
        "eHg6SHVudGVyMi1wbGFudGVkLTljMWYh",           // xx:…!
    ] {
        for said in [shown.to_owned(), format!("a line before 5%\n{shown}\nand one after %4")] {
            assert!(shape_in(PLANTED, &said).is_some(), "{said}");
        }
    }
    assert_eq!(shape_in(PLANTED, "Hunter2, 100%, SHVudGVyMg==, %48unter3-planted-9c1f"), None);
}

/// `scheme://login@host/rest`.
struct Parts<'a> {
    login: &'a str,
    host: &'a str,
    rest: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Self {
        let (_, body) = url.split_once("://").expect("a URL");
        let (login, place) = body.rsplit_once('@').unwrap_or(("", body));
        let (host, rest) = place.split_at(place.find(['/', '?']).unwrap_or(place.len()));
        Self { login, host, rest }
    }
}
