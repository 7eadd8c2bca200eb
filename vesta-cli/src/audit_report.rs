//! Report of `audit table`.

use std::collections::BTreeMap;

use serde_json::json;
use vesta_boot::answers::in_utc;
use vesta_explain::{Around, ColumnRounding};
use vesta_intf::{Field, UnixMillis};

use crate::Done;
use crate::audit_table::{Audit, Finding, Small, audited};
use crate::cli::TableArgs;
use crate::output::{Output, Table, answer, grouped};

pub(crate) fn run(args: &TableArgs, output: Output) -> Done {
    let (audit, repeated, looked_at) = audited(args)?;
    report(&audit, &repeated, &looked_at, args, output)
}

fn report(
    audit: &Audit,
    repeated: &Finding,
    looked_at: &str,
    args: &TableArgs,
    output: Output,
) -> Done {
    let mut unplanned = Finding::default();
    for (machine, (first, count)) in &audit.unplanned {
        unplanned.add(|| format!("machine {machine}: {count} IDs, first {first}"));
    }
    let rounding = audit.tally.rounding(repeated.count > 0);
    let mut rounded = Finding {
        count: audit.lost.count + rounding.map_or(0, |it| it.count),
        examples: audit.lost.examples.clone(),
    };
    let first = first_of_all(audit, rounding);
    if let Some(it) = rounding {
        rounded.examples.insert(0, format!("by {}", it.by));
    }
    let findings = [
        ("rounded", "IDs that look rounded", &rounded),
        ("repeated", "IDs that occur more than once", repeated),
        (
            "clockBack",
            "times that the clock of a machine went back",
            &audit.back,
        ),
        ("unplanned", "machines that were not planned", &unplanned),
        ("future", "IDs from the future", &audit.future),
        (
            "unreadable",
            "rows that hold no ID of this layout",
            &audit.unreadable,
        ),
    ];
    let moment = |millis: u64| in_utc(UnixMillis(millis), &args.layout.layout);
    let span = audit
        .span
        .map(|(first, last)| (moment(first), moment(last)));
    let machines: Vec<_> = audit.lines.keys().copied().collect();
    let (name, count) = (args.layout.layout.name(), grouped(audit.rows));
    let is_clean = findings.iter().all(|finding| finding.2.count == 0) && !machines.is_empty();
    let (mut text, mut table) = (
        format!("{count} rows of {looked_at}"),
        Table::new(["finding", "count", "first"]),
    );
    if let (Some((first, last)), [low, .., high] | [low @ high]) = (&span, &machines[..]) {
        let count = machines.len();
        let by = if count == 1 {
            format!("machine {low}")
        } else {
            format!("{count} machines, {low} to {high}")
        };
        text += &format!(", made from {first} to {last} by {by}");
    }
    text.push('\n');
    text += &first;
    if let Some(Small { count, low, high }) = &audit.small {
        let [rows, from, until] = [count, low, high].map(|it| grouped(*it));
        let until = if low == high {
            String::new()
        } else {
            format!(" to {until}")
        };
        text += &format!("{rows:>9}  rows are {from}{until}: not IDs of the layout {name}\n");
    }
    if machines.is_empty() {
        text += &format!("           no row holds an ID of the layout {name}\n");
    }
    let mut list = json!({});
    for (name, what, finding) in findings {
        text += &format!("{:>9}  {what}\n", grouped(finding.count));
        text.extend(
            finding
                .examples
                .iter()
                .map(|it| format!("           {it}\n")),
        );
        let first = finding.examples.first().cloned().unwrap_or_default();
        table.row([name.into(), finding.count.into(), first.into()]);
        list[name] = json!({ "count": finding.count, "examples": finding.examples });
    }
    text += &advice(audit, args, &machines);
    let small = audit.small.as_ref().map(|Small { count, low, high }| {
        json!({ "count": count, "from": low.to_string(), "until": high.to_string() })
    });
    let json = json!({
        "lookedAt": looked_at, "rows": audit.rows, "small": small, "moments": span, "machines": machines,
        "written": audit.forms.iter().map(|(name, (count, _))| (*name, *count)).collect::<BTreeMap<_, _>>(),
        "findings": list,
    });
    answer(output, is_clean, &text, &json, &table.render(Output::Csv))
}

/// The lines above the findings: the form of the rows, and whether they look rounded.
fn first_of_all(audit: &Audit, rounding: Option<ColumnRounding>) -> String {
    let mut text = String::new();
    let of = grouped(audit.rows);
    if let Some(ColumnRounding { by, count, is_sure }) = rounding {
        let look = if is_sure { "look" } else { "may be" };
        text += &format!(
            "{} of {of} IDs {look} rounded by {by}: repetitions below may come from that; export the column as text\n",
            grouped(count)
        );
    }
    for (count, Around { name, remedy, .. }) in audit.forms.values() {
        text += &format!("{} of {of} rows: {name}; {remedy}\n", grouped(*count));
    }
    if let Some(format) = audit.tally.checked() {
        text += &format!(
            "each row also fits {format}: pass --format {format} if its last digits are check digits\n"
        );
    }
    text
}

/// Advice for continuing from here: machine IDs and a floor.
fn advice(audit: &Audit, args: &TableArgs, machines: &[u64]) -> String {
    let Some((_, last)) = audit.span else {
        return String::new();
    };
    let highest = machines.last().copied().unwrap_or(0);
    let (layout, most) = (&args.layout.layout, args.layout.layout.max(Field::Machine));
    let range = match highest < most {
        true => format!("machine.range = \"{}-{most}\", or ", highest + 1),
        false => String::new(),
    };
    // One tick later, so that it is above every one of them.
    let floor = in_utc(UnixMillis(last + layout.spec().unit.millis()), layout);
    format!("to continue from here: {range}a floor: vesta store raise-floor --to {floor}\n")
}
