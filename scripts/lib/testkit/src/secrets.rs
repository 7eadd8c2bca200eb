//! Search for secrets in a program's output.

/// The shape in which a text shows a secret, if any: plain in either case, as a list of bytes, in
/// hexadecimal, percent-encoded or in Base64.
#[must_use]
pub fn shape_in(secret: &str, said: &str) -> Option<String> {
    let lower = said.to_ascii_lowercase();
    let shown = shapes(secret)
        .into_iter()
        .find(|shape| lower.contains(&shape.to_ascii_lowercase()));
    let decoded = || {
        let text = percent_decoded(said).to_ascii_lowercase();
        text.contains(&secret.to_ascii_lowercase())
            .then(|| format!("{secret}, percent-encoded"))
    };
    shown
        .or_else(decoded)
        .or_else(|| in_base64(secret).into_iter().find(|it| said.contains(it)))
}

/// The secret as text, and as printed bytes.
fn shapes(secret: &str) -> [String; 3] {
    let bytes = secret.bytes().map(|byte| byte.to_string());
    let hex = secret.bytes().map(|byte| format!("{byte:02x}"));
    [
        secret.to_owned(),
        bytes.collect::<Vec<_>>().join(", "),
        hex.collect(),
    ]
}

/// Decodes every percent-encoded part.
fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut decoded = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part
            .get(..2)
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
        {
            Some(byte) if byte.is_ascii() => decoded.extend([char::from(byte)]),
            _ => decoded += part.get(..2).unwrap_or(part),
        }
        decoded += part.get(2..).unwrap_or_default();
    }
    decoded
}

/// The Base64 characters that depend on the secret alone, in either alphabet and at any offset in the
/// encoded bytes, as in `user:password`. For a short secret they are too few to be significant.
fn in_base64(secret: &str) -> Vec<String> {
    let alphabet = |last: &'static str| {
        ('A'..='Z')
            .chain('a'..='z')
            .chain('0'..='9')
            .chain(last.chars())
    };
    let mut found = Vec::new();
    for alphabet in [alphabet("+/"), alphabet("-_")] {
        let alphabet: Vec<char> = alphabet.collect();
        for before in 0..3_usize {
            let bytes = vec![0; before].into_iter().chain(secret.bytes());
            let bits: Vec<_> = bytes
                .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
                .collect();
            let own = bits.chunks_exact(6).skip((before * 8).div_ceil(6));
            let digit = |bits: &[u8]| bits.iter().fold(0, |sum, bit| sum * 2 + usize::from(*bit));
            found.push(own.map(|bits| alphabet[digit(bits)]).collect::<String>());
        }
    }
    found.retain(|text| text.len() >= 8);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANTED: &str = "Hunter2-planted-9c1f";

    #[test]
    fn the_search_finds_a_planted_secret_in_each_shape() {
        for shown in [
            "Hunter2-planted-9c1f",
            "hunter2-PLANTED-9c1f",
            "[72, 117, 110, 116, 101, 114, 50, 45, 112, 108, 97, 110, 116, 101, 100, 45, 57, 99, 49, 102]",
            "48756E746572322D706C616E7465642D39633166",
            "mysql://vesta:Hunter2%2Dplanted%2d9c1f@db",
            "%48unter2-%70lanted-9c1%66 of 100% %zz",
            "SHVudGVyMi1wbGFudGVkLTljMWY=", // the secret itself
            "Basic dmVzdGE6SHVudGVyMi1wbGFudGVkLTljMWY=", // vesta:…
            "eDpIdW50ZXIyLXBsYW50ZWQtOWMxZg==", // x:…
            "eHg6SHVudGVyMi1wbGFudGVkLTljMWYh", // xx:…!
        ] {
            for said in [
                shown.to_owned(),
                format!("a line before 5%\n{shown}\nand one after %4"),
            ] {
                assert!(shape_in(PLANTED, &said).is_some(), "{said}");
            }
        }
        assert_eq!(
            shape_in(
                PLANTED,
                "Hunter2, 100%, SHVudGVyMg==, %48unter3-planted-9c1f"
            ),
            None
        );
    }
}
