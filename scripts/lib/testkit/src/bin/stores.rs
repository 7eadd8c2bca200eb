//! Throw-away servers for the tests: `stores --help`.

use std::process::ExitCode;

use vesta_testkit::stores::carry_out;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match carry_out(&words) {
        Ok(said) => {
            print!("{said}");
            ExitCode::SUCCESS
        }
        Err(said) => {
            eprintln!("{said}");
            ExitCode::FAILURE
        }
    }
}
