//! The commands, as docs/use/cli.md shows them.

mod chaos;
mod line;
#[cfg(feature = "redis")]
mod listeners;
mod moments;
#[cfg(feature = "otel")]
mod traces;

use vesta_intf::{IdFormat, IdMeta};

#[test]
fn every_example_of_the_guide_works() {
    // If the system's zone is UTC, the second zone shown is the same everywhere.
    let cases = trycmd::TestCases::new();
    cases
        .env("TZ", "UTC")
        .case(guide_of_any_day())
        .case("tests/commands/more.trycmd");
}

/// The guide with the test's sign for any text where the years that it shows pass.
fn guide_of_any_day() -> std::path::PathBuf {
    let guide = std::fs::read_to_string("../docs/use/cli.md").expect("the guide");
    let [ago, left] = [" 8 years ago ", "(in 22 years)"];
    assert!(guide.contains(ago) && guide.contains(left));
    let guide = guide
        .replace(ago, " [..] ago ")
        .replace(left, "(in [..] years)");
    let copy = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli.md");
    std::fs::write(&copy, guide).expect("a copy of the guide");
    copy
}

/// Runs the program with its own state directory; returns its output and exit code.
fn vesta(folder: &std::path::Path, args: &[&str]) -> (String, i32) {
    let done = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"))
        .args(args)
        .env("VESTA_STATE_DIR", folder)
        .output()
        .expect("the program starts");
    (
        String::from_utf8(done.stdout).expect("text"),
        done.status.code().unwrap_or(-1),
    )
}

#[test]
fn friendly_ids_are_read_and_shown_in_a_zone() {
    let folder = tempfile::tempdir().expect("a folder");
    let explain = |words: &[&str]| vesta(folder.path(), &[&["explain"], words].concat());
    let cosid = ["--layout", "cosid", "-o", "json"];
    // For a local time that occurs twice, the first; a skipped one is as much later, as in Java.
    for (id, zone, moment, shown) in [
        (
            "20260131120000123-7-42",
            "Asia/Shanghai",
            "2026-01-31T04:00:00.123Z",
            "",
        ),
        (
            "20260131040000123-0007-42",
            "UTC",
            "2026-01-31T04:00:00.123Z",
            "20260131040000123-7-42",
        ),
        (
            "20261025023000000-1-0",
            "Europe/Berlin",
            "2026-10-25T00:30:00.000Z",
            "",
        ),
        (
            "20260329023000000-1-0",
            "Europe/Berlin",
            "2026-03-29T01:30:00.000Z",
            "20260329033000000-1-0",
        ),
    ] {
        let (said, code) = explain(&[&[id, "--tz", zone], &cosid[..]].concat());
        let shown = if shown.is_empty() { id } else { shown };
        assert!(said.contains(&format!("\"moment\":\"{moment}\"")), "{said}");
        assert!(
            code == 0 && said.contains(&format!("\"friendly\":\"{shown}\"")),
            "{said}"
        );
    }
    let (said, _) = explain(&["827334396297084970", "--layout", "cosid-second"]);
    assert!(
        said.contains("\n  friendly 20260131040000-7-42   (UTC)\n"),
        "{said}"
    );
    let (said, code) = explain(&[
        "20260131040000123-7-42",
        "--layout",
        "snowflake",
        "-o",
        "json",
    ]);
    assert!(
        code == 0 && said.contains("\"id\":\"2017447747900174378\""),
        "{said}"
    );
    assert!(!said.contains("friendly"), "not a layout of CosId");
    for refused in [
        &["20260131120000123-7-42", "--layout", "guess"][..],
        &["20260131120000123-7-42"], // the default layout counts seconds
        &[
            "20260131120000123-7-42",
            "--layout",
            "cosid",
            "--tz",
            "Nowhere",
        ],
        &["20260131120000123-1024-42", "--layout", "cosid"],
    ] {
        assert_eq!(explain(refused), (String::new(), 64), "{refused:?}");
    }
}

#[test]
fn ids_are_read_as_languages_and_other_systems_write_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let explain = |words: &[&str]| vesta(folder.path(), &[&["explain"], words].concat());
    for text in ["2407837855670862845n", "2407837855670862845L"] {
        let (said, code) = explain(&[text, "-o", "json"]);
        assert!(
            code == 0 && said.starts_with("{\"id\":\"2407837855670862845\""),
            "{said}"
        );
    }
    let (said, code) = explain(&["7e39c56700c0001", "--layout", "cockroach", "-o", "json"]);
    assert!(
        code == 0 && said.contains("\"moment\":\"2020-06-30T21:47:17.622Z\""),
        "{said}"
    );
    // Every format reads what it wrote.
    for name in IdFormat::ALL.map(IdFormat::name) {
        let id = "1785223470585921538";
        let (text, _) = explain(&[id, "--layout", "guess", "--to", name]);
        let back = explain(&[text.trim_end(), "--format", name, "--to", "decimal"]);
        assert_eq!(back, (format!("{id}\n"), 0), "{name} {text}");
    }
    // A TID names its system.
    let (said, code) = explain(&["3k4duaz5vfs2b", "--layout", "guess", "-o", "json"]);
    assert!(
        code == 0 && said.contains("\"layout\":\"bluesky\""),
        "{said}"
    );
    for long in ["0ujtsYcgvSTl8PAuAdqWYSMnLOv", "9m4e2mr0ui3e8a215n4g"] {
        assert_eq!(explain(&[long]), (String::new(), 64), "{long}");
    }
}

#[test]
fn generated_ids_are_explained_and_attributed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (ids, code) = vesta(folder, &["gen", "-n", "1500"]);
    let ids: Vec<u64> = ids.lines().map(|id| id.parse().expect("an ID")).collect();
    assert_eq!((ids.len(), code), (1500, 0));
    assert!(ids.windows(2).all(|two| two[0] < two[1]));
    vesta(folder, &["gen"]); // another claim of the same machine ID

    let (said, code) = vesta(folder, &["audit", &ids[700].to_string()]);
    assert!(
        code == 0 && said.contains("only claim 1 can have made it: "),
        "{said}"
    );
    let later = (ids[700] + (1 << 50)).to_string();
    let (said, code) = vesta(folder, &["audit", &later]);
    assert!(
        code == 1 && said.contains("no: no process of this namespace has reserved"),
        "{said}"
    );
    let other = (ids[700] ^ 1).to_string();
    let (said, code) = vesta(folder, &["audit", &other, "-o", "json"]);
    assert!(
        code == 1 && said.contains("was never claimed in this namespace"),
        "{said}"
    );
}

#[test]
fn an_id_of_a_reserved_machine_id_is_attributed_to_its_holder() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let run = |words: &[&str]| vesta(folder, words);
    // What `vesta_id()` of PostgreSQL makes.
    let made = |time: u64, machine| {
        let (time, machine) = (time.to_string(), format!("--machine={machine}"));
        let (id, _) = run(&["make", "--time", &time, &machine, "--gen-method", "3"]);
        id.trim().to_owned()
    };
    let audit = |id: &str| run(&["audit", id, "-o", "json"]);
    let time = run(&["gen"]).0.trim().parse::<u64>().expect("an ID") >> 30;
    let holder = "PostgreSQL of the shop";
    let reserve = ["store", "reserve", "1000", "--for", holder];
    assert_eq!(run(&reserve).1, 0);

    let later = made(time + 1_000_000, 1000);
    let (said, _) = run(&["explain", &later]);
    assert!(said.contains("genMethod 3 (database)"), "{said}");
    let (said, code) = audit(&later);
    assert!(
        code == 0
            && said.contains(r#""by":{"host":"PostgreSQL of the shop","reserved":""#)
            && said.contains("machine 1000 is reserved for PostgreSQL of the shop since "),
        "{said}"
    );
    assert_eq!(run(&["store", "free", "1000", "--yes"]).1, 0);
    let (said, code) = audit(&later);
    assert!(code == 1 && said.contains("has reserved IDs"), "{said}");
    let (unplanned, code) = audit(&made(time, 777));
    assert!(
        code == 1 && unplanned.contains("genMethod 3 is of a database"),
        "{unplanned}"
    );
    let (said, code) = audit(&made(time - 3600, 777));
    assert!(code == 1 && said.contains("leaves no record"), "{said}");
    assert_eq!(run(&["store", "reserve", "777", "--for", holder]).1, 0);
    let (said, code) = audit(&made(time - 3600, 777));
    assert!(code == 1 && said.contains("only later, 20"), "{said}");
}

#[test]
fn opaque_ids_and_uuids_are_made_and_read_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let key = folder.path().join("ids.key").display().to_string();
    let (said, code) = vesta(folder.path(), &["key", "new", &key]);
    assert!(
        code == 0 && said.contains("created the key") && said.contains("fingerprint"),
        "{said}"
    );
    let (_, again) = vesta(folder.path(), &["key", "new", &key]);
    assert_eq!(again, 64, "a key is never overwritten");
    for (format, more) in [
        ("opaque", &["--key", &*key][..]),
        ("uuid-v7", &[]),
        ("uuid", &[]),
    ] {
        let (texts, _) = vesta(
            folder.path(),
            &[
                "gen",
                "-n",
                "2",
                "--format",
                format,
                "--layout",
                "js-safe",
                "--opaque-key-file",
                &key,
            ],
        );
        let texts: Vec<_> = texts.lines().collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        let lines = [
            &[
                "explain", texts[0], texts[1], "--layout", "js-safe", "-o", "csv",
            ],
            more,
        ]
        .concat();
        let (said, code) = vesta(folder.path(), &lines);
        let ids: Vec<u64> = said
            .lines()
            .skip(1)
            .map(|line| {
                line.split(',')
                    .next()
                    .and_then(|id| id.parse().ok())
                    .expect("an ID")
            })
            .collect();
        assert_eq!((code, ids.len()), (0, 2), "{said}");
        assert_eq!(ids[1] - ids[0], IdMeta::JS_SAFE.step(), "{format}: {said}");
        assert!(!said.contains(texts[0]), "{said}");
        // The existing ID, written so.
        let id = ids[0].to_string();
        let to = [
            "explain", &id, "--layout", "js-safe", "--to", format, "--format", "decimal",
        ];
        let again = vesta(folder.path(), &[&to, more].concat());
        assert_eq!(again, (format!("{}\n", texts[0]), 0));
    }
    // Another key: in this layout no text of the first reads as an ID.
    let other = folder.path().join("other.key").display().to_string();
    vesta(folder.path(), &["key", "new", &other]);
    let (texts, _) = vesta(
        folder.path(),
        &[
            "gen",
            "--format",
            "opaque",
            "--layout",
            "js-safe",
            "--opaque-key-file",
            &key,
        ],
    );
    let (said, code) = vesta(
        folder.path(),
        &[
            "explain",
            texts.trim(),
            "--layout",
            "js-safe",
            "--key",
            &other,
        ],
    );
    assert_eq!((said.as_str(), code), ("", 64));
}

#[test]
fn locally_generated_ids_have_the_embedded_gen_method() {
    let folder = tempfile::tempdir().expect("a folder");
    let gen_method = |args: &[&str]| {
        let (id, code) = vesta(folder.path(), &[&["gen"], args].concat());
        assert_eq!(code, 0);
        IdMeta::MAX_PEAK
            .unpack(id.trim().parse().expect("an ID"))
            .expect("parts")
            .gen_method
    };
    assert_eq!(gen_method(&[]), 0);
    assert_eq!(gen_method(&["--gen-method", "2"]), 2);
}

/// A service and an operator with different state directorys.
#[cfg(target_os = "linux")]
#[test]
fn gen_and_another_users_server_get_different_machine_ids() {
    let [own, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let mut serve = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"));
    let namespace = vesta_testkit::namespace_of(own.path());
    let range = ["--machine-range", "5-6", "--namespace", &namespace];
    serve
        .args(["serve", "rest"])
        .args(vesta_testkit::programs::FREE_PORTS)
        .args(range);
    serve.env("VESTA_STATE_DIR", own.path());
    let running = vesta_testkit::programs::Program::serve(&mut serve).expect("it starts");
    let (ids, code) = vesta(other.path(), &[&["gen", "-n", "2000"][..], &range].concat());
    assert_eq!(code, 0);
    let machine = |id: u64| IdMeta::MAX_PEAK.unpack(id).expect("parts").machine;
    let made: std::collections::BTreeSet<_> = ids
        .lines()
        .map(|id| machine(id.parse().expect("an ID")))
        .collect();
    assert_eq!(made, [11 - running.machine()].into());
}

#[cfg(target_os = "linux")]
#[test]
fn doctor_reports_state_on_a_network_file_system() {
    if vesta_testkit::lacks("bindfs") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (shared, seen) = (folder.path().join("shared"), folder.path().join("seen"));
    std::fs::create_dir(&shared).expect("a folder");
    let _mount = vesta_testkit::FuseMount::new(&shared, &seen, "attr_timeout=1");
    // Undoes the line breaks of a narrow table.
    let unfolded = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (said, code) = vesta(&seen, &["doctor"]);
    assert!(
        code == 1 && unfolded(&said).contains("is on a network file system (FUSE)"),
        "{said}"
    );
    let (said, code) = vesta(&seen, &["doctor", "--state-allow-network-fs"]);
    assert!(
        code == 0 && unfolded(&said).contains("is on a network file system (FUSE)"),
        "{said}"
    );
    let store = format!("--segment-store=sqlite:{}/tags.db", seen.display());
    let (said, code) = vesta(folder.path(), &["doctor", &store]);
    assert!(
        code == 1 && unfolded(&said).contains("tags.db is on a network file system (FUSE)"),
        "{said}"
    );
}

#[test]
fn serials_are_made_listed_and_parsed() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let (store, keys) = (
        format!("sqlite:{}/serials.db", folder.display()),
        folder.join("keys"),
    );
    std::fs::create_dir(&keys).expect("a folder");
    let keys = keys.to_str().expect("text");
    let serial = |args: &[&str]| {
        let (said, code) = vesta(
            folder,
            &[&["serial"], args, &["--serial-store", &store]].concat(),
        );
        (said.trim_end().to_owned(), code)
    };
    let pattern = "{date:yyyy}-{n:6}{check:damm}";
    let year = ["--reset", "year", "--zone", "Asia/Shanghai"];
    let (said, code) =
        serial(&[&["create", "orders", pattern, "--first", "42"], &year[..]].concat());
    assert!(
        code == 0 && said.contains("restarts each year in Asia/Shanghai"),
        "{said}"
    );
    let again = serial(&[&["create", "orders", pattern], &year[..]].concat());
    assert_eq!(again.1, 0, "it is there: {}", again.0);
    assert_eq!(serial(&["create", "orders", "{n:4}"]).1, 1, "it is another");
    let (said, code) = serial(&["next", "orders", "-n", "3"]);
    let made: Vec<_> = said.lines().map(|line| line.split_at(4).1).collect();
    assert_eq!((made, code), (vec!["-0000427", "-0000434", "-0000442"], 0));
    // The short-lived process returned what it had fetched but not used.
    let (said, _) = serial(&["next", "orders"]);
    let (read, code) = serial(&["parse", "orders", &said]);
    assert!(
        code == 0 && read.contains("counter 45") && read.contains("right (damm)"),
        "{read}"
    );
    for wrong in [
        said.replace("0045", "0054"),
        said.replace('-', "_"),
        "45".to_owned(),
    ] {
        assert_eq!(
            serial(&["parse", "orders", &wrong]),
            (String::new(), 64),
            "{wrong}"
        );
    }

    let coupons = ["create", "coupons", "{shuffle:8}", "--serial-keys", keys];
    let (said, code) = serial(&coupons);
    assert!(code == 0 && said.contains("created the key "), "{said}");
    let (coupon, _) = serial(&["next", "coupons", "--serial-keys", keys]);
    let (read, _) = serial(&["parse", "coupons", &coupon, "--serial-keys", keys]);
    assert!(read.contains("counter 1"), "{read}");
    assert_eq!(
        serial(&["next", "coupons"]),
        (String::new(), 64),
        "without the key"
    );
    std::fs::remove_file(format!("{keys}/coupons.key")).expect("the key");
    let (said, code) = serial(&["create", "other", "{shuffle:8}"]);
    assert_eq!((said.as_str(), code), ("", 64), "nowhere to look for a key");

    let (said, code) = serial(&["list", "-o", "json"]);
    let listed: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!((&listed["tags"][1]["nextInStore"], code), (&"46".into(), 0));
    assert_eq!(
        listed["tags"][0]["fingerprint"].as_str().map(str::len),
        Some(16),
        "a fingerprint"
    );
    let (said, _) = serial(&["list"]);
    assert!(
        said.starts_with("SQLite ") && said.contains("2 tags"),
        "{said}"
    );
}

/// A server with both fronts on free ports; stops on drop.
struct Served {
    child: std::process::Child,
    /// The lines of its start-up summary, by label.
    said: std::collections::HashMap<String, String>,
}

impl Served {
    fn start(folder: &std::path::Path) -> Self {
        use std::io::BufRead as _;
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"))
            .arg("serve")
            .args(vesta_testkit::programs::FREE_PORTS)
            .env("VESTA_STATE_DIR", folder)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the program starts");
        let lines = std::io::BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut said = std::collections::HashMap::new();
        for line in lines.map(|line| line.expect("text")) {
            let Some((label, text)) = line.trim().split_once("  ") else {
                continue;
            };
            said.insert(label.to_owned(), text.trim().to_owned());
            if label.starts_with("try") {
                break;
            }
        }
        Self { child, said }
    }

    fn url(&self, label: &str) -> String {
        let address = &self.said[label];
        if address.starts_with("http") {
            address.clone()
        } else {
            format!("http://{address}")
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new ID from a server.
fn made_by(folder: &std::path::Path, server: &str) -> u64 {
    let (id, code) = vesta(folder, &["gen", "--server", server]);
    assert_eq!(code, 0, "{server}");
    id.trim().parse().expect("decimal digits")
}

#[test]
fn one_process_serves_both_with_one_machine_id() {
    let folder = tempfile::tempdir().expect("a folder");
    let served = Served::start(folder.path());
    let (rest, grpc, admin) = (served.url("HTTP"), served.url("gRPC"), served.url("admin"));
    let machine = served.said["machine ID"]
        .split(' ')
        .next()
        .and_then(|id| id.parse().ok());
    let machine: u64 = machine.expect("a number");
    let ids = [&rest, &grpc, &grpc, &rest].map(|server| made_by(folder.path(), server));
    assert!(
        ids.is_sorted_by(|a, b| a < b),
        "ordered by time across both fronts: {ids:?}"
    );
    let parts = ids.map(|id| IdMeta::MAX_PEAK.unpack(id).expect("an ID"));
    assert_eq!(
        parts.map(|id| (id.gen_method, id.machine)),
        [(2, machine); 4]
    );

    for server in [&rest, &grpc] {
        let (said, code) = vesta(
            folder.path(),
            &[
                "bench",
                "--server",
                server,
                "-d",
                "1s",
                "--connections",
                "2",
            ],
        );
        assert!(code == 0 && said.contains("errors 0"), "{said}");
    }
    let (said, code) = vesta(folder.path(), &["top", &admin, "-n", "1", "-o", "csv"]);
    let ready = said.lines().nth(1).and_then(|row| row.split(',').nth(1));
    assert_eq!((code, ready), (0, Some("true")), "{said}");
    let (said, code) = vesta(folder.path(), &["doctor"]);
    assert!(
        code == 0 && said.contains("1,023 of 1,024 machine IDs are free"),
        "{said}"
    );
}

#[test]
fn doctor_fails_on_a_store_that_a_server_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    let database = folder.path().join("pool.db");
    let store = format!("sqlite:{}", database.display());
    let settings = ["--machine-store", "--segment-store", "--serial-store"];
    for setting in settings {
        let (said, code) = vesta(folder.path(), &["doctor", setting, &store]);
        assert!(
            code == 0 && said.contains("the first start creates it"),
            "{setting}: {said}"
        );
    }
    std::fs::write(&database, "no database at all, ".repeat(100)).expect("a file");
    for setting in settings {
        let (said, code) = vesta(folder.path(), &["doctor", setting, &store]);
        assert!(
            code == 1 && said.contains("not a database"),
            "{setting}: {said}"
        );
    }
}

#[test]
fn doctor_knows_what_this_host_remembers_of_each_store() {
    let [folder, other] = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
    let gen_in = |at: &std::path::Path, args: &[&str]| {
        assert_eq!(vesta(at, &[&["gen"], args].concat()).1, 0, "{args:?}");
    };
    gen_in(folder.path(), &[]);
    let tried = format!("--machine-store=sqlite:{}/try.db", folder.path().display());
    gen_in(folder.path(), &[&tried]);
    gen_in(folder.path(), &[]);
    let unfolded =
        |(said, code): (String, i32)| (said.split_whitespace().collect::<Vec<_>>().join(" "), code);
    for store in [&[][..], &[&*tried]] {
        let (said, code) = unfolded(vesta(folder.path(), &[&["doctor"], store].concat()));
        assert!(code == 0 && !said.contains("forgotten"), "{said}");
    }
    gen_in(other.path(), &[]);
    let [at, from] = [&folder, &other].map(|it| it.path().join("vesta.db"));
    for end in ["-wal", "-shm"] {
        let log = folder.path().join(format!("vesta.db{end}"));
        let _ = std::fs::remove_file(log); // closed, so it is empty
    }
    std::fs::copy(from, at).expect("another database in its place");
    let (said, code) = unfolded(vesta(folder.path(), &["doctor"]));
    assert!(
        code == 1 && said.contains("has forgotten that machine ID"),
        "{said}"
    );
    assert!(said.contains("store raise-floor"), "{said}");
}

#[test]
fn doctor_says_how_long_the_first_id_takes_on_a_store_that_may_forget() {
    let folder = tempfile::tempdir().expect("a folder");
    let doctor = |args: &[&str]| {
        let (said, _) = vesta(folder.path(), &[&["doctor"], args].concat());
        said.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(vesta(folder.path(), &["gen"]).1, 0);
    assert!(!doctor(&[]).contains("first ID"));
    let said = doctor(&["--machine-store-trust", "doubtful"]);
    assert!(
        said.contains("warn first ID it comes 112 s after a start"),
        "{said}"
    );
}

/// A folder in memory, as a container without a volume has it.
#[cfg(target_os = "linux")]
#[test]
fn in_a_container_gen_and_doctor_say_what_is_lost() {
    if vesta_testkit::lacks("namespaces") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let run = |args: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
        command
            .arg("mount -t tmpfs none \"$VESTA_STATE_DIR\" && exec \"$@\"")
            .arg("sh");
        command.arg(env!("CARGO_BIN_EXE_vesta")).args(args);
        command.env("KUBERNETES_SERVICE_HOST", "10.0.0.1");
        let done = command
            .env("VESTA_STATE_DIR", folder.path())
            .output()
            .expect("it runs");
        assert!(done.status.success(), "{done:?}");
        [done.stdout, done.stderr].map(|text| String::from_utf8(text).expect("text"))
    };
    let [ids, said] = run(&["gen"]);
    assert!(ids.trim().parse::<u64>().is_ok(), "{ids}");
    let lines: Vec<_> = said.lines().collect();
    assert!(
        lines.len() == 1 && lines[0].starts_with("warning: the pool of machine IDs is lost"),
        "{said}"
    );
    let [said, _] = run(&["doctor"]);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("warn state the pool of machine IDs is lost with this container"),
        "{said}"
    );
    let [said, _] = run(&["doctor", "--machine-id", "7"]);
    assert!(said.contains("the state of this machine ID"), "{said}");
}

#[test]
fn a_start_without_a_free_number_takes_no_row_and_doctor_warns() {
    let folder = tempfile::tempdir().expect("a folder");
    let disposable = ["--machine-strategy", "disposable"];
    let made = || vesta(folder.path(), &[&["gen"], &disposable[..]].concat()).1;
    let doctor = || vesta(folder.path(), &[&["doctor"], &disposable[..]].concat());
    assert_eq!((made(), doctor().1), (0, 0));
    let database = rusqlite::Connection::open(folder.path().join("vesta.db")).expect("it was made");
    let last = "UPDATE WORKER_NODE SET ID = 1023";
    assert_eq!(database.execute(last, []).expect("a table"), 1);
    for _ in 0..2 {
        assert_eq!(made(), 64, "a supervisor does not start it again");
    }
    let count = "SELECT COUNT(*) FROM WORKER_NODE";
    let rows: i64 = database
        .query_row(count, [], |row| row.get(0))
        .expect("a table");
    assert_eq!(rows, 1);
    let (said, code) = doctor();
    assert!(
        code == 1 && said.contains("the machine IDs end at 1023"),
        "{said}"
    );
}

#[test]
fn a_million_ids_are_read_from_standard_input_and_bad_lines_named() {
    use std::io::Write as _;
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_vesta"))
        .args(["explain", "-"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    let writing = std::thread::spawn(move || {
        let mut text = String::new();
        for id in 0..1_000_000u64 {
            text += &format!("{}\n", 2_407_837_855_670_862_845 + (id << 30));
            if id == 500_000 {
                text += "nonsense\n";
            }
        }
        input.write_all(text.as_bytes()).expect("it reads");
    });
    let done = child.wait_with_output().expect("it ends");
    writing.join().expect("all is written");
    let (out, err) = (
        String::from_utf8(done.stdout),
        String::from_utf8(done.stderr),
    );
    let (out, err) = (out.expect("text"), err.expect("text"));
    assert_eq!(out.lines().count(), 1_000_000);
    let first =
        "2407837855670862845  max-peak  2018-01-04T02:08:23Z  genMethod 2  machine 1021  seq 0";
    assert_eq!(out.lines().next(), Some(first));
    assert!(
        out.lines()
            .nth(1)
            .is_some_and(|line| line.contains("2018-01-04T02:08:24Z"))
    );
    assert!(err.contains("line 500002: id: it must be decimal"), "{err}");
    assert_eq!(done.status.code(), Some(64));
}

#[test]
fn completions_and_the_manual_cover_every_command() {
    let folder = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        let (script, code) = vesta(folder.path(), &["completions", shell]);
        assert!(
            code == 0 && script.contains("explain") && script.contains("raise-floor"),
            "{shell}"
        );
    }
    let pages = folder.path().join("man");
    let (_, code) = vesta(
        folder.path(),
        &["man", pages.to_str().expect("a plain path")],
    );
    assert_eq!(code, 0);
    for page in [
        "vesta.1",
        "vesta-serve-rest.1",
        "vesta-plan-overlap.1",
        "vesta-store-show.1",
    ] {
        assert!(pages.join(page).exists(), "{page}");
    }
}
