//! The proxy over real connections: what passes, and that nothing hostile reaches a host.

use super::*;
use std::net::SocketAddr;
use tokio::runtime::Builder;
use tokio::time::Instant;

/// A server that answers each connection with what it received until the head was complete, in lower case.
async fn echo_server() -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, count) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(0)));
    let seen = Arc::clone(&count);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            *seen.lock().unwrap() += 1;
            tokio::spawn(async move {
                let mut bytes = Vec::new();
                while !bytes.ends_with(b"\r\n\r\n") && stream.read_buf(&mut bytes).await.unwrap() > 0 {}
                let text = String::from_utf8(bytes).unwrap().to_lowercase();
                stream.write_all(text.as_bytes()).await.unwrap();
            });
        }
    });
    (address, count)
}

/// A proxy that allows `localhost` with the port of `server`, and its address although it is not public.
fn proxy(server: SocketAddr, is_private_allowed: bool) -> (CommandProxy, ProxyTask, SocketAddr) {
    let hosts = vec![AllowedHost::parse(&format!("localhost:{}", server.port())).unwrap()];
    let allowed_private = [server].into_iter().filter(|_| is_private_allowed).collect();
    let proxy = CommandProxy::new(hosts, Fetcher { allowed_private, ..Fetcher::default() });
    let listener = StdListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let task = proxy.serve(listener).unwrap();
    (proxy, task, address)
}

/// Sends `pieces` one after another and returns the answer.
async fn sent(proxy: SocketAddr, pieces: &[&[u8]]) -> String {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        // The proxy may have refused already.
        if stream.write_all(piece).await.is_err() {
            break;
        }
    }
    let _closed = stream.shutdown().await;
    let mut answer = Vec::new();
    let _reset = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn block_on(test: impl Future<Output = ()>) {
    Builder::new_current_thread().enable_all().build().unwrap().block_on(test);
}

#[test]
fn class_54_a_tunnel_and_a_plain_request_reach_an_allowed_host_also_in_single_bytes() {
    block_on(async {
        let (server, connections) = echo_server().await;
        let (_, _task, address) = proxy(server, true);
        let port = server.port();
        let tunnel = format!("CONNECT localhost:{port} HTTP/1.1\r\n\r\nHELLO\r\n\r\n");
        let answer = sent(address, &[tunnel.as_bytes()]).await;
        assert_eq!(answer, "HTTP/1.1 200 Connection established\r\n\r\nhello\r\n\r\n");
        let plain = format!("GET http://LOCALHOST:{port}/A HTTP/1.1\r\nHost: evil.test\r\n\r\n");
        let bytes: Vec<&[u8]> = plain.as_bytes().chunks(1).collect();
        let answer = sent(address, &bytes).await;
        assert_eq!(answer, format!("get /a http/1.1\r\nhost: localhost:{port}\r\nconnection: close\r\n\r\n"));
        assert_eq!(*connections.lock().unwrap(), 2);
    });
}

#[test]
fn class_54_no_hostile_head_reaches_a_host() {
    block_on(async {
        let (server, connections) = echo_server().await;
        let (proxy_of_run, _task, address) = proxy(server, true);
        let port = server.port();
        let long = format!("CONNECT localhost:{port} HTTP/1.1\r\nA: {}", "x".repeat(1 << 20));
        let many = "A: b\r\n".repeat(200);
        let many = format!("CONNECT localhost:{port} HTTP/1.1\r\n{many}\r\n");
        let heads = [
            format!("CONNECT localhost\0.evil.test:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT evil.test\0localhost:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT localhost.:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT u@localhost:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT 127.1:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT 0x7f000001:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT [::1]:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT [::ffff:127.0.0.1]:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT [0:0:0:0:0:ffff:7f00:1]:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT localhost:0{port} HTTP/1.1\r\n\r\n"),
            format!("GET http://evil.test@localhost:{port}/ HTTP/1.1\r\n\r\n"),
            format!("GET / HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n"),
            "GET http://localhost:443/ HTTP/1.1\r\n\r\n".to_owned(),
            format!("\u{5}\u{1}\0\u{5}\u{1}\0\u{3}\u{9}localhost{port}"),
            "CONNECT localhost:1 HTTP/1.1\r\n\r\n".to_owned(),
            format!("CONNECT sub.localhost:{port} HTTP/1.1\r\n\r\n"),
            format!("CONNECT localhost:{port} HTTP/1.1\r\nA: b"),
            long,
            many,
        ];
        for head in &heads {
            let answer = sent(address, &[head.as_bytes()]).await;
            let shown: String = head.chars().take(60).collect();
            assert!(!answer.contains(" 200 "), "{shown:?}: {answer}");
        }
        assert_eq!(*connections.lock().unwrap(), 0);
        let refusals = proxy_of_run.take_refusals();
        for wanted in [
            "localhost:1 is not one of sandbox.allowed_hosts".to_owned(),
            format!("sub.localhost:{port} is not one of sandbox.allowed_hosts"),
            format!("127.0.0.1:{port} is not the name of a host in ASCII with a port"),
            format!("[::ffff:127.0.0.1]:{port} is not the name of a host in ASCII with a port"),
            "the request is not HTTP/1".to_owned(),
            "the head of the request is too long".to_owned(),
            "plain HTTP to port 443 is not forwarded".to_owned(),
        ] {
            assert!(refusals.contains(&wanted), "{wanted}: {refusals:?}");
        }
        assert!(proxy_of_run.take_refusals().is_empty());
    });
}

#[test]
fn class_53_an_allowed_host_at_a_private_address_is_refused() {
    block_on(async {
        let (server, connections) = echo_server().await;
        let (proxy_of_run, _task, address) = proxy(server, false);
        let head = format!("CONNECT localhost:{} HTTP/1.1\r\n\r\n", server.port());
        let answer = sent(address, &[head.as_bytes()]).await;
        assert!(
            answer.starts_with("HTTP/1.1 403 Forbidden\r\n") && answer.contains("not a public address"),
            "{answer}"
        );
        assert_eq!((*connections.lock().unwrap(), proxy_of_run.take_refusals().len()), (0, 1));
    });
}

#[test]
fn class_54_a_proxy_that_is_dropped_closes_its_listener_and_its_connections() {
    block_on(async {
        let (server, _) = echo_server().await;
        let (_, task, address) = proxy(server, true);
        let mut open = TcpStream::connect(address).await.unwrap();
        open.write_all(format!("CONNECT localhost:{} HTTP/1.1\r\n\r\n", server.port()).as_bytes())
            .await
            .unwrap();
        open.readable().await.unwrap();
        drop(task);
        let mut rest = Vec::new();
        let _reset = open.read_to_end(&mut rest).await;
        assert!(rest.starts_with(b"HTTP/1.1 200"));
        assert!(TcpStream::connect(address).await.is_err());
    });
}

#[test]
fn class_54_running_calls_have_all_refusals_and_the_run_those_without_a_call() {
    block_on(async {
        let (server, _) = echo_server().await;
        let (proxy, _task, address) = proxy(server, true);
        let refused = async |host: &str| {
            sent(address, &[format!("CONNECT {host}:1 HTTP/1.1\r\n\r\n").as_bytes()]).await;
            format!("{host}:1 is not one of sandbox.allowed_hosts")
        };
        let first = proxy.refusals_of_call();
        let a = refused("a.test").await;
        let second = proxy.refusals_of_call();
        let b = refused("b.test").await;
        assert_eq!((first.take(), second.take()), (vec![a, b.clone()], vec![b]));
        assert!(proxy.take_refusals().is_empty());
        drop((first, second));
        let c = refused("c.test").await;
        assert_eq!(proxy.take_refusals(), [c]);
    });
}

/// A server that returns each byte, and closes a connection when its client does.
async fn open_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = stream.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

/// Sends the request for a tunnel to the port of `server`.
async fn ask_for_tunnel(proxy: SocketAddr, server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(proxy).await.unwrap();
    let head = format!("CONNECT localhost:{} HTTP/1.1\r\n\r\n", server.port());
    stream.write_all(head.as_bytes()).await.unwrap();
    stream
}

/// Waits until the tunnel is open.
async fn opened(mut stream: TcpStream) -> TcpStream {
    let mut answer = [0; 39];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, *b"HTTP/1.1 200 Connection established\r\n\r\n");
    stream
}

#[test]
fn class_54_no_more_than_64_connections_are_served_at_the_same_time() {
    block_on(async {
        let server = open_server().await;
        let (proxy, _task, address) = proxy(server, true);
        let mut tunnels = Vec::new();
        for _ in 0..MAX_CONNECTIONS {
            tunnels.push(opened(ask_for_tunnel(address, server).await).await);
        }
        assert_eq!(proxy.0.free.available_permits(), 0);
        let waiting = ask_for_tunnel(address, server).await;
        drop(tunnels.pop());
        let _served = opened(waiting).await;
        assert_eq!(
            proxy.0.free.available_permits(),
            0,
            "the connection that waited has the place of the closed one"
        );
    });
}

/// Runs a test with a clock that moves on as soon as everything waits, also for an event of the kernel.
fn block_on_without_waiting(test: impl Future<Output = ()>) {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(test);
}

/// Runs `work` while the clock stands still.
async fn at_once<T>(work: impl Future<Output = T>) -> T {
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    // The clock does not move while a blocking task runs.
    let hold = tokio::task::spawn_blocking(move || is_done.recv().is_err());
    let result = work.await;
    drop(done);
    assert!(hold.await.unwrap());
    result
}

#[test]
fn class_54_a_connection_without_a_byte_is_closed_after_the_idle_time() {
    block_on_without_waiting(async {
        let server = open_server().await;
        let (_, _task, address) = proxy(server, true);
        let mut tunnel = at_once(async { opened(ask_for_tunnel(address, server).await).await }).await;
        let opened_at = Instant::now();
        assert_eq!(tunnel.read(&mut [0]).await.unwrap(), 0);
        assert_eq!(opened_at.elapsed().as_secs(), IDLE_TIMEOUT.as_secs());
    });
}

#[test]
fn class_54_a_connection_is_closed_after_the_total_time_whatever_it_sends() {
    block_on_without_waiting(async {
        let server = open_server().await;
        let (_, _task, address) = proxy(server, true);
        let mut tunnel = at_once(async { opened(ask_for_tunnel(address, server).await).await }).await;
        let (opened_at, pause) = (Instant::now(), IDLE_TIMEOUT / 2);
        let mut byte = [0];
        while at_once(async {
            tunnel.write_all(b"x").await?;
            tunnel.read_exact(&mut byte).await
        })
        .await
        .is_ok()
        {
            sleep(pause).await;
        }
        let took = opened_at.elapsed();
        assert!((TOTAL_TIMEOUT..=TOTAL_TIMEOUT + pause).contains(&took), "{took:?}");
    });
}

#[test]
fn class_54_a_head_that_does_not_end_is_answered_after_its_time() {
    block_on_without_waiting(async {
        let (_, _task, address) = proxy(open_server().await, true);
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"CONNECT localhost:1 HTTP/1.1\r\n").await.unwrap();
        let (started, mut answer) = (Instant::now(), String::new());
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
        assert_eq!(started.elapsed().as_secs(), HEAD_TIMEOUT.as_secs());
    });
}
