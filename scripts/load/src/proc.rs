//! A process and this machine, as Linux sees them.

use std::fs;
use std::process::Command;

use serde::Serialize;

use crate::Failure;

/// CPU time of a process so far, over all its threads, in seconds, to a hundredth.
pub(crate) fn cpu_seconds(pid: u32) -> Result<f64, Failure> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let ticks = cpu_ticks(&text).ok_or_else(|| format!("{path}: cannot be read: {text}"))?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// utime + stime: the 14th and the 15th field. The 2nd, the name, may contain spaces.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let utime: u64 = fields.next()?.parse().ok()?;
    let stime: u64 = fields.next()?.parse().ok()?;
    Some(utime + stime)
}

/// Voluntary context switches of all threads of a process so far: the number of times it was woken.
pub(crate) fn voluntary_switches(pid: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{pid}/task");
    let mut switches = 0;
    for task in fs::read_dir(&path).map_err(|error| format!("{path}: {error}"))? {
        // A thread may end between the listing and the reading.
        let Ok(status) = fs::read_to_string(task?.path().join("status")) else {
            continue;
        };
        switches += status
            .lines()
            .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
            .and_then(|number| number.trim().parse::<u64>().ok())
            .ok_or_else(|| format!("{path}: no voluntary_ctxt_switches"))?;
    }
    Ok(switches)
}

/// Memory of a process, in bytes.
pub(crate) fn resident(pid: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    Ok(kilobytes.ok_or_else(|| format!("{path}: no VmRSS"))? * 1024)
}

/// Bytes that a process has caused to be written to disk so far: each page that it dirtied.
pub(crate) fn bytes_written(pid: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{pid}/io");
    let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    let bytes = text
        .lines()
        .find_map(|line| line.strip_prefix("write_bytes:"));
    let bytes = bytes.and_then(|number| number.trim().parse().ok());
    Ok(bytes.ok_or_else(|| format!("{path}: no write_bytes"))?)
}

/// CPU time of the whole machine so far, in seconds: all time that was not idle, including time
/// stolen by the host of a virtual machine.
pub(crate) fn machine_cpu_seconds() -> Result<f64, Failure> {
    let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    let ticks = busy_ticks(&text).ok_or("/proc/stat: cannot be read")?;
    Ok(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// cpu user nice system idle iowait irq softirq steal ...
fn busy_ticks(stat: &str) -> Option<u64> {
    let numbers = stat
        .lines()
        .next()?
        .strip_prefix("cpu ")?
        .split_whitespace()
        .take(8);
    let numbers = numbers
        .map(|number| number.parse().ok())
        .collect::<Option<Vec<u64>>>()?;
    Some(numbers.iter().sum::<u64>() - numbers.get(3)? - numbers.get(4)?)
}

/// The machine of the measurements.
#[derive(Debug, Serialize)]
pub(crate) struct Machine {
    cpu: String,
    pub(crate) cores: usize,
    kernel: String,
    rustc: String,
}

impl Machine {
    pub(crate) fn here() -> Self {
        let unknown = || "unknown".to_owned();
        let cpu = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
            let line = text.lines().find(|line| line.starts_with("model name"))?;
            Some(line.split_once(':')?.1.trim().to_owned())
        });
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease");
        let rustc = Command::new("rustc").arg("--version").output().ok();
        let rustc = rustc.and_then(|output| String::from_utf8(output.stdout).ok());
        Self {
            cpu: cpu.unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.map_or_else(|_| unknown(), |text| text.trim().to_owned()),
            rustc: rustc.map_or_else(unknown, |text| text.trim().to_owned()),
        }
    }
}

impl std::fmt::Display for Machine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            cpu,
            cores,
            kernel,
            rustc,
        } = self;
        let cores = if *cores == 1 {
            "1 core".to_owned()
        } else {
            format!("{cores} cores")
        };
        write!(f, "{cpu}, {cores}, Linux {kernel}, {rustc}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_parsed_after_any_process_name() {
        let stat = "7 (a) b 9) S 1 7 7 0 -1 4194560 100 0 0 0 250 31 0 0 20 0 3 0 100 0 0";
        assert_eq!(cpu_ticks(stat), Some(281));
        assert_eq!(cpu_ticks("7 (short) S 1"), None);
    }

    #[test]
    fn machine_time_counts_all_but_idle_time() {
        assert_eq!(
            busy_ticks("cpu  10 20 30 1000 500 1 2 3 7 7\ncpu0 1 2 3"),
            Some(66)
        );
        assert_eq!(busy_ticks("intr 1"), None);
    }

    #[test]
    fn this_process_has_used_the_cpu() {
        let pid = std::process::id();
        let before = cpu_seconds(pid).unwrap();
        let mut sum = 0u64;
        while cpu_seconds(pid).unwrap() < before + 0.03 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        // A join parks until the other thread is done.
        let woken = voluntary_switches(pid).unwrap();
        let (send, receive) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || receive.recv().unwrap());
        while voluntary_switches(pid).unwrap() == woken {}
        send.send(()).unwrap();
        other.join().unwrap();
    }
}
