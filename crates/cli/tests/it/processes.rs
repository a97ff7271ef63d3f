//! The processes of commands: none survives, none sees our environment, and each ends as it would without us.

use crate::folder::{Folder, PATTER};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use std::time::Duration;

/// A project with a tool that runs a script.
fn project() -> Folder {
    let folder = Folder::new();
    folder.write("patter.toml", "");
    folder.write(
        "t.gram",
        "[t:Toolbox | [sh:Command { description: \"Runs a script\", run: [\"sh\", \"-c\", \"{script}\"], timeout: 60s } | \
         (script::Text)==>(::Text)]]\n",
    );
    folder
}

/// Calls the tool with a script. Returns the exit code of `patter`, and its output.
fn call(folder: &Folder, script: &str) -> (i32, String, String) {
    let arguments = json!({ "script": script }).to_string();
    let mut command = folder.command();
    command.args(["call", "t/sh", "--yes", &arguments]).env("PATH", "/usr/bin:/bin").env("API_KEY", "sesame-open-4711");
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Polls until there is a value, for up to 30 seconds.
fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3000 {
        if let Some(found) = poll() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{what} never happened");
}

fn is_gone(id: i32) -> bool {
    let is_zombie = std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| stat.contains(") Z "));
    is_zombie || test_kill_process(Pid::from_raw(id).unwrap()).is_err()
}

fn ids(folder: &Folder, file: &str) -> Vec<i32> {
    let text = wait_for("the start", || std::fs::read_to_string(folder.path().join(file)).ok());
    text.split_whitespace().map(|id| id.parse().unwrap()).collect()
}

/// Scripts that leave processes behind which have left the process group, and write their ids to `ids`.
const ESCAPES: [(&str, &str); 6] = [
    ("setsid and nohup", "setsid nohup sh -c 'echo $$ > new; mv new ids; sleep 60' >/dev/null 2>&1 & WAIT"),
    ("a double fork", "(setsid sh -c '(echo $$ > new; mv new ids; sleep 60) &' &) ; WAIT"),
    ("ignored signals", "setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > new; mv new ids; sleep 60; sleep 60' & WAIT"),
    ("closed pipes", "setsid sh -c 'exec <&- >&- 2>&-; echo $$ > new; mv new ids; sleep 60' & WAIT"),
    ("pipes that stay open", "setsid sh -c 'echo $$ > new; mv new ids; sleep 60' & WAIT"),
    (
        "a chain that never stops",
        "cat > chain.sh <<'X'\necho $$ > new.$$; mv new.$$ ids\nsetsid sh chain.sh &\nX\nsetsid sh chain.sh & WAIT",
    ),
];

fn escape(script: &str) -> String {
    script.replace("WAIT", "while ! [ -e ids ]; do sleep 0.01; done; echo now")
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_survives_a_call() {
    for (name, script) in ESCAPES {
        let folder = project();
        let (code, stdout, stderr) = call(&folder, &escape(script));
        assert_eq!((code, stdout.as_str(), stderr.as_str()), (0, "now\n", ""), "{name}");
        let left = ids(&folder, "ids");
        std::fs::remove_file(folder.path().join("ids")).unwrap();
        wait_for(name, || left.iter().all(|id| is_gone(*id)).then_some(()));
        // A process that goes on would write its id again.
        std::thread::sleep(Duration::from_millis(50));
        assert!(!folder.path().join("ids").exists(), "{name}: the chain goes on");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_survives_the_program() {
    for (name, script) in ESCAPES {
        if name.starts_with("a chain") {
            continue;
        }
        let folder = project();
        let script = format!("{}; echo $$ > own.new; mv own.new own; sleep 60", escape(script));
        let arguments = json!({ "script": script }).to_string();
        let mut child = folder.command();
        child.args(["call", "t/sh", "--yes", &arguments]).env("PATH", "/usr/bin:/bin");
        let mut child = child.spawn().unwrap();
        let mut left = ids(&folder, "ids");
        left.extend(ids(&folder, "own"));
        kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
        child.wait().unwrap();
        wait_for(name, || left.iter().all(|id| is_gone(*id)).then_some(()));
    }
}

/// Prints the processes whose environment, memory or files can be read, of all processes above the script.
#[cfg(target_os = "linux")]
const INSPECT: &str = r#"
pid=$PPID
while [ "$pid" -gt 1 ]; do
  name=$(tr '\0' ' ' < /proc/$pid/cmdline)
  case "$name" in */patter*|/proc/self/exe*)
    echo "saw $pid" >> seen
    cat /proc/$pid/environ > /dev/null 2>&1 && grep -q sesame /proc/$pid/environ && echo "environ of $name"
    dd if=/proc/$pid/mem bs=1 count=0 2>/dev/null && echo "mem of $name"
    readlink /proc/$pid/fd/1 >/dev/null 2>&1 && echo "files of $name"
    readlink /proc/$pid/exe >/dev/null 2>&1 && echo "exe of $name"
    cat /proc/$pid/maps 2>/dev/null | grep -q . && echo "maps of $name"
    ;;
  esac
  pid=$(sed 's/.*) [A-Z] //' /proc/$pid/stat | cut -d' ' -f1)
done
for file in /proc/[0-9]*/environ; do
  grep -q sesame-open-4711 $file 2>/dev/null && echo "$file"
done
env | grep sesame
true
"#;

#[cfg(target_os = "linux")]
#[test]
fn commands_cannot_inspect_the_program() {
    let folder = project();
    let (code, stdout, stderr) = call(&folder, INSPECT);
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    assert!(folder.read("seen").lines().count() >= 2, "the program and the supervisor were not found");
    assert_eq!(stdout, "\n");
}

#[test]
fn commands_end_as_they_do_without_us() {
    let folder = project();
    for (script, expected) in [
        ("exit 1", "the command failed with exit code 1"),
        ("exit 255", "the command failed with exit code 255"),
        ("kill -KILL $$", "the command was killed by signal 9 (SIGKILL)"),
        ("kill -TERM $$", "the command was killed by signal 15 (SIGTERM)"),
        ("kill -SEGV $$", "the command was killed by signal 11 (SIGSEGV)"),
    ] {
        let (code, _, stderr) = call(&folder, script);
        assert_eq!(code, 1);
        assert!(stderr.contains(expected), "{script}: {stderr}");
    }
    assert_eq!(call(&folder, "cat; echo done; (sleep 0.1; echo never) &"), (0, "done\n".to_owned(), String::new()));
    folder.write(
        "u.gram",
        "[u:Toolbox | [missing:Command { description: \"Is missing\", run: [\"no-such-program\"] } | ()==>(::Text)], \
         [plain:Command { description: \"Is a text\", run: [\"./t.gram\"] } | ()==>(::Text)]]\n",
    );
    assert!(folder.run(&["call", "u/missing", "--yes"]).contains("the program `no-such-program` was not found"));
    assert!(folder.run(&["call", "u/plain", "--yes"]).contains("permission denied to run `./t.gram`"));
}

/// A command may kill its supervisor if nothing confines it. The rest of its process group ends all the same.
#[cfg(target_os = "linux")]
#[test]
fn a_command_that_kills_its_supervisor_ends() {
    let folder = project();
    let (code, _, stderr) = call(&folder, "sleep 60 & echo $$ $! > new; mv new ids; kill -KILL $PPID; sleep 60");
    assert_eq!(code, 1);
    assert!(stderr.contains("the command was killed by signal 9"), "{stderr}");
    let left = ids(&folder, "ids");
    wait_for("the end", || left.iter().all(|id| is_gone(*id)).then_some(()));
}

/// A supervisor that was stopped by its command continues when it is needed.
#[cfg(target_os = "linux")]
#[test]
fn a_command_that_stops_its_supervisor_ends() {
    let folder = project();
    let script = "sleep 60 & echo $$ $PPID $! > new; mv new ids; kill -STOP $PPID; sleep 60";
    let arguments = json!({ "script": script }).to_string();
    let mut command = folder.command();
    command.args(["call", "t/sh", "--yes", &arguments]).env("PATH", "/usr/bin:/bin");
    let mut program = command.spawn().unwrap();
    let left = ids(&folder, "ids");
    kill_process(Pid::from_child(&program), Signal::INT).unwrap();
    program.wait().unwrap();
    wait_for("the end", || left.iter().all(|id| is_gone(*id)).then_some(()));
}

#[cfg(target_os = "linux")]
#[test]
fn too_many_processes_are_killed() {
    let folder = project();
    let script = r#"exec perl -e '
        $SIG{CHLD} = "DEFAULT";
        for (1..2500) { my $id = fork; if (!defined $id) { print "limited"; exit 0 } if ($id == 0) { sleep 60; exit } }
        print "all"; sleep 60'"#;
    let (code, stdout, stderr) = call(&folder, script);
    if stdout.starts_with("limited") {
        eprintln!("skipped: this system does not allow enough processes");
        return;
    }
    assert_eq!(code, 1, "{stdout}");
    assert!(stderr.contains("the command was killed: it started too many processes"), "{stderr}");
}

/// Variables that are meant for a command must not affect its supervisor, which has more rights.
#[cfg(target_os = "linux")]
#[test]
fn the_supervisor_gets_no_variables() {
    let folder = project();
    folder.write(
        "t.gram",
        "[t:Toolbox | [sh:Command { description: \"Runs a script\", run: [\"sh\", \"-c\", \"{script}\"], \
         env: {MARK: \"for-the-command\"} } | (script::Text)==>(::Text)]]\n",
    );
    let (_, stdout, _) =
        call(&folder, "echo $MARK; cat /proc/$PPID/cmdline | tr '\\0' ' '; ps -o sid= -p $$ 2>/dev/null >&2");
    assert_eq!(stdout, "for-the-command\n/proc/self/exe --supervise-command \n");
    let mut by_hand = folder.command();
    let output = by_hand.arg("--supervise-command").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("cannot be started by hand"));
}

/// A shell or a CI runner may leave files open, which commands could read and write past every other limit.
#[test]
fn commands_get_no_open_files_of_the_caller() {
    let folder = project();
    folder.write("secret", "sesame-open-4711");
    let script = json!({"script": "cat <&7 2>/dev/null; ls /proc/self/fd | sort -n | tr '\\n' ' '"}).to_string();
    let mut shell = std::process::Command::new("sh");
    shell.current_dir(folder.path()).env_clear().env("PATH", "/usr/bin:/bin").env("PATTER_TRUST", "1");
    shell.args(["-c", "exec 7<secret 8>>secret; exec \"$0\" call t/sh --yes \"$1\"", PATTER, &script]);
    let output = shell.output().unwrap();
    // The last one is that of `ls` itself.
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "0 1 2 3", "{output:?}");
}
