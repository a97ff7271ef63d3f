//! The processes that a process started, directly or not.

use rustix::process::{Pid, Signal, getpgid, kill_process, kill_process_group};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

/// Returns the descendants of this process that have not been waited for, parents first. Each was there at some time
/// during the call: processes start and end meanwhile.
pub(super) fn descendants() -> Vec<Pid> {
    let own = rustix::process::getpid();
    let is_listed = Path::new("/proc/thread-self/children").exists();
    // Kernels may lack these lists.
    let all = if is_listed { HashMap::new() } else { children_by_parent() };
    let mut found = Vec::new();
    let mut seen = HashSet::from([own]);
    let mut next = vec![own];
    while let Some(parent) = next.pop() {
        let children = if is_listed { listed_children(parent) } else { all.get(&parent).cloned().unwrap_or_default() };
        for child in children {
            if seen.insert(child) {
                found.push(child);
                next.push(child);
            }
        }
    }
    found
}

/// Sends a signal to the process group of a command, if it is given, and to all descendants outside of the group.
pub(super) fn signal_descendants(command: Option<Pid>, signal: Signal) {
    if let Some(command) = command {
        kill_process_group(command, signal).ok();
    }
    for process in descendants() {
        if command.is_none() || getpgid(Some(process)).ok() != command {
            kill_process(process, signal).ok();
        }
    }
}

/// Kills the processes of a session whose leader is gone.
pub(super) fn kill_session(session: Pid) {
    for process in processes().filter(|process| process.session == Some(session)) {
        kill_process(process.id, Signal::KILL).ok();
    }
}

/// Returns the children of all threads of a process.
fn listed_children(parent: Pid) -> Vec<Pid> {
    let mut children = Vec::new();
    let Ok(threads) = fs::read_dir(format!("/proc/{}/task", parent.as_raw_nonzero())) else { return children };
    for thread in threads.flatten() {
        let list = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(list.split_ascii_whitespace().filter_map(parse_pid));
    }
    children
}

/// Returns the children of all processes.
fn children_by_parent() -> HashMap<Pid, Vec<Pid>> {
    let mut children = HashMap::<_, Vec<_>>::new();
    for process in processes() {
        children.entry(process.parent).or_default().push(process.id);
    }
    children
}

/// What the kernel tells about a process.
struct Process {
    id: Pid,
    parent: Pid,
    /// Missing if the session is that of a process outside of our container.
    session: Option<Pid>,
}

/// Returns all processes of the machine, apart from those without a parent.
fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let id = parse_pid(entry.file_name().to_str()?)?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // The name of the program is in parentheses, and may contain some itself. State, parent, group and session follow.
        let mut numbers = stat.rsplit_once(") ")?.1.split(' ').skip(1);
        let parent = parse_pid(numbers.next()?)?;
        let session = parse_pid(numbers.nth(1)?);
        Some(Process { id, parent, session })
    })
}

fn parse_pid(text: &str) -> Option<Pid> {
    text.parse().ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn finds_children_of_children() {
        let mut shell = Command::new("sh").args(["-c", "sleep 60 & wait"]).spawn().unwrap();
        let id = Pid::from_child(&shell);
        let grandchild = loop {
            if let [first, ..] = listed_children(id)[..] {
                break first;
            }
        };
        let found = descendants();
        assert!(found.contains(&id) && found.contains(&grandchild), "{found:?}");
        let scanned = children_by_parent();
        assert!(scanned[&rustix::process::getpid()].contains(&id) && scanned[&id] == [grandchild]);
        kill_process(grandchild, Signal::KILL).unwrap();
        shell.kill().unwrap();
        shell.wait().unwrap();
    }
}
