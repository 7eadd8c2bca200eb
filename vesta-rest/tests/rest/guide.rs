//! docs/use/rest.md and api.md match the server.

use vesta_intf::ErrorKind;
use vesta_rest::app::ENDPOINTS;

#[test]
fn they_name_every_endpoint_and_every_kind_of_error() {
    let guide = include_str!("../../../docs/use/rest.md");
    for endpoint in ENDPOINTS {
        let path = endpoint.path.split("{file").next().unwrap();
        assert!(guide.contains(path), "{path}");
    }
    let reference = include_str!("../../../docs/use/api.md");
    for kind in ErrorKind::all() {
        let start = format!("| `{}` | `", kind.name());
        let row = reference.lines().find(|line| line.starts_with(&start));
        let row = row.unwrap_or_else(|| panic!("{} is missing", kind.name()));
        assert!(row.contains(&format!("| {}", kind.http_status())), "{row}");
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
