//! An MCP server over HTTP with its own authorization server, on this machine. What a test wants otherwise, it answers itself.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Result, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The head in lower case.
    pub head: String,
    pub body: String,
}

impl HttpRequest {
    /// The method of the message; empty if there is none.
    pub fn message(&self) -> String {
        self.json()["method"].as_str().unwrap_or_default().to_owned()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// What a test answers itself; `None`: the usual answer.
type Special = dyn Fn(&HttpRequest, &McpService) -> Option<String> + Send + Sync;

/// The service.
#[derive(Clone)]
pub struct McpService {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
}

impl McpService {
    /// Starts a service that needs no token.
    pub fn start() -> Self {
        Self::answering(|_, _| None)
    }

    /// Starts a service whose tools need the token `of-the-login`, which its authorization server gives.
    pub fn with_login() -> Self {
        Self::answering(needs_token)
    }

    pub fn answering(
        special: impl Fn(&HttpRequest, &McpService) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let service = Self { address, requests: Arc::default() };
        let (shared, special) = (service.clone(), Arc::<Special>::from(Box::new(special) as Box<Special>));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (service, special) = (shared.clone(), Arc::clone(&special));
                // A client that goes away is no fault of the service.
                std::thread::spawn(move || service.serve(stream.unwrap(), special.as_ref()).is_ok());
            }
        });
        service
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<HttpRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// The requests with a message of this method.
    pub fn with_message(&self, method: &str) -> Vec<HttpRequest> {
        self.requests().into_iter().filter(|request| request.message() == method).collect()
    }

    fn serve(&self, stream: TcpStream, special: &Special) -> Result<()> {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let mut first = head.split(' ').map(str::to_owned);
        let (method, path) = (first.next().unwrap(), first.next().unwrap());
        let mut request = HttpRequest { method, path, head: head.to_lowercase(), body: String::new() };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        request.body = String::from_utf8(body).unwrap();
        self.requests.lock().unwrap().push(request.clone());
        let answer = special(&request, self).unwrap_or_else(|| self.usual(&request));
        reader.get_mut().write_all(answer.as_bytes())?;
        if !answer.contains("connection: close") {
            // The answer goes on, so this ends when the client leaves.
            std::io::copy(&mut reader, &mut std::io::sink())?;
        }
        Ok(())
    }

    fn usual(&self, request: &HttpRequest) -> String {
        let origin = self.origin();
        match request.path.split('?').next().unwrap() {
            "/mcp" if request.method == "DELETE" => status("204 No Content", ""),
            "/mcp" if request.method == "GET" => status("405 Method Not Allowed", ""),
            "/mcp" => mcp(request),
            "/.well-known/oauth-protected-resource/mcp" => ok(&json!({
                "resource": self.url(), "authorization_servers": [origin]
            })),
            "/.well-known/oauth-authorization-server" => ok(&self.metadata()),
            "/register" => {
                let mut client = request.json();
                client["client_id"] = json!("registered");
                json_answer("201 Created", &client)
            }
            "/authorize" => {
                let state = request.path.split('&').find(|part| part.starts_with("state=")).unwrap();
                let to = format!("http://127.0.0.1:33418/callback?code=the-code&{state}&iss={origin}");
                status("302 Found", &format!("location: {to}\r\n"))
            }
            "/token" => ok(&json!({
                "access_token": "of-the-login", "token_type": "Bearer", "refresh_token": "to-renew-it", "scope": "read"
            })),
            _ => status("404 Not Found", ""),
        }
    }

    /// The metadata of the authorization server.
    pub fn metadata(&self) -> Value {
        let origin = self.origin();
        json!({
            "issuer": origin, "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true
        })
    }
}

/// Refuses messages without the token of the login.
pub fn needs_token(request: &HttpRequest, service: &McpService) -> Option<String> {
    let is_allowed = request.header("authorization") == Some("bearer of-the-login");
    (request.path == "/mcp" && !is_allowed).then(|| {
        let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", service.origin());
        status("401 Unauthorized", &format!("www-authenticate: Bearer resource_metadata=\"{metadata}\"\r\n"))
    })
}

/// Answers a message: as JSON, a call as a stream of events.
fn mcp(request: &HttpRequest) -> String {
    let message = request.json();
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            let body = answer(json!({
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"}
            }));
            with_body(
                "200 OK",
                "content-type: application/json\r\nmcp-session-id: of-the-test\r\n",
                &body.to_string(),
            )
        }
        "tools/list" => ok(&answer(json!({"tools": [{
            "name": "echo", "description": "Repeats a text.",
            "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}
        }]}))),
        "tools/call" => {
            let text =
                format!("echo: {}", message["params"]["arguments"]["text"].as_str().unwrap_or_default());
            let result = answer(json!({"content": [{"type": "text", "text": text}]}));
            with_body(
                "200 OK",
                "content-type: text/event-stream\r\n",
                &format!("event: message\ndata: {result}\n\n"),
            )
        }
        _ if message["id"].is_null() => status("202 Accepted", ""),
        _ => ok(&json!({"jsonrpc": "2.0", "id": message["id"],
            "error": {"code": -32601, "message": "Method not found"}})),
    }
}

pub fn ok(body: &Value) -> String {
    json_answer("200 OK", body)
}

fn json_answer(line: &str, body: &Value) -> String {
    with_body(line, "content-type: application/json\r\n", &body.to_string())
}

/// An answer without body, with these header lines.
pub fn status(line: &str, headers: &str) -> String {
    with_body(line, headers, "")
}

fn with_body(line: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {line}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}
