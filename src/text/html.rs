//! Converts HTML to Markdown for the model: headings, lists, links, code, tables; linear in time and memory.
//!
//! Works on tokens without a tree, because a hostile page may nest a hundred thousand elements, and the error recovery of HTML
//! parsers can multiply them.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

/// Maximum indentation level of lists and quotes; deeper ones are shown at this level.
const MAX_INDENT: usize = 6;

/// Line before text that a browser does not show; a line with `]` follows the text.
const HIDDEN: &str = "[hidden on the page:";

/// Elements without content and end tag.
const VOID_ELEMENTS: [&[u8]; 13] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"source",
    b"track", b"wbr",
];

/// Elements with an optional end tag: the next element of the same name ends them.
const OPTIONAL_END_TAGS: [&[u8]; 8] = [b"dd", b"dt", b"li", b"option", b"p", b"td", b"th", b"tr"];

/// Converts a page to Markdown. `resolve` returns the absolute URL of a link, or `None` for an unusable one.
pub fn markdown(html: &str, resolve: &dyn Fn(&str) -> Option<String>) -> String {
    let mut emitter = DefaultEmitter::default();
    emitter.naively_switch_states(true);
    let mut writer = Writer::new(resolve);
    for Ok(token) in Tokenizer::new_with_emitter(html, emitter) {
        match token {
            Token::StartTag(tag) => writer.start(&tag),
            Token::EndTag(tag) => writer.end(&tag.name),
            Token::String(text) => writer.text(&String::from_utf8_lossy(&text)),
            Token::Comment(_) | Token::Doctype(_) | Token::Error(_) => {}
        }
    }
    writer.finish()
}

/// Output and the stack of open elements.
struct Writer<'a> {
    resolve: &'a dyn Fn(&str) -> Option<String>,
    out: String,
    /// Whether a space must precede the next text.
    space: bool,
    /// Name of the open element whose content is omitted, and the number of open elements of that name.
    skipped: Option<(Vec<u8>, usize)>,
    /// Name of the open element that a browser does not show, and the number of open elements of that name.
    hidden: Option<(Vec<u8>, usize)>,
    /// Text of the open `pre` element, buffered to choose its fence.
    preformatted: Option<String>,
    /// URL of the open link.
    link: Option<String>,
    /// Next number of each open list; `None` for an unordered list.
    lists: Vec<Option<u32>>,
    quotes: usize,
    /// Number of cells of the open row; `rows` counts the rows before it.
    cells: usize,
    rows: usize,
}

impl<'a> Writer<'a> {
    fn new(resolve: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            resolve,
            out: String::new(),
            space: false,
            skipped: None,
            hidden: None,
            preformatted: None,
            link: None,
            lists: Vec::new(),
            quotes: 0,
            cells: 0,
            rows: 0,
        }
    }

    fn start(&mut self, tag: &StartTag<()>) {
        let name = tag.name.as_slice();
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth += usize::from(skipped.as_slice() == name && !tag.self_closing);
            return;
        }
        let attribute = |name: &[u8]| {
            let value = tag.attributes.iter().find(|(key, _)| key.as_slice() == name);
            value.map(|(_, value)| String::from_utf8_lossy(value).into_owned())
        };
        let needs_escape = attribute(b"hidden").is_some()
            || attribute(b"style").is_some_and(|style| is_hiding_style(&style));
        if self.open_hidden(tag, needs_escape) {
            return;
        }
        match name {
            b"script" | b"style" | b"template" | b"svg" | b"math" | b"iframe" | b"object" | b"select"
                if !tag.self_closing =>
            {
                self.skipped = Some((name.to_vec(), 1));
            }
            b"a" => self.open_link(attribute(b"href")),
            b"img" => self.image(attribute(b"alt")),
            b"pre" => {
                self.block(2);
                self.preformatted.get_or_insert_default();
            }
            b"br" => self.line_break(),
            b"hr" => {
                self.block(2);
                self.write("---");
                self.block(2);
            }
            b"ul" => self.open_list(None),
            b"ol" => self.open_list(Some(0)),
            b"li" => self.item(),
            b"blockquote" => {
                self.block(2);
                self.quotes += 1;
            }
            b"table" => {
                self.block(2);
                self.rows = 0;
            }
            b"tr" => {
                self.block(1);
                self.cells = 0;
            }
            b"td" | b"th" => {
                self.space = false;
                self.write(if self.cells == 0 { "| " } else { " | " });
                self.cells += 1;
            }
            _ => self.inline_or_block(name, true),
        }
    }

    fn end(&mut self, name: &[u8]) {
        if let Some((skipped, depth)) = &mut self.skipped {
            *depth -= usize::from(skipped.as_slice() == name);
            if *depth == 0 {
                self.skipped = None;
                self.end_hidden(name);
            }
            return;
        }
        self.end_hidden(name);
        match name {
            b"a" => self.close_link(),
            b"pre" => self.close_preformatted(),
            b"ul" | b"ol" => {
                self.lists.pop();
                self.block(if self.lists.is_empty() { 2 } else { 1 });
            }
            b"blockquote" => {
                self.quotes = self.quotes.saturating_sub(1);
                self.block(2);
            }
            b"tr" => self.close_row(),
            b"table" => self.block(2),
            b"td" | b"th" => {}
            _ => self.inline_or_block(name, false),
        }
    }

    /// Tracks the start of a hidden element, and elements inside of one. Returns whether the element is hidden and empty, so that
    /// it is omitted.
    fn open_hidden(&mut self, tag: &StartTag<()>, needs_escape: bool) -> bool {
        let name = tag.name.as_slice();
        let is_empty = tag.self_closing || VOID_ELEMENTS.contains(&name);
        if needs_escape && is_empty {
            return true;
        }
        let reopens = self.hidden.as_ref().is_some_and(|(hidden, _)| hidden.as_slice() == name);
        if reopens && OPTIONAL_END_TAGS.contains(&name) {
            self.close_hidden();
        }
        match &mut self.hidden {
            Some((_, depth)) => *depth += usize::from(reopens && !is_empty),
            None if needs_escape => {
                self.block(1);
                self.text(HIDDEN);
                self.block(1);
                self.hidden = Some((name.to_vec(), 1));
            }
            None => {}
        }
        false
    }

    fn end_hidden(&mut self, name: &[u8]) {
        let Some((hidden, depth)) = &mut self.hidden else { return };
        *depth -= usize::from(hidden.as_slice() == name);
        if *depth == 0 {
            self.close_hidden();
        }
    }

    /// Ends the hidden element.
    fn close_hidden(&mut self) {
        if self.hidden.take().is_none() {
            return;
        }
        let shown = self.out.trim_end();
        if let (Some(before), None) = (shown.strip_suffix(HIDDEN), &self.preformatted) {
            // The hidden element contained no text.
            self.out.truncate(before.len());
            return;
        }
        self.block(1);
        self.text("]");
        self.block(1);
    }

    /// Writes emphasis, headings and paragraph breaks.
    fn inline_or_block(&mut self, name: &[u8], opens: bool) {
        match name {
            b"strong" | b"b" => self.emphasis("**", opens),
            b"em" | b"i" => self.emphasis("*", opens),
            b"code" | b"kbd" | b"samp" => self.emphasis("`", opens),
            [b'h', level @ b'1'..=b'6'] => {
                self.block(2);
                if opens {
                    self.write(&"#".repeat(usize::from(level - b'0')));
                    self.space = true;
                }
            }
            b"p" | b"title" | b"section" | b"article" | b"header" | b"footer" | b"nav" | b"main"
            | b"aside" | b"figure" | b"details" | b"dl" | b"form" => self.block(2),
            b"div" | b"dt" | b"dd" | b"summary" | b"figcaption" | b"option" | b"address" => self.block(1),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.skipped.is_some() {
            return;
        }
        // Escapes brackets, so that hidden text cannot end its own block.
        let escaped = self.hidden.is_some().then(|| text.replace(']', "\\]"));
        let text = escaped.as_deref().unwrap_or(text);
        if let Some(preformatted) = &mut self.preformatted {
            preformatted.push_str(text);
            return;
        }
        self.space |= text.starts_with(char::is_whitespace);
        for word in text.split_whitespace() {
            self.write(word);
            self.space = true;
        }
        self.space = self.space && text.ends_with(char::is_whitespace);
    }

    /// Writes `text` after the pending space, or after the prefix of a new line.
    fn write(&mut self, text: &str) {
        if self.space && !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        if self.out.is_empty() || self.out.ends_with('\n') {
            let prefix = self.prefix();
            self.out.push_str(&prefix);
        }
        self.space = false;
        self.out.push_str(text);
    }

    /// Returns the line prefix of the open quotes and lists.
    fn prefix(&self) -> String {
        let depth = self.lists.len().saturating_sub(1).min(MAX_INDENT);
        format!("{}{}", "> ".repeat(self.quotes.min(MAX_INDENT)), "  ".repeat(depth))
    }

    /// Ends the line (`breaks` 1) or the paragraph (2).
    fn block(&mut self, breaks: usize) {
        self.space = false;
        if self.preformatted.is_some() || self.out.is_empty() {
            return;
        }
        let there = self.out.len() - self.out.trim_end_matches('\n').len();
        self.out.extend(std::iter::repeat_n('\n', breaks.saturating_sub(there)));
    }

    fn line_break(&mut self) {
        match &mut self.preformatted {
            Some(preformatted) => preformatted.push('\n'),
            None => self.block(1),
        }
    }

    fn emphasis(&mut self, mark: &str, opens: bool) {
        if self.preformatted.is_some() {
            return;
        }
        if opens {
            self.write(mark);
        } else if !self.out.ends_with('\n') {
            self.out.push_str(mark);
        }
    }

    fn open_link(&mut self, href: Option<String>) {
        self.close_link();
        if self.preformatted.is_some() {
            return;
        }
        let target = href.filter(|href| !href.starts_with('#')).and_then(|href| (self.resolve)(&href));
        if let Some(target) = target {
            self.write("[");
            self.link = Some(target.replace('(', "%28").replace(')', "%29"));
        }
    }

    fn close_link(&mut self) {
        let Some(target) = self.link.take() else { return };
        if self.out.ends_with('[') {
            // The link has no text, such as a link around an icon.
            self.out.pop();
        } else {
            self.out.push_str("](");
            self.out.push_str(&target);
            self.out.push(')');
        }
    }

    fn image(&mut self, alt: Option<String>) {
        let alt = alt.unwrap_or_default();
        if !alt.trim().is_empty() {
            self.write("[image: ");
            self.text(alt.trim());
            self.out.push(']');
        }
    }

    fn open_list(&mut self, number: Option<u32>) {
        self.block(if self.lists.is_empty() { 2 } else { 1 });
        self.lists.push(number);
    }

    fn item(&mut self) {
        self.block(1);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number = number.saturating_add(1);
                format!("{number}. ")
            }
            _ => "- ".to_owned(),
        };
        self.write(&mark);
    }

    fn close_row(&mut self) {
        if self.cells > 0 {
            self.out.push_str(" |");
            if self.rows == 0 {
                self.block(1);
                self.write("|");
                self.out.push_str(&"---|".repeat(self.cells));
            }
            self.rows += 1;
            self.cells = 0;
        }
        self.block(1);
    }

    fn close_preformatted(&mut self) {
        let Some(text) = self.preformatted.take() else { return };
        let text = text.trim_matches('\n');
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
        let fence = "`".repeat((longest + 1).max(3));
        self.block(2);
        for line in [fence.as_str()].into_iter().chain(text.split('\n')).chain([fence.as_str()]) {
            self.write(line);
            self.out.push('\n');
        }
        self.block(2);
    }

    fn finish(mut self) -> String {
        self.close_preformatted();
        self.close_link();
        self.close_hidden();
        self.out.truncate(self.out.trim_end().len());
        self.out
    }
}

/// Checks whether a `style` attribute hides its element.
fn is_hiding_style(style: &str) -> bool {
    style.to_ascii_lowercase().split(';').filter_map(|declaration| declaration.split_once(':')).any(
        |(key, value)| {
            let value = value.trim().trim_end_matches("!important").trim_end();
            let is_zero = || {
                let number = value.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == '%');
                number.parse::<f32>().is_ok_and(|number| number == 0.0)
            };
            match key.trim() {
                "display" => value == "none",
                "visibility" => matches!(value, "hidden" | "collapse"),
                "opacity" | "font-size" => is_zero(),
                _ => false,
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(html: &str) -> String {
        markdown(html, &|href| Some(format!("http://h/{href}")))
    }

    #[test]
    fn t28_a_page_becomes_markdown() {
        let html = "<!doctype html><html><head><title>A  page</title><style>p{}</style>\
            <script>if (a < b) '</p>'</script></head><body><h1>Head <em>line</em></h1><p>One&nbsp;&amp; <b>two</b>\n three\
            <br>four <a href='x?a=1&amp;b'>here</a>, <a href='#top'>up</a><a href=y></a>.</p><ul><li>a<ol><li>b</li><li>c</ol></li>\
            <li>d</ul><blockquote><p>q</p><p>r</blockquote><pre><code>x &lt; y\n  ```z\n</code></pre>\
            <table><tr><th>k<th>v</tr><tr><td>1</td><td>2</td></tr></table><img src=p alt='a cat'><img src=q>\
            <svg><text>no</text></svg>end";
        let expected = "A page\n\n# Head *line*\n\nOne & **two** three\nfour [here](http://h/x?a=1&b), up.\n\n- a\n  1. b\n  2. c\n\
            - d\n\n> q\n\n> r\n\n````\nx < y\n  ```z\n````\n\n| k | v |\n|---|---|\n| 1 | 2 |\n\n[image: a cat]end";
        assert_eq!(shown(html), expected);
    }

    #[test]
    fn class_46_what_a_browser_does_not_show_is_marked_and_cannot_end_its_mark() {
        for hidden in [
            "<div hidden>x</div>",
            "<div style='color: red; DISPLAY : none !important'>x</div>",
            "<div style='visibility:hidden'>x</div>",
            "<div style='opacity:0.0'>x</div>",
            "<div style='font-size: 0px'>x</div>",
            "<div hidden><div>x</div></div>",
            "<p hidden>x<p>",
            "<span hidden><i hidden></i><img hidden alt=cat>x</span>",
        ] {
            let shown = shown(&format!("before {hidden} after")).replace("**", "");
            assert_eq!(
                shown.split_whitespace().collect::<Vec<_>>().join(" "),
                "before [hidden on the page: x ] after",
                "{hidden}"
            );
        }
        for seen in [
            "<i style='opacity: .5'>x</i>",
            "<i style='font-size:10px;display:block'>x</i>",
            "<i aria-hidden=true>x</i>",
        ] {
            assert_eq!(shown(seen), "*x*", "{seen}");
        }
        assert_eq!(shown("<div hidden>a]<p>]</p>b</div>c"), "[hidden on the page:\na\\]\n\n\\]\n\nb\n]\nc");
        assert_eq!(shown("<div hidden>a<pre>]\n</pre>"), "[hidden on the page:\na\n\n```\n\\]\n```\n\n]");
        for nothing in ["<br hidden>", "<div hidden> </div>", "<svg hidden><text>x</text></svg>"] {
            assert_eq!(shown(&format!("{nothing}all")), "all", "{nothing}");
        }
        assert_eq!(shown("<a href='x)](http://evil/'>a</a>"), "[a](http://h/x%29]%28http://evil/)");
    }

    #[test]
    fn deeply_nested_page_has_bounded_output() {
        for element in [
            "<div>",
            "<b>",
            "<ul><li>x",
            "<blockquote>q",
            "<svg>",
            "<table><tr><td>",
            "<font a><p>",
            "<pre>",
            "<a href=x>",
            "<p hidden>",
            "<div hidden>",
        ] {
            let html = element.repeat(100_000);
            let shown = shown(&html);
            assert!(shown.len() <= html.len() * 8, "{element}: {} of {}", shown.len(), html.len());
        }
    }

    proptest! {
        #[test]
        fn output_length_is_bounded_for_any_page(parts in prop::collection::vec(prop_oneof![
            prop::sample::select(vec!["<", ">", "</", "<a href='", "'>", "</a>", "<pre>", "</pre>", "<li>", "</ul>", "<td>",
                "</tr>", "</table>", "<script>", "</script>", "<svg/>", "<p hidden>", "</p>", "&#x110000;", "&amp", "<!--", "-->", "`", "\u{0}", " "])
                .prop_map(str::to_owned),
            "\\PC{0,4}",
        ], 0..40)) {
            let html = parts.concat();
            prop_assert!(shown(&html).len() <= html.len() * 16 + 16);
        }
    }
}
