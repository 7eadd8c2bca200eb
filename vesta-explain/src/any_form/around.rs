//! Writing around a number: shells, spreadsheets, database consoles and exports add it.

use crate::rounded::{is_double, sharing_a_double};

/// Writing around a number, or in place of its digits.
#[derive(Debug, PartialEq, Eq)]
pub struct Around {
    /// Its name.
    pub name: &'static str,
    /// The remedy, for people.
    pub remedy: &'static str,
}

/// Takes the outermost writing off a text that has it.
type Peel = fn(&str) -> Option<Peeled>;

/// A text without its outermost writing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Peeled {
    /// The rest.
    Text(String),
    /// Digits are lost: any of these IDs.
    Lost { from: u64, until: u64 },
}

impl Peeled {
    fn of(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

const DIGITS_ALONE: &str = "export the digits alone";
const AS_TEXT: &str = "export the column as text";

macro_rules! forms {
    ($($name:literal $remedy:expr, $peel:expr;)*) => {
        /// All of them; the first that fits is the outermost.
        static FORMS: &[(Around, Peel)] = &[$((Around { name: $name, remedy: $remedy }, $peel)),*];
    };
}

// name, remedy, rule
forms! {
    "invisible characters" "save the file without a byte order mark and formatting characters", invisible;
    "full-width characters" "write the digits in ASCII", full_width;
    "table border" "export unaligned: psql -At, mysql -N -B, sqlite3 -list", border;
    "punctuation behind it" DIGITS_ALONE, punctuation;
    "formula of a spreadsheet" DIGITS_ALONE, formula;
    "member of JSON" "read it with a JSON parser that keeps 64 bits", member;
    "type cast" DIGITS_ALONE, cast;
    "constructor" "export the value as text: in MongoDB $toString", call;
    "label" "remove the label: sed 's/^.*[_:=#]//'", label;
    "mention" DIGITS_ALONE, mention;
    "hexadecimal or binary literal" "write it in decimal, or in hexadecimal after 0x", radix;
    "quotes or brackets" DIGITS_ALONE, quotes;
    "literal of a language" DIGITS_ALONE, literal;
    "plus sign" DIGITS_ALONE, |text| text.strip_prefix('+').map(Peeled::of);
    "digit separators" "export without digit grouping: no number format, no locale", separators;
    "decimal fraction" "store the column as a whole number or as text, never as a double", fraction;
    "scientific notation" AS_TEXT, scientific;
}

/// Takes off the outermost writing.
pub(super) fn peel(text: &str) -> Option<(&'static Around, Peeled)> {
    let peeled = |(form, peel): &'static (Around, Peel)| Some((form, peel(text)?));
    FORMS.iter().find_map(peeled)
}

/// Byte order mark, characters of width zero, marks of the writing direction.
fn invisible(text: &str) -> Option<Peeled> {
    let is = |c: char| matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    text.contains(is)
        .then(|| Peeled::Text(text.replace(is, "")))
}

/// Digits, letters and signs of East Asian width; the typographic minus.
fn full_width(text: &str) -> Option<Peeled> {
    let ascii = |c: char| match c {
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0).unwrap_or(c),
        '\u{2212}' => '-',
        c => c,
    };
    let plain: String = text.chars().map(ascii).collect();
    (plain != text).then_some(Peeled::Text(plain))
}

/// Of psql, mysql, sqlite3, Markdown.
fn border(text: &str) -> Option<Peeled> {
    trimmed(text, text.trim_matches(['|', '│', '┃', '║', '¦']))
}

fn punctuation(text: &str) -> Option<Peeled> {
    trimmed(
        text,
        text.trim_end_matches([',', ';', '.', '，', '；', '。', '、']),
    )
}

/// `="1785…"`, as spreadsheets read a text from CSV.
fn formula(text: &str) -> Option<Peeled> {
    text.strip_prefix('=').map(Peeled::of)
}

/// `{"$numberLong":"1785…"}`, `{"id":1785…}`.
fn member(text: &str) -> Option<Peeled> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    inner.split_once(':').map(|(_, value)| Peeled::of(value))
}

/// `1785…::bigint`, `(integer) 1785…`.
fn cast(text: &str) -> Option<Peeled> {
    let is_type = |name: &str| {
        let is = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ' ';
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is)
    };
    let behind = text.split_once("::").filter(|it| is_type(it.1));
    let before = || {
        text.strip_prefix('(')?
            .split_once(')')
            .filter(|it| is_type(it.0))
    };
    let inner = behind.map(|it| it.0).or_else(|| before().map(|it| it.1));
    inner.filter(|inner| !inner.is_empty()).map(Peeled::of)
}

/// `NumberLong("1785…")`, `new Long('1785…')`, `np.int64(1785…)`, `CAST(1785… AS BIGINT)`.
fn call(text: &str) -> Option<Peeled> {
    let (name, inner) = text.strip_suffix(')')?.split_once('(')?;
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | ' ' | '$');
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(is_inner);
    let value = inner.trim().split([' ', ',']).next().unwrap_or(inner);
    is_name.then(|| Peeled::of(value))
}

/// `ID_1785…`, `user:1785…`, `"id": 1785…`, `#1785…`.
fn label(text: &str) -> Option<Peeled> {
    let is_name = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '.' | '"' | '\'' | '$');
    let rest = text.trim_start_matches(is_name);
    let name = &text[..text.len() - rest.len()];
    let rest = rest.trim_start();
    let number = match rest.strip_prefix([':', '=', '#', '-', '@']) {
        Some(number) => number.trim_start(),
        None if name.ends_with('_') => rest,
        None => return None,
    };
    let begins = number.trim_start_matches(['"', '\'', '-', '+', '\\']);
    let is_number = begins.starts_with(|c: char| c.is_ascii_digit());
    // A sign in front of a number is no label.
    (is_number && !(name.is_empty() && rest.starts_with(['-', ':']))).then(|| Peeled::of(number))
}

/// `<@1785…>`, as in Discord.
fn mention(text: &str) -> Option<Peeled> {
    let inner = text.strip_prefix('<')?.strip_suffix('>')?;
    Some(Peeled::of(inner.trim_start_matches(['@', '#', '!', '&'])))
}

fn quotes(text: &str) -> Option<Peeled> {
    let is = |c: char| "\"'`´‘’‚‛“”„‟«»‹›「」『』《》()[]\\".contains(c);
    trimmed(text, text.trim_matches(is))
}

/// `1785…n`, `1785…L`, `1785…ULL`, `1785…u64`.
fn literal(text: &str) -> Option<Peeled> {
    let number = text
        .trim_end_matches("64")
        .trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '_');
    let suffix = &text[number.len()..]
        .trim_start_matches('_')
        .to_ascii_lowercase();
    let is_number = number.contains(|c: char| c.is_ascii_digit())
        && !number.contains(|c: char| c.is_alphabetic());
    let is_suffix = matches!(
        &**suffix,
        "n" | "l" | "ll" | "u" | "ul" | "ull" | "lu" | "llu" | "m" | "i64" | "u64" | "uz" | "z"
    );
    (is_number && is_suffix).then(|| Peeled::of(number))
}

/// `X'18C6…'`, `\x18c6…`, `0b0001…`.
fn radix(text: &str) -> Option<Peeled> {
    let quoted = |start| {
        text.strip_prefix(start)
            .and_then(|text| text.strip_suffix('\''))
    };
    let hex = quoted("X'")
        .or_else(|| quoted("x'"))
        .or_else(|| text.strip_prefix("\\x"));
    if let Some(hex) = hex.filter(|hex| !hex.is_empty()) {
        return Some(Peeled::Text(format!("0x{hex}")));
    }
    let binary = text
        .strip_prefix("0b")
        .or_else(|| text.strip_prefix("0B"))?;
    let id = u64::from_str_radix(&binary.replace('_', ""), 2).ok()?;
    Some(Peeled::Text(id.to_string()))
}

/// Groups of three digits; behind an underscore of any length, as in literals of Rust, Java and Python.
fn separators(text: &str) -> Option<Peeled> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let by = digits.chars().find(|c| !c.is_ascii_digit())?;
    let is_blank = by.is_whitespace();
    let groups: Vec<_> = digits.split(by).collect();
    let is_digits = |group: &&str| !group.is_empty() && group.bytes().all(|it| it.is_ascii_digit());
    let [first, middle @ .., last] = &groups[..] else {
        return None;
    };
    // Also groups of two before the last three, as in India.
    let is_grouped = last.len() == 3
        && first.len() <= 3
        && (middle.iter().all(|it| it.len() == 3) || middle.iter().all(|it| it.len() == 2));
    // One point divides whole numbers from fractions.
    let is_separator = match by {
        '_' => true,
        '.' => is_grouped && !middle.is_empty(),
        ',' | '\'' | '’' | '٬' => is_grouped,
        _ => is_blank && is_grouped,
    };
    let sign = &text[..text.len() - digits.len()];
    (is_separator && groups.iter().all(is_digits))
        .then(|| Peeled::Text(sign.to_owned() + &groups.concat()))
}

/// `1785….0`: exact, unless the whole number is that of a double that stands for several.
fn fraction(text: &str) -> Option<Peeled> {
    let (whole, zeros) = text.split_once(['.', ','])?;
    let is_zero = !zeros.is_empty() && zeros.bytes().all(|it| it == b'0');
    let id: u64 = whole.parse().ok().filter(|_| is_zero)?;
    let (from, until) = sharing_a_double(id);
    Some(match from < until && is_double(id) {
        true => Peeled::Lost { from, until },
        false => Peeled::of(whole),
    })
}

/// Digits with which every double is named.
const ALL_OF_A_DOUBLE: usize = 17;

/// `1.7852234705859215e+18`. With 17 digits it names a double; with fewer it is the shortest text of one, or was
/// rounded, or (15 digits and fewer, in spreadsheets) cut off.
fn scientific(text: &str) -> Option<Peeled> {
    let (number, exponent) = text.split_once(['e', 'E'])?;
    let exponent: usize = exponent
        .strip_prefix('+')
        .unwrap_or(exponent)
        .parse()
        .ok()?;
    let (whole, fraction) = number.split_once(['.', ',']).unwrap_or((number, ""));
    let digits = [whole, fraction].concat();
    let is_number = whole.len() == 1 && digits.bytes().all(|it| it.is_ascii_digit());
    if !is_number || exponent > 19 || digits.len() > 40 {
        return None;
    }
    let places = exponent + 1;
    if digits.len() >= places {
        let (number, rest) = digits.split_at(places);
        let id: u64 = number
            .parse()
            .ok()
            .filter(|_| rest.bytes().all(|it| it == b'0'))?;
        // More digits than a double has, or few enough for it to be exact.
        let is_exact = digits.len() > ALL_OF_A_DOUBLE || id < 1 << 53;
        let (from, until) = sharing_a_double(id);
        return Some(if is_exact {
            Peeled::of(number)
        } else {
            Peeled::Lost { from, until }
        });
    }
    let missing = u32::try_from(places - digits.len()).ok()?;
    let step = 10u128.pow(missing);
    let number = digits.parse::<u128>().ok()?.checked_mul(step)?;
    let half = match digits.len() {
        ALL_OF_A_DOUBLE => 0,
        _ => step / 2,
    };
    let above = if digits.len() <= 15 { step - 1 } else { half };
    let within = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    u64::try_from(number - half).ok()?;
    let (from, _) = sharing_a_double(within(number - half));
    let (_, until) = sharing_a_double(within(number + above));
    Some(Peeled::Lost { from, until })
}

fn trimmed(text: &str, inner: &str) -> Option<Peeled> {
    (inner.len() < text.len() && !inner.is_empty()).then(|| Peeled::of(inner))
}
