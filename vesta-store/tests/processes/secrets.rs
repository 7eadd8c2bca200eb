//! No output ever shows the password in a URL, whatever goes wrong.

use vesta_testkit::fleet::{Event, free_ports};
use vesta_testkit::shape_in;

use crate::stores::Store;
use crate::worker::{TRACING, Task, launch};
use crate::world::World;

const PLANTED: &str = "Hunter2-planted-9c1f";

/// No crate shows one at any level down to TRACE, in any error or `Debug`.
pub(crate) fn passwords_are_never_shown(store: &Store) {
    let world = World::of(store);
    let namespace = world.namespace();
    let good = world.task(&namespace, "good");
    let Parts { login, host, rest } = Parts::of(&good.url);
    let own = login.split_once(':').map(|(_, password)| password);
    let user = login.split(':').next().filter(|user| !user.is_empty());
    let scheme = good.url.split(':').next().unwrap_or_default();
    let with = |login: &str, host: &str| format!("{scheme}://{login}@{host}{rest}");
    // A pool server has tokens, but no users.
    let user = user.unwrap_or(if scheme == "vesta" { "" } else { "vesta" });
    let planted = format!("{user}:{PLANTED}");
    let nowhere = format!("127.0.0.1:{}", free_ports(1)[0]);
    let has_ids = |event: &Event| matches!(event, Event::Ids(_)).then_some(());
    let is_settled =
        |event: &Event| matches!(event, Event::Ids(_) | Event::Refused(_)).then_some(());
    let is_trying = |event: &Event| match event {
        Event::Log(line) => line.contains("the store does not answer").then_some(()),
        _ => None,
    };

    let mut said = String::new();
    let mut run = |url: String, until: &dyn Fn(&Event) -> Option<()>| {
        let mut process = launch(&Task {
            url,
            traces: true,
            ..good.clone()
        });
        process.until(until);
        process.kill();
        assert!(process.log.contains(TRACING), "{}", process.log);
        for text in process
            .other
            .iter()
            .chain(&process.held)
            .chain([&process.log])
        {
            said.extend([text, "\n"]);
        }
    };
    run(good.url.clone(), &has_ids);
    // Refused, if the store has users.
    run(with(&planted, host), &is_settled);
    run(with(&planted, &nowhere), &is_trying);
    // Unencoded special characters.
    for flaw in ["/", "?", "#", "@", ":", "%zz", "["] {
        run(
            with(&format!("{planted}{flaw}{PLANTED}"), &nowhere),
            &|event| is_trying(event).or(is_settled(event)),
        );
    }
    run(format!("{scheme}:{planted}"), &is_settled);
    for option in ["password", "auth", PLANTED] {
        run(
            format!("{}?{option}={PLANTED}", with(&planted, &nowhere)),
            &|event| is_trying(event).or(is_settled(event)),
        );
    }

    for secret in own.into_iter().chain([PLANTED]) {
        assert_eq!(shape_in(secret, &said), None, "{secret} is shown");
    }
    println!(
        "{:9} | no password in {} KiB of traces",
        world.name,
        said.len() / 1024
    );
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
