//! Images of users and tools: what is checked, stored and sent, and what remains of them.

use crate::formats::play;
use crate::support::run::{KEY, Lab, holding};
use crate::support::server::{Recorded, Server};
use crate::support::terminal::AtTerminal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustix::process::Signal;
use serde_json::json;
use std::fs;

/// A PNG file with a header of this size, and `bytes` bytes in all.
pub fn png(width: u32, height: u32, bytes: usize) -> Vec<u8> {
    let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
    let mut png = [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &size, b"\x08\x02\0\0\0"].concat();
    png.resize(bytes.max(png.len()), 7);
    png
}

/// A GIF file of 258 x 3 pixels.
pub const GIF: &[u8] = b"GIF89a\x02\x01\x03\0\0\0\0;";

const PNG_LABEL: &str = "[image photo.png (PNG, 640x480, 12 KB)]";

fn photo() -> Vec<u8> {
    png(640, 480, 12_000)
}

/// A workspace with `photo.png` and, under a wrong name, a GIF file.
fn with_pictures() -> Lab {
    Lab::new().file("photo.png", photo()).file("shot.png", GIF)
}

pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn url(media_type: &str, bytes: &[u8]) -> String {
    format!("data:{media_type};base64,{}", base64(bytes))
}

/// The number of images in a request of Chat Completions.
fn sent(request: &Recorded) -> usize {
    request.body["messages"].to_string().matches("data:image/").count()
}

const READ_SHOT: &str = "{calls: [{id: c1, name: read_file, arguments: {path: shot.png}}]}";

/// Runs a task with an image, in which the model reads another one; returns its second request.
fn both_images(model: &str) -> Recorded {
    let lab = with_pictures();
    let script = format!("turns: [{READ_SHOT}, {{text: done}}]");
    let (done, requests) = play(model, &lab, &script, &["--image", "photo.png"]);
    let done = done.exits(0);
    assert!(done.stderr.contains("image photo.png (PNG, 640x480, 12 KB)"), "{}", done.stderr);
    let (first, second) = (&requests[0], &requests[1]);
    // The second request begins with the first, up to what closes its list.
    let prefix = first.bytes.strip_suffix(b"]}").unwrap();
    let prefix = prefix.strip_suffix(b"]}").unwrap_or(prefix);
    let is_marked = String::from_utf8_lossy(prefix).contains("cache_control");
    assert!(is_marked || second.bytes.starts_with(prefix), "{model}");
    second.clone()
}

const READ_LABEL: &str = "The image shot.png (GIF, 258x3, 14 bytes) is attached.";
const RESULT_LABEL: &str = "[image shot.png (GIF, 258x3, 14 bytes) of the result of read_file]\n";

#[test]
fn images_in_chat_completions_are_parts_of_user_messages() {
    let request = both_images("openai/m");
    let image =
        |media_type, bytes: &[u8]| json!({"type": "image_url", "image_url": {"url": url(media_type, bytes)}});
    let text = |text: &str| json!({"type": "text", "text": text});
    let messages = request.messages();
    let prompt = json!([text(&format!("{PNG_LABEL}\n")), image("image/png", &photo()), text("task")]);
    assert_eq!(messages[1], json!({"role": "user", "content": prompt}));
    assert_eq!((&messages[3]["role"], &messages[3]["content"]), (&json!("tool"), &json!(READ_LABEL)));
    let after = json!([text(RESULT_LABEL), image("image/gif", GIF)]);
    assert_eq!(messages[4], json!({"role": "user", "content": after}));
    assert_eq!(messages.len(), 5);
}

#[test]
fn images_in_anthropics_format_are_blocks_also_of_results() {
    let request = both_images("anthropic/claude-m");
    let image = |media_type: &str, bytes: &[u8]| json!({"type": "image", "source": {"type": "base64", "media_type": media_type, "data": base64(bytes)}});
    let messages = request.messages();
    assert_eq!(messages[0]["content"][0]["text"], format!("{PNG_LABEL}\n"));
    assert_eq!(messages[0]["content"][1], image("image/png", &photo()));
    assert_eq!(messages[0]["content"][2]["text"], "task");
    let result = &messages[2]["content"][0];
    assert_eq!(result["type"], "tool_result");
    assert_eq!(result["content"], json!([{"type": "text", "text": READ_LABEL}, image("image/gif", GIF)]));
}

#[test]
fn images_in_the_responses_format_are_parts_also_of_outputs() {
    let request = both_images("openai-responses/m");
    let image =
        |media_type, bytes: &[u8]| json!({"type": "input_image", "image_url": url(media_type, bytes)});
    let text = |text: &str| json!({"type": "input_text", "text": text});
    let input = request.body["input"].as_array().unwrap();
    let prompt = json!([text(&format!("{PNG_LABEL}\n")), image("image/png", &photo()), text("task")]);
    assert_eq!(input[1], json!({"type": "message", "role": "user", "content": prompt}));
    let output = &input.last().unwrap()["output"];
    assert_eq!(output, &json!([text(READ_LABEL), image("image/gif", GIF)]));
}

#[test]
fn images_in_geminis_format_are_inline_data() {
    let request = both_images("gemini/m");
    let image =
        |media_type, bytes: &[u8]| json!({"inlineData": {"mimeType": media_type, "data": base64(bytes)}});
    let contents = request.body["contents"].as_array().unwrap();
    let prompt = json!([{"text": format!("{PNG_LABEL}\n")}, image("image/png", &photo()), {"text": "task"}]);
    assert_eq!(contents[0], json!({"role": "user", "parts": prompt}));
    assert!(contents[2]["parts"][0]["functionResponse"].is_object());
    let after = json!([{"text": RESULT_LABEL}, image("image/gif", GIF)]);
    assert_eq!(contents[3], json!({"role": "user", "parts": after}));
}

#[test]
fn images_in_ollamas_format_stand_beside_the_text() {
    let request = both_images("ollama/m");
    let messages = request.messages();
    let prompt =
        json!({"role": "user", "content": format!("{PNG_LABEL}\ntask"), "images": [base64(&photo())]});
    assert_eq!(messages[1], prompt);
    assert_eq!(messages[3]["content"], READ_LABEL);
    assert_eq!(messages[4], json!({"role": "user", "content": RESULT_LABEL, "images": [base64(GIF)]}));
}

/// Runs with these arguments, which must exit with 3 before anything is sent and tell `why`.
#[track_caller]
fn refused(lab: &Lab, more: &[&str], why: &str) {
    let server = Server::done();
    let done = lab.run(&server, more).exits(3);
    assert!(done.stderr.contains(why), "{why}: {}", done.stderr);
    assert!(!done.stderr.contains('\u{1b}') && server.requests().is_empty());
}

#[test]
fn images_that_cannot_be_used_exit_3_with_what_to_do() {
    let lab = with_pictures()
        .file("text.png", "no image")
        .file("large.png", png(1, 1, (5 << 20) + 100))
        .file("wide.png", png(8_001, 1, 0))
        .file("damaged.png", &photo()[..20])
        .file("four.png", png(1, 1, 4 << 20))
        .file("\u{1b}[2Jx.png", "no image");
    for (file, why) in [
        ("absent.png", "image absent.png: it does not exist"),
        (".", "is a directory"),
        ("text.png", "image text.png: it is not a PNG, JPEG, GIF or WebP image"),
        ("large.png", "it has 5242980 bytes, more than the 5242880"),
        ("wide.png", "it has 8001x1 pixels, more than 8000 on a side"),
        ("damaged.png", "its PNG header is damaged"),
        ("\u{1b}[2Jx.png", "image \\u{1b}[2Jx.png: it is not"),
    ] {
        refused(&lab, &["--image", file], why);
    }
    let many = vec!["--image=photo.png"; 21];
    refused(&lab, &many, "21 images are attached; a message can have 20");
    refused(&lab, &["--image=four.png"; 6], "the images have 25.1 MB together");
    let done = lab.agent(&["resume", "--last", "--image", "photo.png"]).exits(3);
    assert!(done.stderr.contains("no session") || done.stderr.contains("--image"), "{}", done.stderr);
    assert!(lab.journals().is_empty(), "no session is created");
}

#[test]
fn images_for_a_model_that_accepts_none_exit_3_unless_the_user_says_otherwise() {
    let server = Server::done();
    let url = server.url();
    let run = |lab: &Lab, code| {
        let model = ["--model", "deepseek/deepseek-v4-pro", "--api-base", &url, "--api-key", KEY];
        lab.agent(&[&["run", "task", "--image", "photo.png"], &model[..]].concat()).exits(code)
    };
    let lab = with_pictures();
    let done = run(&lab, 3);
    assert!(
        done.stderr.contains("accepts no images") && done.stderr.contains("llm.images"),
        "{}",
        done.stderr
    );
    refused(&lab.config("llm: {images: false}\n"), &["--image", "photo.png"], "accepts no images");
    run(&with_pictures().config("llm: {images: true}\n"), 0);
    assert_eq!(sent(&server.requests()[0]), 1);
}

#[test]
fn images_that_a_fallback_model_does_not_accept_are_a_warning_at_the_start() {
    let lab = with_pictures()
        .config("llm: {fallback: [deepseek/deepseek-v4-pro, openai/other]}\n")
        .env("DEEPSEEK_API_KEY", KEY);
    let server = Server::start("turns: [{text: one}, {text: two}]");
    let warning =
        "a fallback model would not see the images, because it accepts none: deepseek/deepseek-v4-pro\n";
    let done = lab.run(&server, &["--image", "photo.png"]).exits(0);
    assert!(done.stderr.contains(warning), "{}", done.stderr);
    let done = lab.run(&server, &[]).exits(0);
    assert!(!done.stderr.contains("would not see"), "{}", done.stderr);
}

#[test]
fn images_of_tools_are_a_line_for_a_model_that_accepts_none() {
    let lab = with_pictures().config("llm: {images: false}\n");
    let server = Server::start(&format!("turns: [{READ_SHOT}, {{text: done}}]"));
    lab.run(&server, &[]).exits(0);
    let request = &server.requests()[1];
    assert_eq!(sent(request), 0);
    let last = request.messages().last().unwrap()["content"].as_str().unwrap();
    assert!(last.contains("not sent, because this model accepts no images"), "{last}");
}

#[test]
fn images_that_read_file_cannot_send_are_errors_that_say_what_to_do() {
    let lab = Lab::new()
        .file("wide.png", png(9_000, 10, 0))
        .file("cut.gif", b"GIF89a")
        .file("text.png", "a text\n");
    let read = |path: &str| format!("{{calls: [{{name: read_file, arguments: {{path: {path}}}}}]}}");
    let turns = ["wide.png", "cut.gif", "text.png"].map(read).join(", ");
    let server = Server::start(&format!("turns: [{turns}, {{text: done}}]"));
    lab.run(&server, &[]).exits(0);
    assert_eq!(
        server.requests().last().unwrap().texts("tool"),
        [
            "Error: Image wide.png cannot be sent: it has 9000x10 pixels, more than 8000 on a side; scale it down or cut out the relevant part.",
            "Error: Image cut.gif cannot be sent: its GIF header is damaged.",
            "Contents of text.png (lines 1-1 of 1):\na text\n",
        ]
    );
}

#[test]
fn images_stay_in_sessions_that_are_resumed_copied_exported_and_imported() {
    let lab = with_pictures();
    lab.run(&Server::start(&format!("turns: [{READ_SHOT}, {{text: done}}]")), &["--image", "photo.png"])
        .exits(0);
    let id = lab.journal().parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let is_whole = |id: &str, number: usize| {
        let server = Server::start("turns: [{text: more}]");
        lab.agent_on(&server, &["resume", id, "go on", "--image", "shot.png"]).exits(0);
        assert_eq!(sent(&server.requests()[0]), number);
        assert!(lab.agent(&["replay", id]).exits(0).stdout.contains("identical to its end"));
    };
    let fork = lab.agent(&["sessions", "fork", &id]).exits(0).stdout.trim().to_owned();
    let file = lab.outside().join("session.jsonl");
    lab.agent(&["sessions", "export", &id, "-o", file.to_str().unwrap()]).exits(0);
    let shown = lab.agent(&["sessions", "show", &id]).exits(0).stdout;
    assert!(shown.contains("[image photo.png (PNG, 640x480, 12 KB)] task"), "{shown}");
    assert!(lab.agent(&["report", &id]).exits(0).stdout.contains("image photo.png"));
    is_whole(&id, 3);
    lab.agent(&["sessions", "rm", &id]).exits(0);
    is_whole(&fork, 3);
    let imported =
        lab.agent(&["sessions", "import", file.to_str().unwrap()]).exits(0).stdout.trim().to_owned();
    is_whole(&imported, 3);
    let exported = fs::read_to_string(&file).unwrap();
    assert!(exported.starts_with("{\"agent_session\":1,"));
    // An image with another content than its line says is refused.
    fs::write(&file, exported.replace(&base64(GIF), &base64(b"GIF89a\x09\x01\x03\0\0\0\0;"))).unwrap();
    let done = lab.agent(&["sessions", "import", file.to_str().unwrap()]).exits(3);
    assert!(done.stderr.contains("is not an image"), "{}", done.stderr);
    for id in [fork, imported] {
        lab.agent(&["sessions", "rm", &id]).exits(0);
    }
    assert_eq!(holding(&lab.home(), "GIF89a"), [] as [String; 0], "images are removed with their sessions");
}

#[test]
fn images_of_a_killed_run_are_sent_again_and_a_lost_one_leaves_a_line() {
    let lab = with_pictures();
    let server = Server::start("turns: [{fault: hang}, {text: done}, {text: again}]");
    let run = lab.start_run(&server, &["--image", "photo.png", "--image", "shot.png"]);
    server.wait_for_request(1);
    run.signal(Signal::KILL);
    run.finish();
    lab.resume(&server, &[]).exits(0);
    assert_eq!(sent(&server.requests()[1]), 2);
    let images = lab.journal().with_file_name("images");
    let damaged = images.join(format!("{}.image", blake3::hash(GIF).to_hex()));
    fs::write(damaged, "another content").unwrap();
    lab.resume(&server, &["go on"]).exits(0);
    let requests = server.requests();
    assert_eq!(sent(&requests[2]), 1);
    assert!(requests[2].body.to_string().contains("its stored content is missing or damaged"));
}

#[test]
fn images_above_twenty_leave_the_conversation_ten_at_a_time() {
    let lab = with_pictures();
    let attach = |server: &Server, number: usize| {
        let images = vec!["--image=shot.png"; number];
        lab.resume(server, &[&["go on"], images.as_slice()].concat()).exits(0);
    };
    let server = Server::start("turns: [{text: a}, {text: b}, {text: c}, {text: d}]");
    lab.run(&server, &["--image=photo.png", "--image=shot.png"]).exits(0);
    attach(&server, 18);
    attach(&server, 1);
    attach(&server, 1);
    let requests = server.requests();
    assert_eq!(requests.iter().map(sent).collect::<Vec<_>>(), [2, 20, 11, 12]);
    let first = requests[2].messages()[1]["content"].as_str().unwrap();
    assert!(first.starts_with("[image photo.png (PNG, 640x480, 12 KB), no longer sent]\n"), "{first}");
    let unchanged = requests[2].bytes.strip_suffix(b"]}").unwrap();
    assert!(requests[3].bytes.starts_with(unchanged), "the prefix is stable between the steps");
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn images_leave_a_line_when_the_conversation_is_compacted() {
    let lab = with_pictures()
        .config("llm: {context_window: 16000, retries: 0}\ncontext: {keep_recent_steps: 1}\n")
        .file("a.txt", "alpha\n".repeat(150));
    let read = "{calls: [{name: read_file, arguments: {path: a.txt}}], usage: {input: 13000, output: 10}}";
    let script = format!(
        "turns: [{READ_SHOT}, {read}, {{expect: {{tools: false}}, text: THE NOTES}}, {{text: done}}]"
    );
    let server = Server::start(&script);
    lab.run(&server, &["--image", "photo.png"]).exits(0);
    let requests = server.requests();
    assert_eq!(requests.iter().map(sent).collect::<Vec<_>>(), [1, 2, 0, 0]);
    let after = requests[3].messages();
    assert_eq!(after[1]["content"], "[image photo.png (PNG, 640x480, 12 KB), no longer sent]\ntask");
    let notes = after[2]["content"].as_str().unwrap();
    assert!(notes.contains("THE NOTES"), "{notes}");
    let left: Vec<&str> = after
        .iter()
        .filter_map(|message| message["content"].as_str())
        .filter(|text| text.contains("shot.png"))
        .collect();
    assert!(
        left.iter().any(|text| text.contains("[image shot.png (GIF, 258x3, 14 bytes), no longer sent]")),
        "{left:?}"
    );
    lab.agent(&["replay"]).exits(0);
}

#[test]
fn images_are_attached_in_a_conversation_with_a_slash_command() {
    let lab = with_pictures().file("two words.gif", GIF);
    let server = Server::start("turns: [{text: one}, {text: two}]");
    let mut chat = AtTerminal::chat(&lab, &server, &[]);
    chat.prompt(1);
    for (at, (line, shown)) in [
        ("/image", "no image is attached"),
        ("/image absent.png", "it does not exist"),
        ("/image pho\t", "image photo.png (PNG, 640x480, 12 KB)"),
        ("/image 'two words.gif'", "image two words.gif (GIF, 258x3, 14 bytes)"),
        ("/image clear", "no image is attached"),
        ("/image photo.png shot.png", "image shot.png (GIF, 258x3, 14 bytes)"),
        ("what is this?", "one"),
        ("and now?", "two"),
    ]
    .into_iter()
    .enumerate()
    {
        chat.types(&format!("{line}\r"));
        let screen = chat.prompt(at + 2);
        assert!(screen.contains(shown) || matches!(shown, "one" | "two"), "{line}: {screen}");
    }
    chat.types("\u{4}");
    chat.finish();
    let requests = server.requests();
    assert_eq!(requests.iter().map(sent).collect::<Vec<_>>(), [2, 2], "the next message has none of its own");
    let last = requests[1].messages().last().unwrap();
    assert_eq!(last["content"], "and now?");
}

#[test]
fn images_of_scripts_and_simulated_runs_are_described() {
    let script = "turns: [{expect: {last_contains: [task], contains: ['[image photo.png (PNG, 640x480, 12 KB)]']}, text: done}]";
    let lab = with_pictures().file("script.yaml", script);
    let run = ["run", "task", "--model", "scripted:script.yaml", "--image", "photo.png"];
    let done = lab.agent(&[&run[..], &["--dry-run", "--json"]].concat()).exits(0);
    assert_eq!(done.json()["images"][0]["name"], "photo.png");
    let done = lab.agent(&[&run[..], &["--output-format", "stream-json"]].concat()).exits(0);
    assert!(
        done.stdout.contains(r#""media_type":"image/png","width":640,"height":480,"bytes":12000"#),
        "{}",
        done.stdout
    );
    assert!(!done.stdout.contains(&base64(&photo()[..60])), "the bytes are in no event");
}
