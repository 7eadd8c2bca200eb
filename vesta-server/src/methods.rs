//! The methods of the server: service, name and scope.

use vesta_boot::Scopes;
use vesta_intf::plain;

/// A method of the protocol.
pub(crate) struct Method {
    service: &'static str,
    name: &'static str,
    pub(crate) scope: Scopes,
}

impl Method {
    /// Name and attributes of a call's span, as OpenTelemetry has them.
    pub(crate) fn described(&self) -> (String, Vec<(&'static str, String)>) {
        let service = format!("vesta.v1.{}", self.service);
        let name = format!("{service}/{}", self.name);
        let attributes = vec![
            ("rpc.system", "grpc".to_owned()),
            ("rpc.service", service),
            ("rpc.method", self.name.to_owned()),
        ];
        (name, attributes)
    }
}

macro_rules! methods {
    ($($index:ident = $service:ident $name:ident $scope:ident;)*) => {
        #[allow(clippy::upper_case_acronyms, non_camel_case_types)]
        enum Index { $($index),* }
        $(pub(crate) const $index: usize = Index::$index as usize;)*

        pub(crate) const TABLE: &[Method] = &[$(Method {
            service: stringify!($service),
            name: stringify!($name),
            scope: Scopes::$scope,
        }),*];

        /// Method names, as labels of the metrics.
        pub const METHODS: &[&str] = &[$(stringify!($name)),*];
    };
}

methods! {
    GEN_ID = IdService GenId GENERATE;
    GEN_IDS = IdService GenIds GENERATE;
    GEN_RUNS = IdService GenRuns GENERATE;
    EXP_ID = IdService ExpId READ;
    MAKE_ID = IdService MakeId READ;
    TRANS_TIME = IdService TransTime READ;
    NEXT_ID = SegmentService NextId SEGMENTS;
    NEXT_IDS = SegmentService NextIds SEGMENTS;
    NEXT = SerialService Next SERIALS;
    PARSE = SerialService Parse SERIALS;
    OPEN = PoolService Open POOL;
    LIST = PoolService List POOL;
    GET = PoolService Get POOL;
    PUT = PoolService Put POOL;
    CREATE = SerialService Create ADMIN;
}

/// Index of the method at a path.
pub(crate) fn at(path: &str) -> Option<usize> {
    let (service, name) = path.strip_prefix("/vesta.v1.")?.split_once('/')?;
    TABLE
        .iter()
        .position(|method| method.service == service && method.name == name)
}

/// Refusal of a path that no service has.
pub(crate) fn unknown(path: &str) -> String {
    let (service, method) = path
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or_default();
    let own = service.strip_prefix("vesta.v1.").unwrap_or_default();
    let known = TABLE.iter().filter(|it| it.service == own);
    let known: Vec<_> = known.map(|it| it.name).collect();
    if !known.is_empty() {
        let (method, known) = (plain(method), known.join(", "));
        return format!("unknown method `{method}` of {service}; it has {known}");
    }
    let mut services: Vec<_> = TABLE.iter().map(|it| it.service).collect();
    services.sort_unstable();
    services.dedup();
    format!(
        "unknown service or method `{}`; this server has vesta.v1.{}, grpc.health.v1.Health and \
         grpc.reflection.v1.ServerReflection (`grpcurl HOST:PORT list` shows them)",
        plain(path.trim_start_matches('/')),
        services.join(", vesta.v1."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_lists_what_there_is() {
        let said = unknown("/vesta.v1.IdService/GenID");
        assert!(
            said.starts_with("unknown method `GenID` of vesta.v1.IdService; it has GenId, GenIds"),
            "{said}"
        );
        for path in [
            "/vesta.IdService/GenId",
            "/v1/id",
            "/",
            "",
            "/grpc.health.v1.Health/Chek",
        ] {
            let said = unknown(path);
            assert!(said.starts_with("unknown service or method `"), "{said}");
            assert!(
                said.contains("vesta.v1.PoolService, vesta.v1.SegmentService"),
                "{said}"
            );
            assert_eq!(said.matches("SerialService").count(), 1, "{said}");
        }
    }

    #[test]
    fn the_page_about_security_has_the_scope_of_every_method() {
        let page = include_str!("../../docs/operate/security.md");
        for method in TABLE {
            let start = format!("| `{}` |", method.scope);
            let row = page.lines().find(|line| line.starts_with(&start));
            let row = row.unwrap_or_else(|| panic!("no row of {}", method.scope));
            assert!(row.contains(&format!("`{}`", method.name)), "{row}");
        }
    }
}
