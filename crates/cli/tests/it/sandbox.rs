//! Sandboxes: what a command cannot do, tried from inside.
//!
//! Each attempt prints `through` if it succeeds. Where the kernel lacks a means, the tests that need it say so and do
//! nothing.
#![cfg(target_os = "linux")]

use crate::folder::Folder;
use patter::tool::sandbox::SandboxSupport;
use serde_json::{Value as Json, json};
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

/// A project in a folder of its own, so that there is something outside of it.
struct Project {
    folder: Folder,
}

/// The tools of the project: a script in several sandboxes.
const TOOLS: &str = r#"[t:Toolbox |
  [readOnly:Command { description: "Runs", run: ["sh", "-c", "{script}"], sandbox: "read-only" } | (script::Text)==>(::Text)],
  [workspace:Command { description: "Runs", run: ["sh", "-c", "{script}"], sandbox: "workspace" } | (script::Text)==>(::Text)],
  [out:Command { description: "Runs", run: ["sh", "-c", "{script}"], sandbox: "read-only", writable: "out", readable: ["~/shared"] } | (script::Text)==>(::Text)],
  [online:Command { description: "Runs", run: ["sh", "-c", "{script}"], sandbox: "read-only", network: true } | (script::Text)==>(::Text)],
  [free:Command { description: "Runs", run: ["sh", "-c", "{script}"] } | (script::Text)==>(::Text)]
]
"#;

impl Project {
    fn new() -> Self {
        let folder = Folder::new();
        folder.write("project/patter.toml", "");
        folder.write("project/t.gram", TOOLS);
        folder.write("project/.env", "OTHER_KEY=sesame\n");
        folder.write("project/inside.txt", "inside");
        folder.write("project/out/old.txt", "old");
        folder.write("outside.txt", "outside");
        folder.write("home/.ssh/id", "secret");
        folder.write("home/shared/list", "shared");
        folder.write("home/bin/own", "#!/bin/sh\necho own\n");
        let own = folder.path().join("home/bin/own");
        std::fs::set_permissions(own, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        Self { folder }
    }

    fn run(&self, arguments: &[&str]) -> (String, String) {
        let home = self.folder.path().join("home");
        let mut command = self.folder.command();
        command.current_dir(self.folder.path().join("project")).args(arguments);
        command.env("HOME", &home).env("PATH", format!("{}/bin:/usr/bin:/bin", home.display()));
        let output = command.output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn call(&self, tool: &str, script: &str) -> (String, String) {
        let arguments = json!({ "script": script }).to_string();
        self.run(&["call", &format!("t/{tool}"), "--yes", &arguments])
    }

    /// Runs attempts, each in a shell of its own. Returns the names of those that were successful.
    fn through<'n>(&self, tool: &str, attempts: &[(&'n str, &str)]) -> Vec<&'n str> {
        let script = attempts
            .iter()
            .map(|(name, attempt)| format!("(set -e; {attempt}; echo 'through {name}') 2>>$TMPDIR/errors\n"));
        let script = format!("O={}; export O\n{}true", self.folder.path().display(), script.collect::<String>());
        let (stdout, stderr) = self.call(tool, &script);
        assert!(stderr.is_empty() && !stdout.contains("error"), "{tool}: {stdout}{stderr}");
        let is_through = |name: &&str| stdout.lines().any(|line| line == format!("through {name}"));
        attempts.iter().map(|(name, _)| *name).filter(is_through).collect()
    }
}

/// Returns whether the kernel has what a test needs, and says so if it does not.
fn has(landlock: u32, what: &str) -> bool {
    let support = SandboxSupport::detect();
    let has = support.has_seccomp() && support.landlock_version() >= landlock;
    if !has {
        eprintln!("skipped: {what} needs seccomp and Landlock {landlock}, and this is {}", support.describe());
    }
    has
}

/// Attempts to change something outside of the writable folders. `$O` is the folder around the project.
const CHANGES: [(&str, &str); 15] = [
    ("write", "echo x > $O/outside.txt"),
    ("append", "echo x >> $O/outside.txt"),
    ("create", "echo x > $O/new.txt"),
    ("truncate", "perl -e 'truncate($ARGV[0], 0) or die' $O/outside.txt"),
    ("remove", "rm $O/outside.txt"),
    ("create a folder", "mkdir $O/folder"),
    ("symbolic link", "ln -s $O/outside.txt $TMPDIR/link; echo x > $TMPDIR/link"),
    ("link to a folder", "ln -s $O $TMPDIR/folder; echo x > $TMPDIR/folder/new2.txt"),
    ("hard link", "ln $O/outside.txt $TMPDIR/hard; echo x > $TMPDIR/hard"),
    ("move in", "mv -n $O/outside.txt $TMPDIR/moved; test -e $TMPDIR/moved; ! test -e $O/outside.txt"),
    ("move out", "echo x > $TMPDIR/own; mv $TMPDIR/own $O/moved.txt"),
    ("reopen", "exec 3<$O/outside.txt; echo x > /proc/self/fd/3"),
    ("parent folder", "cd $TMPDIR; echo x > ../escaped.$$"),
    ("device", "mknod $TMPDIR/disk b 8 0"),
    ("mount", "mount --bind $O $TMPDIR"),
];

#[test]
fn files_outside_are_not_changed() {
    if !has(3, "restricting files") {
        return;
    }
    let project = Project::new();
    let none: [&str; 0] = [];
    assert_eq!(project.through("readOnly", &CHANGES), none);
    assert_eq!(project.through("workspace", &CHANGES), none);
    assert_eq!(project.through("out", &CHANGES), none);
    assert_eq!(project.folder.read("outside.txt"), "outside");
    let inside = [
        ("create", "echo x > new.txt"),
        ("change", "echo x > inside.txt"),
        ("link", "ln -s $O/outside.txt trap; echo x > trap"),
        ("listed", "echo x > out/new.txt"),
        ("permissions", "chmod 600 inside.txt"),
        ("times", "touch -d 2001-01-01 inside.txt"),
        ("temporary", "echo x > $TMPDIR/a; cat $TMPDIR/a >/dev/null; rm $TMPDIR/a"),
        ("null", "echo x > /dev/null; head -c 8 /dev/urandom > /dev/null"),
        ("read", "cat inside.txt $O/outside.txt /etc/passwd > /dev/null"),
    ];
    assert_eq!(project.through("readOnly", &inside), ["temporary", "null", "read"]);
    assert_eq!(project.through("out", &inside), ["listed", "permissions", "times", "temporary", "null", "read"]);
    let all = ["create", "change", "listed", "permissions", "times", "temporary", "null", "read"];
    assert_eq!(project.through("workspace", &inside), all);
    assert_eq!(project.folder.read("outside.txt"), "outside");
}

#[test]
fn home_folders_are_hidden() {
    if !has(1, "hiding files") {
        return;
    }
    let project = Project::new();
    let attempts = [
        ("secret", "cat $HOME/.ssh/id > /dev/null"),
        ("list", "ls $HOME"),
        ("link", "ln -s $HOME/.ssh $TMPDIR/s; cat $TMPDIR/s/id > /dev/null"),
        ("another home", "ls /root /home"),
        ("disk", "head -c 1 /dev/sda /dev/vda"),
        ("variables", "cat .env > /dev/null"),
        ("listing", "ls . out > /dev/null"),
        ("own program", "test $(own) = own"),
        ("listed", "cat ~/shared/list > /dev/null"),
    ];
    assert_eq!(project.through("readOnly", &attempts), ["listing", "own program"]);
    assert_eq!(project.through("out", &attempts), ["listing", "own program", "listed"]);
    assert_eq!(project.call("free", "cat $HOME/.ssh/id").0, "secret\n");
}

/// Attempts to reach servers of this machine. The ports and names are filled in.
const CONNECTIONS: [(&str, &str); 7] = [
    (
        "tcp",
        "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(PeerAddr => \"127.0.0.1:TCP4\", Proto => \"tcp\") or die'",
    ),
    (
        "udp",
        "perl -MIO::Socket::INET -e '$s = IO::Socket::INET->new(PeerAddr => \"127.0.0.1:UDP4\", Proto => \"udp\") or die; $s->send(\"x\") or die'",
    ),
    ("ipv6", "perl -MSocket -e 'socket(S, AF_INET6, SOCK_DGRAM, 0) or die'"),
    (
        "unix",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die; connect(S, pack_sockaddr_un(\"UNIX\")) or die'",
    ),
    (
        "abstract",
        "perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) or die; connect(S, pack_sockaddr_un(\"\\0ABSTRACT\")) or die'",
    ),
    ("packet", "perl -MSocket -e 'socket(S, 17, SOCK_RAW, 768) or die'"),
    ("audit", "perl -MSocket -e 'socket(S, 16, SOCK_RAW, 9) or die'"),
];

#[test]
fn the_network_is_closed() {
    if !has(0, "restricting the network") {
        return;
    }
    let project = Project::new();
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let path = project.folder.path().join("project/socket");
    let unix = UnixListener::bind(&path).unwrap();
    let name = format!("patter-test-{}", std::process::id());
    let abstract_unix = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    let attempts: Vec<_> = CONNECTIONS
        .iter()
        .map(|(kind, script)| {
            let script = script.replace("TCP4", &tcp.local_addr().unwrap().port().to_string());
            let script = script.replace("UDP4", &udp.local_addr().unwrap().port().to_string());
            (*kind, script.replace("UNIX", "socket").replace("AF_socket", "AF_UNIX").replace("ABSTRACT", &name))
        })
        .collect();
    let attempts: Vec<_> = attempts.iter().map(|(kind, script)| (*kind, script.as_str())).collect();
    let none: [&str; 0] = [];
    assert_eq!(project.through("readOnly", &attempts), none);
    assert_eq!(project.through("workspace", &attempts), none);
    assert_eq!(project.through("online", &attempts), ["tcp", "udp", "ipv6"]);
    let pair = "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die'";
    assert_eq!(project.through("readOnly", &[("pair", pair)]), ["pair"]);
    drop((tcp, udp, unix, abstract_unix));
}

/// Attempts on other processes and on the kernel, by the numbers of system calls.
#[cfg(target_arch = "x86_64")]
const CALLS: [(&str, &str); 23] = [
    ("ptrace", "101, 16, ID, 0, 0"),
    ("process_vm_readv", "310, ID, 0, 0, 0, 0, 0"),
    ("pidfd_open of the supervisor", "434, PARENT, 0"),
    ("kill of the supervisor", "62, PARENT, 0"),
    ("kill of all", "62, -1, 0"),
    ("tgkill of the supervisor", "234, PARENT, PARENT, 0"),
    ("kill of another process", "62, ID, 0"),
    ("prlimit of the supervisor", "302, PARENT, 7, 0, 0"),
    ("prlimit of another process", "302, ID, 7, 0, 0"),
    ("setpriority of another process", "141, 0, ID, 19"),
    ("ioprio_set of another process", "251, 1, ID, 24576"),
    ("shmget", "29, 0, 4096, 0x380"),
    ("semget", "64, 0, 1, 0x380"),
    ("msgget", "68, 0, 0x380"),
    ("io_uring", "425, 1, $z"),
    ("unshare", "272, 0x10000000"),
    ("setns", "308, 0, 0"),
    ("bpf", "321, 0, $z, 0"),
    ("keyctl", "250, 0, -3, 0"),
    ("userfaultfd", "323, 0"),
    ("perf_event_open", "298, $z, 0, -1, -1, 0"),
    ("x32 ptrace", "0x40000209, 16, ID, 0, 0"),
    ("clone3", "435, $z, 64"),
];

#[cfg(target_arch = "x86_64")]
#[test]
fn other_processes_and_the_kernel_are_out_of_reach() {
    if !has(6, "protecting other processes") {
        return;
    }
    let project = Project::new();
    let own = std::process::id().to_string();
    let attempts: Vec<_> = CALLS
        .iter()
        .map(|(name, arguments)| {
            let arguments = arguments.replace("ID", &own).replace("PARENT", "$p");
            // What matters is which error it is: those about the arguments mean that the call was made.
            let check = "$!{EPERM} || $!{ENOSYS} || $!{EACCES} || $!{ESRCH}";
            let perl = format!(
                "$p = $ENV{{SUPER}} + 0; $z = \"\\0\" x 128; $r = syscall({arguments}); exit 1 if $r < 0 && ({check});"
            );
            (*name, format!("SUPER=$PPID perl -e '{perl}'"))
        })
        .collect();
    let attempts: Vec<_> = attempts.iter().map(|(name, script)| (*name, script.as_str())).collect();
    let none: [&str; 0] = [];
    assert_eq!(project.through("readOnly", &attempts), none);
    assert_eq!(project.through("online", &attempts), none);
    // A program in memory runs with the same restrictions.
    let memfd = "perl -e '$f = syscall(319, \"x\", 0); die if $f < 0; open(S, \"<\", \"/bin/sh\") or die; binmode S; \
                 open(M, \">&=\", $f) or die; binmode M; local $/; print M <S>; $| = 1; M->flush; \
                 exec(\"/proc/self/fd/$f\", \"-c\", \"echo x > $ENV{O}/outside.txt\") or die'";
    project.through("readOnly", &[("memfd", memfd)]);
    assert_eq!(project.folder.read("outside.txt"), "outside");
}

#[test]
fn ordinary_programs_work() {
    if !has(1, "running programs") {
        return;
    }
    let project = Project::new();
    let script = "printf 'b\\na\\n' | sort | tr a-z A-Z; find . -name '*.txt' | sort; sh -c 'exit 3' || echo $?; date > /dev/null; \
                  cat <<X\nhere\nX\nperl -e 'print \"perl\\n\"'; ls /usr > /dev/null && echo listed";
    let expected = "A\nB\n./inside.txt\n./out/old.txt\n3\nhere\nperl\nlisted\n";
    for tool in ["readOnly", "workspace", "online", "free"] {
        assert_eq!(project.call(tool, script), (expected.to_owned(), String::new()), "{tool}");
    }
    // The temporary folder is gone afterwards.
    let (folder, _) = project.call("readOnly", "echo x > $TMPDIR/a; echo $TMPDIR");
    assert!(folder.contains("patter-") && !std::path::Path::new(folder.trim()).exists(), "{folder}");
}

#[test]
fn a_project_sets_the_default() {
    if !has(1, "restricting files") {
        return;
    }
    let project = Project::new();
    let write = "echo x > a.txt && echo through || echo refused";
    assert_eq!(project.call("free", write).0, "through\n");
    project.folder.write("project/patter.toml", "[sandbox]\ndefault = \"read-only\"\n");
    assert_eq!(project.call("free", write).0, "refused\n");
    project
        .folder
        .write("project/patter.toml", "[sandbox]\ndefault = \"read-only\"\nwritable = [\".\"]\nrequired = true\n");
    assert_eq!(project.call("free", write).0, "through\n");
    project.folder.write("project/patter.toml", "[sandbox]\ndefault = \"readonly\"\n");
    let (_, stderr) = project.call("free", write);
    assert!(stderr.contains("did you mean `read-only`? possible values: read-only, workspace, none"), "{stderr}");
}

/// A server that tries to write before it answers.
const SERVER: &str = r#"
echo x > written
while read -r line; do
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"1"}}}';;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"hello","description":"Says hello","inputSchema":{"type":"object"}}]}}';;
  esac
done
"#;

#[test]
fn servers_have_a_sandbox() {
    if !has(1, "restricting files") {
        return;
    }
    let project = Project::new();
    project.folder.write("project/server.sh", SERVER);
    let written = project.folder.path().join("project/written");
    for (config, expected, is_written) in [
        ("sandbox = \"read-only\"", "read-only, no network", false),
        ("sandbox = \"read-only\"\nnetwork = true\nwritable = [\".\"]", "read-only, network, writable .", true),
        ("sandbox = \"none\"\n[sandbox]\ndefault = \"read-only\"", "none", true),
        ("[sandbox]\ndefault = \"read-only\"", "read-only, no network", false),
    ] {
        let _ = std::fs::remove_file(&written);
        let server = format!("[mcp.local]\ncommand = \"sh\"\nargs = [\"server.sh\"]\n{config}\n");
        project.folder.write("project/patter.toml", server);
        let (stdout, stderr) = project.run(&["tools", "local/", "--format", "json"]);
        let tools: Json = serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"));
        assert_eq!(tools["tools"][0]["sandbox"], expected, "{config}: {stderr}");
        assert_eq!(written.exists(), is_written, "{config}");
    }
    project.folder.write("project/patter.toml", "[mcp.local]\ncommand = \"sh\"\nnetwork = false\nwritable = [\"x\"]\n");
    let (_, stderr) = project.run(&["tools", "local/"]);
    assert!(stderr.contains("has `writable`, which has no effect without a sandbox"), "{stderr}");
}

#[test]
fn sandboxes_are_shown() {
    let project = Project::new();
    let (tools, _) = project.run(&["tools", "t/"]);
    assert!(tools.contains("(sandbox: read-only, no network)") && tools.contains("sandbox: workspace"), "{tools}");
    let (why, _) = project.run(&["why", "t/out"]);
    assert!(why.contains("  sandbox: read-only, no network, writable out, readable ~/shared\n"), "{why}");
    let (why, _) = project.run(&["why", "t/free", "--format", "json"]);
    assert_eq!(serde_json::from_str::<Json>(&why).unwrap()["sandbox"], "none");
    let agent = "[a:Agent { instruction: \"Use `t/online`.\", model: \"demo\" } | `t/online`, `t/free`]\n";
    project.folder.write("project/a.gram", agent);
    let (show, _) = project.run(&["show", "a.gram"]);
    assert!(show.contains("sandbox: read-only, network"), "{show}");
    let (doctor, _) = project.run(&["doctor", "--offline"]);
    assert!(doctor.contains("sandboxes ("), "{doctor}");
    project.run(&["lock"]);
    let lock = project.folder.read("project/patter.lock");
    assert!(lock.contains("sandbox = \"read-only, network\"") && lock.matches("sandbox = ").count() == 1, "{lock}");
    project.folder.write("project/patter.toml", "[sandbox]\ndefault = \"workspace\"\n");
    let (stdout, stderr) = project.run(&["check", "--locked"]);
    let expected = "the setting `sandbox.default` is not locked";
    assert!(format!("{stdout}{stderr}").contains(expected), "{stdout}{stderr}");
}

#[test]
fn loosened_sandboxes_are_gained_power() {
    let project = Project::new();
    std::fs::copy(project.folder.path().join("project/t.gram"), project.folder.path().join("project/old.gram"))
        .unwrap();
    let loosened = TOOLS.replace("sandbox: \"read-only\" }", "sandbox: \"read-only\", network: true }");
    project.folder.write("project/t.gram", loosened.replace(", sandbox: \"workspace\"", ""));
    let (stdout, stderr) = project.run(&["diff", "old.gram", "t.gram"]);
    for expected in [
        "sandbox loosened: the command may now use the network",
        "sandbox loosened: the command may now use everything that the user may do",
    ] {
        assert!(stdout.contains(expected), "{stdout}{stderr}");
    }
    let (stdout, _) = project.run(&["diff", "t.gram", "old.gram"]);
    assert!(stdout.contains("sandbox tightened: the command loses the network"), "{stdout}");
}

/// What was trusted in a sandbox is not trusted without it.
#[test]
fn a_loosened_sandbox_needs_trust_again() {
    let project = Project::new();
    let run = |arguments: &[&str]| {
        let mut command = project.folder.untrusting_command();
        command.current_dir(project.folder.path().join("project")).args(arguments).env("PATH", "/usr/bin:/bin");
        let output = command.env("HOME", project.folder.path().join("home")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let call = ["call", "t/readOnly", "--yes", "{\"script\": \"echo ran\"}"];
    assert_eq!(run(&call).0, Some(8));
    let (code, trusted) = run(&["trust"]);
    assert_eq!(code, Some(0));
    assert!(trusted.contains("t/readOnly  sh -c {script} (sandbox: read-only, no network)"), "{trusted}");
    assert_eq!(run(&call), (Some(0), "ran\n".to_owned()));
    project.folder.write("project/t.gram", TOOLS.replace(", sandbox: \"read-only\" }", " }"));
    assert_eq!(run(&call).0, Some(8));
    // The default of the project decides too.
    assert_eq!(run(&["trust"]).0, Some(0));
    assert_eq!(run(&call).0, Some(0));
    project.folder.write("project/patter.toml", "[sandbox]\ndefault = \"workspace\"\n");
    assert_eq!(run(&call).0, Some(8));
}
