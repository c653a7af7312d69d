//! `agent acp`: images in prompts.

use crate::acp::Editor;
use crate::images::{GIF, base64, png};
use crate::support::mcp_client::McpClient;
use crate::support::run::Lab;
use crate::support::server::Server;
use serde_json::{Value, json};

/// A model that looks at two pictures.
const SEEN: &str = "turns: [{text: seen, repeat: 2}]";

fn image(bytes: &[u8]) -> Value {
    json!({"type": "image", "data": base64(bytes), "mimeType": "image/png"})
}

fn prompt(editor: &mut Editor, session: &str, blocks: &Value) -> Value {
    editor.request("session/prompt", &json!({"sessionId": session, "prompt": blocks}))
}

#[test]
fn acp_images_of_a_prompt_reach_the_model_with_their_format_and_are_kept_in_the_session() {
    let (lab, model) = (Lab::new(), Server::start(SEEN));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    let mut named = image(&png(640, 480, 12_000));
    named["uri"] = json!("file:///w/photo.png");
    let blocks =
        json!([{"type": "text", "text": "Compare "}, image(GIF), {"type": "text", "text": " with "}, named]);
    assert_eq!(prompt(&mut editor, &session, &blocks)["result"]["stopReason"], "end_turn");
    let parts = model.requests()[0].body["messages"][1]["content"].clone();
    assert_eq!(parts[0]["text"], "[image 1 (GIF, 258x3, 14 bytes)]\n");
    assert_eq!(parts[1]["image_url"]["url"], format!("data:image/gif;base64,{}", base64(GIF)));
    assert!(parts[3]["image_url"]["url"].as_str().unwrap().starts_with("data:image/png;base64,"), "{parts}");
    assert_eq!(parts[4]["text"], "Compare [image 1] with [image file:///w/photo.png]");
    let only = prompt(&mut editor, &session, &json!([image(GIF)]));
    assert_eq!(only["result"]["stopReason"], "end_turn", "a prompt of an image alone: {only}");
    let shown = lab.agent(&["sessions", "show", &session]).exits(0).stdout;
    assert!(shown.contains("photo.png"), "{shown}");
}

#[test]
fn acp_images_that_cannot_be_used_are_errors_and_nothing_is_sent() {
    let (lab, model) = (Lab::new(), Server::start(SEEN));
    let mut editor = Editor::start(&lab, &model, &[]);
    let session = editor.open(&lab);
    for (blocks, why) in [
        (json!([image(b"no image")]), "not a PNG, JPEG, GIF or WebP image"),
        (json!([image(&png(8_001, 1, 0))]), "8001x1 pixels"),
        (json!([image(&png(1, 1, (5 << 20) + 1))]), "more than the 5242880"),
        (json!(vec![image(GIF); 21]), "21 images"),
        (json!([{"type": "image", "data": "%%%", "mimeType": "image/png"}]), "image"),
    ] {
        let refused = prompt(&mut editor, &session, &blocks);
        assert_eq!(refused["error"]["code"], -32602, "{why}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(why), "{why}: {refused}");
    }
    assert!(model.requests().is_empty());
}

#[test]
fn acp_initialize_tells_whether_the_model_accepts_images_and_a_blind_one_gets_none() {
    for (config, accepts) in [("{}\n", true), ("llm: {images: false}\n", false)] {
        let (lab, model) = (Lab::new().config(config), Server::start(SEEN));
        let mut client = McpClient::spawn_as(&["acp"], &lab, &model, &[]);
        let about = client.request("initialize", &json!({"protocolVersion": 1}));
        assert_eq!(about["result"]["agentCapabilities"]["promptCapabilities"]["image"], accepts, "{about}");
        let opened = client.request("session/new", &json!({"cwd": lab.ws(), "mcpServers": []}));
        let params = json!({"sessionId": opened["result"]["sessionId"], "prompt": [image(GIF)]});
        let done = client.request("session/prompt", &params);
        assert_eq!(done["error"]["code"] == -32602, !accepts, "{done}");
        assert_eq!(model.requests().len(), usize::from(accepts), "{done}");
    }
}
