//! `layout`: lists, shows, checks and designs layouts.

use vesta_boot::answers::{NamedLayout, Row as _, Shape};
use vesta_boot::output::value;
use vesta_boot::settings::{layout_table, read_layout};
use vesta_boot::{Error, period};
use vesta_explain::{design, layouts};
use vesta_intf::{Field, IdMeta, SequenceStart, UnixMillis};

use crate::cli::LayoutCommand;
use crate::output::{Cell, Output, Table, facts, grouped, print, say};
use crate::values::{day, now, relative};
use crate::{Answer, Done};

pub(crate) fn run(command: LayoutCommand, output: Output) -> Done {
    match command {
        LayoutCommand::List => list(output),
        LayoutCommand::Show { layout } => show(&layout, output),
        LayoutCommand::Check { file } => {
            let layout = read_layout(&file)?;
            layout.check_generates().map_err(Error::setting)?;
            show(&layout, output)
        }
        LayoutCommand::Design {
            years,
            machines,
            per_second,
            digits,
            epoch,
            toml,
        } => {
            let (Some(years), Some(machines), Some(per_second)) = (years, machines, per_second)
            else {
                let digits = digits.unwrap_or(LONG_DIGITS);
                return fitting(digits, [years, machines, per_second], output);
            };
            let epoch = epoch.unwrap_or_else(this_year);
            let spec = design(years, machines, per_second, epoch).map_err(Error::setting)?;
            let layout = IdMeta::new(spec).map_err(Error::setting)?;
            if let Some(digits) = digits.filter(|it| layout.total_bits() > bits_of(*it)) {
                return Error::refuse(format!(
                    "these IDs need {} bits, and {digits} digits have room for {}; ask for less: \
                     --digits {digits} alone lists what fits",
                    layout.total_bits(),
                    bits_of(digits)
                ));
            }
            match toml {
                true => print(&format!("{}# {}\n", layout_table(spec), sharding(&layout))),
                false => show(&layout, output),
            }
        }
    }
}

fn this_year() -> UnixMillis {
    period(&day(now())[..4]).map_or(now(), |year| *year.start())
}

/// Digits of the largest signed number.
const LONG_DIGITS: u32 = 19;
/// Lifetimes and numbers of machines in a list, unless given.
const YEARS: [u64; 5] = [5, 10, 20, 40, 80];
const MACHINES: [u64; 6] = [1, 4, 16, 64, 256, 1024];

/// Bits that always fit into this many decimal digits, at most 63.
fn bits_of(digits: u32) -> u8 {
    let bits = 10u64.checked_pow(digits).map_or(63, u64::ilog2);
    u8::try_from(bits.min(63)).unwrap_or(63)
}

/// Lists the highest rate of each lifetime and number of machines in IDs with this number of digits.
fn fitting(digits: u32, [years, machines, per_second]: [Option<u64>; 3], output: Output) -> Done {
    let fits = |years, machines, rate| {
        let spec = design(years, machines, rate, UnixMillis(0)).ok()?;
        let layout = IdMeta::new(spec).ok()?;
        (layout.total_bits() <= bits_of(digits)).then_some(layout)
    };
    let each = |given: Option<u64>, usual: &[u64]| given.map_or(usual.to_vec(), |it| vec![it]);
    let mut table = Table::new(["years", "machines", "per second", "bits"]);
    let mut rows = 0;
    for years in each(years, &YEARS) {
        for machines in each(machines, &MACHINES) {
            // The rate is a power of two, or a thousand or hundred times one.
            let rates = (0..63)
                .flat_map(|bits| [1, 100, 1000].map(|ticks| (1u64 << bits).saturating_mul(ticks)));
            let rates = rates.filter(|rate| fits(years, machines, *rate).is_some());
            let Some(most) = rates
                .max()
                .filter(|most| per_second.is_none_or(|it| it <= *most))
            else {
                continue;
            };
            let bits = fits(years, machines, most).map_or(0, |layout| layout.total_bits());
            let cells = [years, machines, most, bits.into()];
            table.row(cells.map(Cell::from));
            rows += 1;
        }
    }
    if rows == 0 {
        return Error::refuse(format!(
            "nothing fits: {digits} digits have room for {} bits; ask for less, or for more digits",
            bits_of(digits)
        ));
    }
    print(&table.render(output))?;
    say("for a layout, repeat one line: --years N --machines N --per-second N");
    Ok(Answer::Yes)
}

fn list(output: Output) -> Done {
    if output == Output::Json {
        let line = |layout| format!("{}\n", value(&NamedLayout::from(&layout)));
        return print(&layouts::all().map(line).collect::<String>());
    }
    let mut table = Table::new(["name", "bits", "unit", "ends", "about"]);
    for layout in layouts::all() {
        let fields = layout
            .fields()
            .into_iter()
            .filter(|field| layout.bits(*field) > 0);
        let bits = fields.map(|field| format!("{} {}", field.name(), layout.bits(field)));
        let bits = bits.collect::<Vec<_>>().join(" + ");
        let unit = layout.spec().unit.to_string();
        let name = layout.name().to_owned();
        table.row(
            [
                name,
                bits,
                unit,
                day(layout.end()),
                layouts::about(&layout).to_owned(),
            ]
            .map(Cell::from),
        );
    }
    print(&table.render(output))
}

/// Start of a tick that spreads IDs over up to 64 shards.
const SPREAD: SequenceStart = SequenceStart::Random(64);

/// Bits of a sequence that loses little by it.
const SPREAD_BITS: u8 = 8;

/// Spread of the IDs of one machine ID under `id % n`.
fn sharding(layout: &IdMeta) -> String {
    let spread = "id % n spreads the IDs of a machine ID as far as their sequence numbers do";
    let is_short = layout.spec().unit.millis() < 1000 && layout.bits(Field::Seq) >= SPREAD_BITS;
    match layout.same_low_bits() {
        // Most ticks have one ID, whose sequence number is the first.
        0 if is_short => format!(
            "{spread}; at low rates nearly all of these are 0, and shards by id % n are uneven: set \
             sequence_start = \"{SPREAD}\""
        ),
        0 => spread.to_owned(),
        bits => format!(
            "id % 2^k is the same for all IDs of a machine ID up to k = {bits}: use a hash or an odd n"
        ),
    }
}

/// The width of numbers that JavaScript holds exactly.
const JS_BITS: u8 = 53;

fn show(layout: &IdMeta, output: Output) -> Done {
    let shape = Shape::from(layout);
    let total = layout.total_bits();
    let generates = layout.check_generates();
    let texts = [
        layout.to_string(),
        total.to_string(),
        shape.epoch.clone(),
        format!("{} ({})", shape.ends, relative(layout.end(), now())),
        grouped(shape.machine_ids),
        format!(
            "{} IDs of each machine ID",
            grouped(shape.capacity_per_second)
        ),
        sharding(layout),
        generates.map_or_else(|error| format!("no: {error}"), |()| "yes".into()),
    ];
    let rows: Vec<_> = Shape::COLUMNS.iter().copied().zip(texts).collect();
    print(&match output {
        Output::Text => facts(&rows),
        output => Table::of(&[shape]).render(output),
    })?;
    if total == 64 && layout.spec().version_bits == 0 {
        say("its IDs need 64 bits: as signed numbers some of them are negative");
    } else if total > JS_BITS {
        say("JavaScript numbers are exact up to 53 bits: give these IDs as text there");
    }
    Ok(Answer::Yes)
}
