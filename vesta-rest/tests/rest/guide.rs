//! docs/use/rest.md matches the server.

use vesta_explain::layouts;
use vesta_intf::{ErrorKind, IdFormat};
use vesta_rest::app::ENDPOINTS;

const GUIDE: &str = include_str!("../../../docs/use/rest.md");

#[test]
fn it_names_every_endpoint_and_every_kind_of_error() {
    for endpoint in ENDPOINTS {
        let path = endpoint.path.split("{file").next().unwrap();
        assert!(GUIDE.contains(path), "{path}");
    }
    // Errors that only a server with other modes returns.
    let elsewhere = [ErrorKind::Unsupported];
    for kind in ErrorKind::all().filter(|kind| !elsewhere.contains(kind)) {
        let row = GUIDE
            .lines()
            .find(|line| line.contains(&format!("`{}`", kind.name())));
        let row = row.unwrap_or_else(|| panic!("{} is missing", kind.name()));
        assert!(row.contains(&kind.http_status().to_string()), "{row}");
    }
}

#[test]
fn the_page_about_security_has_the_scope_of_every_endpoint() {
    let page = include_str!("../../../docs/operate/security.md");
    let mut checked = 0;
    for endpoint in ENDPOINTS
        .iter()
        .filter(|endpoint| !endpoint.needs.is_empty())
    {
        let start = format!("| `{}` |", endpoint.needs);
        let row = page.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("no row of {}", endpoint.needs));
        let path = endpoint
            .path
            .split_once('{')
            .map(|(fixed, _)| format!("`{fixed}…`"));
        let path = path.unwrap_or_else(|| format!("`{}`", endpoint.path));
        assert!(row.contains(&path), "{path}: {row}");
        checked += 1;
    }
    assert!(checked >= 15, "{checked}");
}

#[test]
fn it_names_every_format_with_an_example_and_every_layout() {
    for format in IdFormat::ALL {
        let row = GUIDE
            .lines()
            .find(|line| line.starts_with(&format!("| `{format}` |")));
        let text = format.encode(2_407_837_855_670_862_845);
        assert!(
            row.is_some_and(|row| row.ends_with(&format!("| `{text}` |"))),
            "{format} {text}"
        );
    }
    let (_, layouts) = GUIDE.split_once("### IDs from other systems").unwrap();
    for meta in layouts::all() {
        assert!(layouts.contains(&format!("`{}`", meta.name())), "{meta}");
    }
}
