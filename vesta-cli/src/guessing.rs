//! `explain --layout guess`: the layouts that may have made an ID.

use serde_json::json;
use vesta_boot::answers::{Rounding, in_utc};
use vesta_boot::output::value;
use vesta_explain::{Guess, Rounded, guess, rounded};
use vesta_intf::Field;

use crate::cli::ExplainArgs;
use crate::output::{Output, print, say};
use crate::values::{beside, day, now};
use crate::{Answer, Done};

/// Maximum candidates shown.
const MOST: usize = 5;

/// Name for the share of systems without a known layout.
const OTHER: &str = "another system";

pub(crate) fn guessing(raw: u64, form: Option<&str>, args: &ExplainArgs, output: Output) -> Done {
    let mut found = guess(raw, now(), args.made.clone());
    let likeliest = found.likeliest().cloned();
    found.candidates.truncate(MOST);
    found.candidates.retain(|it| percent(it.probability) >= 1.0);
    let made = |it: &Guess| in_utc(it.moment, &it.layout);
    if let Some(form) = form.filter(|_| output == Output::Text) {
        print(&format!("as {form} {raw}: "))?;
    }
    print(&match (output, &likeliest) {
        (Output::Json, _) => {
            let one = |it: &Guess| {
                let (made, share) = (made(it), share(it.probability));
                json!({
                    "layout": it.layout.name(), "moment": made, "probability": share,
                    "machine": it.id.machine, "seq": it.id.seq
                })
            };
            let guesses: Vec<_> = found.candidates.iter().map(one).collect();
            let mut json =
                json!({ "id": raw.to_string(), "guesses": guesses, "other": share(found.other) });
            if let Some(form) = form {
                json["format"] = form.into();
            }
            if let Some(rounding) = Rounding::of(raw) {
                json["rounded"] = value(&rounding);
            }
            format!("{json}\n")
        }
        (Output::Csv, _) => {
            let mut csv = String::from("id,layout,probability,moment\n");
            for it in &found.candidates {
                csv += &format!(
                    "{raw},{},{},{}\n",
                    it.layout.name(),
                    share(it.probability),
                    made(it)
                );
            }
            csv + &format!("{raw},{OTHER},{},\n", share(found.other))
        }
        (Output::Text, None) => {
            "unknown: no known layout is likely to have made this ID\n".to_owned()
        }
        (Output::Text, Some(first)) if percent(first.probability) >= 100.0 => {
            let mut line = format!("{} 100 %  {}", first.layout.name(), made(first));
            let is_above = |(name, _): &(&str, u64)| *name == Field::GenMethod.name();
            for (name, value) in beside(&first.layout, &first.id).skip_while(is_above) {
                line += &format!("  {name} {value}");
            }
            line + "\n"
        }
        (Output::Text, Some(_)) => {
            let one = |it: &Guess| {
                let (name, day) = (it.layout.name(), day(it.moment));
                format!("{name} {} % {day}", percent(it.probability))
            };
            let last = format!("{OTHER} {} %\n", percent(found.other));
            found
                .candidates
                .iter()
                .map(one)
                .chain([last])
                .collect::<Vec<_>>()
                .join(" · ")
        }
    })?;
    if let Some(rounded) = rounded(raw).filter(|_| output == Output::Text) {
        say(&may_be(&rounded));
    }
    // Never the month of a candidate: that would confirm itself.
    if output == Output::Text && args.made.is_none() {
        say(
            "the bits alone are not certain: if you know from elsewhere about when it was made, add --made YYYY-MM",
        );
    }
    Ok(if likeliest.is_some() {
        Answer::Yes
    } else {
        Answer::No
    })
}

fn percent(probability: f64) -> f64 {
    (probability * 100.0).round()
}

/// Four digits: no guess is more precise.
fn share(probability: f64) -> f64 {
    (probability * 10_000.0).round() / 10_000.0
}

/// The IDs that a number in the shape of a rounded one may have been.
pub(crate) fn may_be(it: &Rounded) -> String {
    let Rounded { by, from, until } = it;
    format!("may be rounded by {by}: the ID lies between {from} and {until}")
}
