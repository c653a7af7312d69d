//! Whom the agent speaks to: in a network of its own, where the kernel counts every connection and every packet that found
//! no way.

use crate::client_protocols::{Client, DIALECTS, with_dialect_key};
use crate::support::calls::{call, command};
use crate::support::mcp::{peers, results, run_args};
use crate::support::run::YOLO;
use crate::support::server::Server;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::{TcpStream, UdpSocket};
use std::process::Command;

/// Tells a copy of this test binary that it is in a network of its own.
const INSIDE: &str = "AGENT_TEST_NETWORK";

/// The state of a socket that waits for connections, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// A command that begins, and ends when it is told to.
const WAIT: &str = "touch begun; read -r line <go";

#[test]
fn class_61_64_tr_033_a_run_opens_no_port_and_speaks_to_the_model_alone() {
    in_an_own_network("agent_connections::in_a_network_of_its_own");
}

#[test]
fn class_61_64_tr_033_runs_of_clients_open_no_port_in_any_protocol() {
    in_an_own_network("agent_connections::protocols_in_a_network_of_their_own");
}

/// Runs a test of this binary where only loopback is reached.
#[track_caller]
fn in_an_own_network(test: &str) {
    let mut inside = Command::new("unshare");
    inside.args(["-rn"]).arg(std::env::current_exe().unwrap());
    inside.args(["--exact", test, "--nocapture", "--test-threads", "1"]);
    let done = inside.env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned() + &String::from_utf8_lossy(&done.stdout);
    if said.contains("unshare:") {
        eprintln!("not tried, no network namespace here: {said}");
        return;
    }
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
}

/// Not a test by itself: a run of each protocol, and what listens meanwhile.
#[test]
fn protocols_in_a_network_of_their_own() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    loopback_up();
    for dialect in DIALECTS {
        let server = Server::calls([command(WAIT)]);
        let (lab, url) = (with_dialect_key("mode: yolo"), server.url());
        let mut go = lab.pipe("go");
        // It probes what confines commands, which opens ports.
        lab.agent(&["doctor"]);
        std::thread::scope(|scope| {
            let running = scope.spawn(|| Client::start(dialect, &lab, &url, &[]).run());
            lab.wait_for_file("begun");
            nobody_listens_but(&url);
            go.write_all(b"\n").unwrap();
            assert_eq!(running.join().unwrap().as_deref(), Ok("done"), "{dialect:?}");
        });
    }
}

/// Not a test by itself: the run and what the kernel has counted.
#[test]
fn in_a_network_of_its_own() {
    if std::env::var_os(INSIDE).is_none() {
        return;
    }
    loopback_up();
    let server = Server::calls([call("mcp__test__echo", &json!({})), command(WAIT)]);
    let lab = peers(&[("test", "", "network: true")]).file("AGENTS.md", "Use tabs.\n");
    let mut go = lab.pipe("go");
    // How confinement is found by trying is another matter: there, listeners are what commands must not reach.
    lab.agent(&["doctor"]).exits(3);
    let before = counters();
    let url = server.url();
    let running = lab.start(&run_args(&url, &YOLO));
    lab.wait_for_file("begun");
    assert!(results(&server.requests()[1]).contains("called"), "a server of MCP runs too");
    nobody_listens_but(&url);
    go.write_all(b"\n").unwrap();
    running.finish().exits(0);
    let after = counters();
    let connections = u64::try_from(server.connections()).unwrap();
    assert_eq!(after["Tcp ActiveOpens"] - before["Tcp ActiveOpens"], connections);
    for counter in ["Ip OutNoRoutes", "Ip6 OutNoRoutes", "Udp OutDatagrams"] {
        assert_eq!(after[counter], before[counter], "{counter}");
    }
    // The kernel would have counted an attempt.
    drop(TcpStream::connect("192.0.2.1:443").unwrap_err());
    drop(UdpSocket::bind("0.0.0.0:0").unwrap().send_to(b"?", "192.0.2.1:53").unwrap_err());
    assert_eq!(counters()["Ip OutNoRoutes"], before["Ip OutNoRoutes"] + 2);
}

/// Checks that no socket of this network waits for anything, apart from the server at `url`.
#[track_caller]
fn nobody_listens_but(url: &str) {
    let port = url.split([':', '/']).nth(4).unwrap().parse::<u16>().unwrap();
    assert_eq!(listening_ports(), [port], "nobody listens but the server");
    for file in ["udp", "udp6", "udplite", "raw", "raw6", "packet"] {
        assert_eq!(sockets(file), Vec::<String>::new(), "{file}");
    }
    let listens = |line: &String| line.split_whitespace().nth(3) == Some("00010000");
    assert_eq!(sockets("unix").into_iter().filter(listens).collect::<Vec<_>>(), Vec::<String>::new());
}

/// Switches loopback on: a message of `rtnetlink(7)` to the kernel, and its answer.
fn loopback_up() {
    const NEW_LINK: u16 = 16;
    const REQUEST_AND_ANSWER: u16 = 1 | 4;
    const LOOPBACK: u32 = 1;
    const UP: u32 = 1;
    let socket = rustix::net::socket(AddressFamily::NETLINK, SocketType::RAW, None).unwrap();
    let mut message = Vec::new();
    for word in [32, u32::from(REQUEST_AND_ANSWER) << 16 | u32::from(NEW_LINK), 1, 0, 0, LOOPBACK, UP, UP] {
        message.extend(word.to_ne_bytes());
    }
    if cfg!(target_endian = "big") {
        message[4..8].rotate_left(2);
    }
    rustix::net::sendto(&socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0)).unwrap();
    let mut answer = [0; 256];
    let (length, _) = rustix::net::recv(&socket, &mut answer, RecvFlags::empty()).unwrap();
    // After the header of 16 bytes stands the error, which is 0.
    assert!(length >= 20 && answer[16..20] == [0; 4], "{:?}", &answer[..length]);
}

/// The sockets that a file of the kernel lists.
fn sockets(file: &str) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/self/net/{file}")).unwrap_or_default();
    text.lines().skip(1).map(str::to_owned).collect()
}

fn listening_ports() -> Vec<u16> {
    let port = |line: &String| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().unwrap();
        let port = u16::from_str_radix(local.rsplit(':').next().unwrap(), 16).unwrap();
        (fields.nth(1) == Some(LISTENS)).then_some(port)
    };
    ["tcp", "tcp6"].iter().flat_map(|file| sockets(file)).filter_map(|line| port(&line)).collect()
}

/// What the kernel has counted in this network, by protocol and name.
fn counters() -> BTreeMap<String, u64> {
    let mut counted = BTreeMap::from([("Ip6 OutNoRoutes".to_owned(), 0)]);
    let text = fs::read_to_string("/proc/self/net/snmp").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    for pair in lines.chunks_exact(2) {
        let (names, values) = (pair[0].split_whitespace(), pair[1].split_whitespace());
        let protocol = pair[0].split(':').next().unwrap();
        for (name, value) in names.zip(values).skip(1) {
            counted.insert(format!("{protocol} {name}"), value.parse().unwrap_or_default());
        }
    }
    let six = fs::read_to_string("/proc/self/net/snmp6").unwrap_or_default();
    let line = six.lines().find_map(|line| line.strip_prefix("Ip6OutNoRoutes"));
    counted.extend(line.map(|value| ("Ip6 OutNoRoutes".to_owned(), value.trim().parse().unwrap())));
    counted
}
