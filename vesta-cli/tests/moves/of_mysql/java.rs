//! Tinyid's own Java client, unmodified, against vesta-rest. Its sources are in the folder named by
//! `VESTA_TEST_TINYID_CLIENT`; they need only a JDK.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use vesta_testkit::folder;

use super::databases::{TOKEN, tinyid};
use crate::programs::serve;

/// Prints numbers of three types, some of them from several threads at once.
const MAIN: &str = r#"
import com.xiaoju.uemc.tinyid.client.utils.TinyId;
import java.util.List;

public class Main {
    public static void main(String[] args) throws Exception {
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 500; n++) {
                    String number = "test " + TinyId.nextId("test");
                    System.out.println(number);
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        List<Long> odd = TinyId.nextId("odd", 100);
        odd.forEach(number -> System.out.println("odd " + number));
        System.out.println("three " + TinyId.nextId("three"));
        System.exit(0);
    }
}
"#;

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        match path.extension().and_then(OsStr::to_str) {
            _ if path.is_dir() && path.file_name() != Some(OsStr::new("test")) => {
                sources(&path, into);
            }
            Some("java") => into.push(path),
            _ => {}
        }
    }
}

fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn the_java_client_works_unmodified() {
    let Some(client) = std::env::var_os("VESTA_TEST_TINYID_CLIENT") else {
        println!("skipped: VESTA_TEST_TINYID_CLIENT does not name the sources of Tinyid's client");
        return;
    };
    let database = tinyid(&[
        ("test", 1, "300", 1, 0),
        ("odd", 1, "50", 2, 1),
        ("three", 1000, "1000", 3, 1),
    ]);
    let folder = folder();
    let flags = ["--compat=tinyid", "--segment-store", &database.url()];
    let program = serve("vesta-rest", folder.path(), &flags);

    let classes = folder.path().join("classes");
    let main = folder.path().join("Main.java");
    std::fs::create_dir(&classes).expect("a folder");
    std::fs::write(&main, MAIN).expect("a file");
    let properties = format!(
        "tinyid.server={}\ntinyid.token={TOKEN}\n",
        program.address()
    );
    std::fs::write(classes.join("tinyid_client.properties"), properties).expect("a file");
    let mut files = vec![main];
    sources(Path::new(&client), &mut files);
    run(Command::new("javac")
        .args(["-nowarn", "-encoding", "UTF-8", "-d"])
        .arg(&classes)
        .args(files));
    let said = run(Command::new("java").arg("-cp").arg(&classes).arg("Main"));

    let numbers = |tag: &str| {
        let of = said
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|line| line.0 == tag);
        of.map(|(_, number)| number.parse().expect("a number"))
            .collect::<Vec<u64>>()
    };
    let mut test = numbers("test");
    test.sort_unstable();
    assert_eq!((test.len(), test[0]), (2000, 2));
    assert!(test.is_sorted_by(|a, b| a < b), "none twice");
    let odd = numbers("odd");
    assert!(
        odd.len() == 100 && odd[0] == 3 && odd.iter().all(|it| it % 2 == 1),
        "{odd:?}"
    );
    assert_eq!(numbers("three"), [1003]);
}
