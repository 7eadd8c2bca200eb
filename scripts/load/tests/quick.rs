//! The program measures: a smoke run in which the bare servers stand in the place of Vesta's.

use std::process::Command;

#[test]
fn a_quick_calibration_finds_requests_in_every_round() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("results.json");
    let output = Command::new(env!("CARGO_BIN_EXE_vesta-load"))
        .args(["run", "--quick", "--calibrate", "--json"])
        .arg(&json)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");

    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["## gRPC, unary `GenId`", "## REST, `GET /genid`", "| 8 | **ratio** |"] {
        assert!(text.contains(expected), "{text}");
    }
    let results: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
    let unary = results["unary"].as_array().unwrap();
    assert_eq!(unary.len(), 4, "two protocols, two levels");
    for comparison in unary {
        for side in ["vesta", "peer"] {
            let rounds = comparison[side].as_array().unwrap();
            assert_eq!(rounds.len(), 1);
            let number = |name: &str| rounds[0][name].as_f64().unwrap();
            assert!(number("requests") > 0.0, "{comparison}");
            assert!(number("p50") > 0.0 && number("p50") <= number("p99"), "{comparison}");
            assert!(number("p99") <= number("p999"), "{comparison}");
        }
    }
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let output = Command::new(env!("CARGO_BIN_EXE_vesta-load"))
        .args(["run", "--quick", "--server", "/no/such/vesta-server"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("/no/such/vesta-server: No such file"), "{errors}");
    assert!(errors.contains("--help"), "{errors}");
}
