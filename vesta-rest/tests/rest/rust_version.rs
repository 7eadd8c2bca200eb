//! The Rust versions in Cargo.toml files and documents match those that the dependencies state.

use std::collections::HashMap;
use std::process::Command;

use serde_json::Value;

const READMES: [&str; 2] = [
    include_str!("../../../README.md"),
    include_str!("../../../README.zh-CN.md"),
];

/// Programs without the two stores that need a newer Rust than everything else.
const LEAN: [&str; 2] = ["--no-default-features", "--features=redis,zookeeper,etcd"];

/// The minor number of a Rust version, such as 89.
fn minor(version: &str) -> u32 {
    let minor = version
        .strip_prefix("1.")
        .and_then(|rest| rest.split('.').next());
    minor
        .and_then(|minor| minor.parse().ok())
        .unwrap_or_else(|| panic!("{version}"))
}

/// The output of cargo. It fetches nothing if the whole workspace has been built.
fn cargo(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .args(args)
        .arg("--locked")
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

/// The Rust version that each package states, keyed by `NAME vVERSION`.
struct Stated(HashMap<String, u32>);

impl Stated {
    fn read() -> Self {
        let host = cargo(&["-vV"]);
        let host = host
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .expect("a host");
        let args = [
            "metadata",
            "--format-version=1",
            "--all-features",
            "--filter-platform",
            host,
        ];
        let metadata: Value = serde_json::from_str(&cargo(&args)).expect("JSON");
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        let packages = metadata["packages"].as_array().expect("a list").iter();
        let stated = packages.filter(|package| !package["rust_version"].is_null());
        Self(
            stated
                .map(|package| {
                    let id = format!("{} v{}", text(&package["name"]), text(&package["version"]));
                    (id, minor(&text(&package["rust_version"])))
                })
                .collect(),
        )
    }

    /// The highest version stated by anything that a build of the crate compiles, and the package
    /// that states it. Crates of this workspace count too: cargo refuses a toolchain older than any
    /// of them states.
    fn needed(&self, name: &str, features: &[&str]) -> (u32, String) {
        let args = [
            "tree",
            "-p",
            name,
            "--edges=normal,build",
            "--prefix=none",
            "--format={p}",
        ];
        let built = cargo(&[&args, features].concat());
        let ids = built
            .lines()
            .filter(|id| id.split(' ').next() != Some(name));
        let id = |line: &str| line.split(' ').take(2).collect::<Vec<_>>().join(" ");
        let stated = ids.filter_map(|line| Some((*self.0.get(&id(line))?, id(line))));
        stated.max().unwrap_or_default()
    }
}

#[test]
fn each_crate_states_what_its_default_build_needs() {
    let stated = Stated::read();
    let (base, _) = stated.needed("vesta-rest", &LEAN);
    let mut crates = 0;
    for (id, version) in stated.0.iter().filter(|(id, _)| id.starts_with("vesta-")) {
        let name = id.split(' ').next().expect("a name");
        let (needed, of) = stated.needed(name, &[]);
        assert_eq!(
            *version,
            needed.max(base),
            "{name}: {of} needs 1.{needed}, lean programs 1.{base}"
        );
        crates += 1;
    }
    assert!(crates >= 10, "{crates}");
}

#[test]
fn the_documents_name_what_the_programs_need() {
    let stated = Stated::read();
    let programs = ["vesta-server", "vesta-rest"];
    let of = |features: &[&str]| {
        programs
            .map(|name| stated.needed(name, features).0)
            .into_iter()
            .max()
    };
    let (all, lean) = (of(&[]).expect("two"), of(&LEAN).expect("two"));
    let named = |text: &str| -> Vec<u32> {
        let text = text.replace("[Rust](https://rustup.rs)", "Rust");
        let versions = text.split("Rust 1.").skip(1);
        versions
            .map(|rest| minor(&format!("1.{}", &rest[..2])))
            .collect()
    };
    for readme in READMES {
        assert_eq!(named(readme), [all, lean]);
    }
    assert_eq!(
        named(include_str!("../../../docs/operate/install.md")),
        [all, lean]
    );
}
