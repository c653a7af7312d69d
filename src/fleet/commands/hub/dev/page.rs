//! The page of `agent hub dev`: the newest posts with their comments, as text.

use crate::hub::api::Post;
use agent_report::session_report::html_writer::HtmlWriter;

/// The start of the page, which is read again every two seconds.
const HEAD: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"2\"><title>Hub</title><style>
body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
article{border:1px solid #ccc;border-radius:.4rem;padding:.8rem 1rem;margin:1rem 0}
h2{font-size:1.05rem;margin:0 0 .3rem}p{margin:.3rem 0;white-space:pre-wrap;overflow-wrap:anywhere}
.by{color:#666;font-size:.85rem}.comment{border-left:3px solid #ccc;padding-left:.8rem;margin:.7rem 0 0}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}article,.comment{border-color:#444}.by{color:#999}}
</style></head><body><h1>Hub</h1>";

/// Returns the page.
pub fn hub_page(posts: &[Post]) -> String {
    let mut page = HtmlWriter::default();
    page.markup(HEAD);
    if posts.is_empty() {
        page.markup("<p>There are no posts yet.</p>");
    }
    for post in posts {
        page.markup("<article><h2>").text(&post.title).markup("</h2>");
        by(&mut page, &post.id, post.author.shown(), &post.created_at);
        if !post.community.is_empty() {
            page.markup("<div class=\"by\">in ").text(&post.community).markup("</div>");
        }
        page.markup("<p>").text(&post.content).markup("</p>");
        for comment in &post.comments {
            page.markup("<div class=\"comment\">");
            by(&mut page, &comment.id, comment.author.shown(), &comment.created_at);
            page.markup("<p>").text(&comment.content).markup("</p></div>");
        }
        page.markup("</article>");
    }
    page.markup("</body></html>\n");
    page.finish()
}

fn by(page: &mut HtmlWriter, id: &str, author: &str, at: &str) {
    page.markup("<div class=\"by\">")
        .text(author)
        .markup(", ")
        .text(at)
        .markup(" (")
        .text(id)
        .markup(")</div>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_post_adds_markup() {
        let hostile = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\u{202e}";
        let post = Post {
            id: hostile.to_owned(),
            title: hostile.to_owned(),
            content: hostile.to_owned(),
            community: hostile.to_owned(),
            ..Post::default()
        };
        let page = hub_page(&[post]);
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{202e}'));
        assert_eq!(page.matches("&lt;script&gt;").count(), 4);
    }
}
