//! Tests of Markdown on a terminal: what stands on the screen after each piece.

use super::*;
use crate::{StdoutTarget, StreamInfo, TerminalEnvironment};
use proptest::prelude::*;
use std::io::Read;

fn terminal(colored: bool) -> (Terminal, io::PipeReader) {
    let clicolor_force = colored.then(|| "1".to_owned());
    terminal_of(&TerminalEnvironment { clicolor_force, ..TerminalEnvironment::default() })
}

fn terminal_of(environment: &TerminalEnvironment) -> (Terminal, io::PipeReader) {
    let (reader, out) = io::pipe().unwrap();
    let info = StreamInfo { stdout: StdoutTarget::Elsewhere, ..StreamInfo::default() };
    (Terminal::with_streams(info, environment, Box::new(out), Box::new(io::sink())), reader)
}

/// Returns what a terminal receives of `pieces`, with or without colour.
fn received(pieces: &[&str], colored: bool) -> String {
    received_by(terminal(colored), pieces)
}

/// Returns what a terminal that shows links receives.
fn linked(text: &str) -> String {
    let set = || Some("1".to_owned());
    let environment = TerminalEnvironment {
        clicolor_force: set(),
        force_hyperlink: set(),
        ..TerminalEnvironment::default()
    };
    received_by(terminal_of(&environment), &[text])
}

fn received_by((terminal, mut reader): (Terminal, io::PipeReader), pieces: &[&str]) -> String {
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        text
    });
    let mut stream = MarkdownStream::default();
    for piece in pieces {
        stream.push(&terminal, piece).unwrap();
    }
    stream.finish(&terminal).unwrap();
    drop(terminal);
    reading.join().unwrap()
}

/// Returns the rows on the screen after all that was received: the least of a terminal.
fn screen(received: &str) -> Vec<String> {
    let (mut rows, mut at) = (vec![String::new()], 0);
    let mut chars = received.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\n' => {
                at += 1;
                if at == rows.len() {
                    rows.push(String::new());
                }
            }
            '\r' => {}
            '\u{1b}' if chars.peek() == Some(&']') => {
                let link: String = chars.by_ref().take_while(|char| *char != '\\').collect();
                assert!(link.starts_with("]8;;") && link.ends_with('\u{1b}'), "{link:?}");
            }
            '\u{1b}' => {
                assert_eq!(chars.next(), Some('['));
                let mut number = String::new();
                let end = loop {
                    let next = chars.next().unwrap();
                    if next.is_ascii_alphabetic() {
                        break next;
                    }
                    number.push(next);
                };
                match end {
                    'A' => at -= number.parse::<usize>().unwrap(),
                    'J' => {
                        rows.truncate(at);
                        rows.push(String::new());
                    }
                    'm' | 'h' | 'l' => {}
                    other => panic!("{other}"),
                }
            }
            char => rows[at].push(char),
        }
    }
    assert_eq!(rows.pop().as_deref(), Some(""), "the last row is ended");
    rows
}

fn shown(text: &str) -> Vec<String> {
    screen(&received(&[text], true))
}

#[test]
fn u04_markdown_has_styles() {
    let text = received(&["# Title\nSome **bold**, *soft* and `code`\n> q"], true);
    assert_eq!(
        text.replace("\u{1b}[?2026h\r\u{1b}[K\u{1b}[C\u{1b}[J\r", "").replace("\u{1b}[?2026l", ""),
        "\u{1b}[1mTitle\u{1b}[0m\nSome \u{1b}[1mbold\u{1b}[0m, \u{1b}[3msoft\u{1b}[0m and \u{1b}[36mcode\u{1b}[0m\n│ \u{1b}[2mq\u{1b}[0m\n"
    );
}

#[test]
fn u04_links_are_text_where_the_terminal_shows_links() {
    for (source, rows) in [
        ("see [the **docs**](https://x.org/a) now", "see the docs now"),
        ("<https://x.org>", "https://x.org"),
        ("[x.org](https://www.x.org/a)", "x.org"),
        ("[bank.org](https://x.org/a)", "bank.org (https://x.org/a)"),
        ("[](https://x.org/a)", "(https://x.org/a)"),
        ("[run](file:///bin/sh)", "run (file:///bin/sh)"),
        ("[mail](mailto:a@x.org)", "mail (mailto:a@x.org)"),
        ("[main](src/main.rs)", "main (src/main.rs)"),
    ] {
        let received = linked(source);
        assert_eq!(screen(&received), [rows], "{source}");
        let is_link = source.contains("https:") && !source.contains("[]");
        assert_eq!(received.contains("\u{1b}]8;;https://"), is_link, "{received:?}");
    }
    assert_eq!(
        linked("[the `docs`](https://x.org/a)"),
        "\u{1b}]8;;https://x.org/a\u{1b}\\\u{1b}[4mthe \u{1b}[0m\u{1b}]8;;\u{1b}\\\u{1b}]8;;https://x.org/a\u{1b}\\\u{1b}[4;36mdocs\u{1b}[0m\u{1b}]8;;\u{1b}\\\n"
    );
}

#[test]
fn u04_a_link_over_several_rows_begins_and_ends_in_each() {
    let words = "some words ".repeat(20);
    for source in [
        format!("- [{}](https://x.org)", words.trim_end()),
        format!("| a | b |\n|---|---|\n| c | [{}](https://x.org) |\n", words.trim_end()),
    ] {
        let received = linked(&source);
        let rows: Vec<&str> = received.lines().filter(|row| row.contains("words")).collect();
        assert!(rows.len() > 2, "{rows:?}");
        for row in rows {
            let [begins, ends] = ["\u{1b}]8;;https://x.org\u{1b}\\", "\u{1b}]8;;\u{1b}\\"]
                .map(|mark| row.matches(mark).count());
            assert!(begins == 1 && ends == 1, "{row:?}");
        }
        assert!(screen(&received).iter().all(|row| row.chars().count() <= 80), "{received:?}");
    }
}

#[test]
fn u04_text_between_two_tildes_is_struck_out() {
    let text = received(&["~~old **x**~~ new"], true);
    assert!(text.ends_with("\u{1b}[9mold \u{1b}[0m\u{1b}[1mx\u{1b}[0m new\n"), "{text:?}");
}

#[test]
fn u04_a_wide_table_is_wrapped_in_its_cells_and_keeps_their_styles() {
    let long = "word ".repeat(40);
    let source = format!("| name | text |\n|---|--:|\n| `x` | {long}|\n");
    let rows = shown(&source);
    assert!(rows.len() > 4 && rows.iter().all(|row| row.chars().count() <= 80), "{rows:?}");
    assert!(rows.iter().skip(2).all(|row| row.chars().nth(5) == Some('│')), "{rows:?}");
    assert_eq!(rows.concat().matches("word").count(), 40);
    assert!(received(&[&source], true).contains("\u{1b}[36mx\u{1b}[0m"));
}

#[test]
fn u04_lists_tables_links_and_code_are_drawn() {
    for (source, rows) in [
        (
            "- a\n  - b\n      - **c**\n- [x] done\n- [ ] open",
            &["• a", "  • b", "    • c", "☑ done", "☐ open"][..],
        ),
        ("1. one\n2. two\n   more\n10. ten", &["1. one", "2. two", "   more", "10. ten"]),
        ("- a\n\n    further\n", &["• a", "", "    further"]),
        ("so:\n\n    if x:\n        return 1\n", &["so:", "", "    if x:", "        return 1"]),
        ("- a\n\n    - b\n", &["• a", "", "    • b"]),
        ("- a\n  > q\n  - b\n", &["• a", "  │ q", "  • b"]),
        (
            "| a | right | mid |\n|---|--:|:-:|\n| x \\| y | 1 | 2 |\n| `a \\| b` | 20 | 333 |\n",
            &["a     │ right │ mid", "──────┼───────┼────", "x | y │     1 │  2", "a | b │    20 │ 333"],
        ),
        ("| a | bcd |\n|---|---|\n| **1** | `2` |\n", &["a │ bcd", "──┼────", "1 │ 2"]),
        ("[docs](https://x.org) and <https://y.org>", &["docs (https://x.org) and https://y.org"]),
        (
            "text\n```rust\nlet a = 1;\n\n  b | *c*\n```\nafter",
            &["text", "let a = 1;", "", "  b | *c*", "after"],
        ),
        ("~~~\n```\n~~~", &["```"]),
        ("<div>\n<b>x</b>\n</div>", &["<div>", "<b>x</b>", "</div>"]),
        ("a\n\n---\n\nb", &["a", "", "────────────────────────────────────────", "", "b"]),
    ] {
        assert_eq!(shown(source), rows, "{source:?}");
    }
}

/// Returns the text without its colours.
fn without_colours(received: &str) -> String {
    let mut parts = received.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.map(|part| part.split_once('m').unwrap().1).collect::<String>()
}

/// Returns a terminal whose last rows are drawn again.
fn live_terminal() -> (Terminal, io::PipeReader) {
    let (reader, err) = io::pipe().unwrap();
    let info = StreamInfo { stderr: true, stdout: StdoutTarget::SameTerminal, ..StreamInfo::default() };
    let environment = TerminalEnvironment::default();
    (Terminal::with_streams(info, &environment, Box::new(io::sink()), Box::new(err)), reader)
}

/// Returns the rows on a screen of 80 columns that has received `text`, as a selection has them.
fn selection(text: &str) -> String {
    let [rows, columns] = [120, 80].map(|cells| std::num::NonZero::new(cells).unwrap());
    let mut emulator = vt100::Parser::new(rows, columns, 0);
    emulator.process(text.replace('\n', "\r\n").as_bytes());
    emulator.screen().contents()
}

#[test]
fn u04_a_selected_code_block_is_its_source() {
    let code = format!(
        "fn f() {{\n    let a = \"é\"; /* x\n\n  y */ // {}\n    ` `` ```x\n}}\n{}\n",
        "long ".repeat(30),
        "1234567890".repeat(120)
    );
    for info in ["rust", "", "text"] {
        let source = format!("so:\n```{info}\n{code}```\nafter");
        for size in [1, 3, 50, 5_000] {
            let chars: Vec<char> = source.chars().collect();
            let pieces: Vec<String> = chars.chunks(size).map(|piece| piece.iter().collect()).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let selected = selection(&received_by(live_terminal(), &pieces));
            assert_eq!(selected, format!("so:\n{code}after"), "{info:?} {size}");
        }
    }
}

#[test]
fn u04_code_of_an_item_has_not_the_indent_of_its_fence() {
    let source = "- a\n\n  ```py\n  if x:\n      y\n\n z\n  ```\n- b";
    assert_eq!(shown(source), ["• a", "", "if x:", "    y", "", "z", "• b"]);
}

#[test]
fn u04_code_of_a_page_and_of_a_quote_has_colours() {
    let source = "```sh\necho 'a\nb'\n```\n";
    let rows = [
        vec![
            (Style::Plain, "    ".to_owned()),
            (Style::Keyword, "echo".to_owned()),
            (Style::Plain, " ".to_owned()),
            (Style::Literal, "'a".to_owned()),
        ],
        vec![(Style::Plain, "    ".to_owned()), (Style::Literal, "b'".to_owned())],
    ];
    assert_eq!(document_rows(source, 80), rows);
    let quote = received(&["> ```sh\n> echo 1\n> ```\n"], true);
    assert!(quote.contains("│ \u{1b}[35mecho\u{1b}[0m \u{1b}[36m1\u{1b}[0m\n"), "{quote:?}");
}

#[test]
fn u04_what_is_no_mark_is_shown_as_it_is_written() {
    for line in [
        "2 * 3 * 4",
        "src/**/*.rs and *.md",
        "~/a and ~/b, ~5 to ~7",
        "a ~single~ tilde",
        "C:\\Users\\.git",
        "one ` tick",
        "5*x + 3*y",
        "**open",
        "a_b_c and __init__.py",
        "if __name__ == \"__main__\":",
        "#!/bin/sh",
        "<b>text</b>",
    ] {
        assert_eq!(shown(line), [line]);
    }
    assert_eq!(shown("**a** and *b*, `c * d`, a\\*b"), ["a and b, c * d, a*b"]);
}

#[test]
fn u03_text_is_shown_as_it_arrives_and_wrapped_between_words() {
    let text = "- The quick **brown fox** jumps over the lazy dog, and then it runs through the wide and open field again.";
    let pieces: Vec<String> = text.chars().map(String::from).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let rows = [
        "• The quick brown fox jumps over the lazy dog, and then it runs through the wide",
        "  and open field again.",
    ];
    assert_eq!(screen(&received(&pieces, true)), rows);
    assert_eq!(shown(text), rows);
    for count in 1..pieces.len() {
        let all: String = screen(&received(&pieces[..count], true)).join(" ");
        let last = text[..count].split_whitespace().next_back().unwrap_or_default().trim_matches('*');
        assert!(all.contains(last) || last == "-", "{last:?} is not in {all}");
    }
}

#[test]
fn u01_a_title_is_wrapped_between_words_below_its_beginning() {
    let title = vec![(Style::Success, "● ".to_owned()), (Style::Plain, "Run one two three".to_owned())];
    let rows = hang(&title, 12).into_iter().map(|row| BlockRow { row, end: None });
    assert_eq!(texts(&rows.collect::<Vec<_>>()), ["● Run one", "  two three"]);
}

/// Returns the text of rows.
fn texts(rows: &[BlockRow]) -> Vec<String> {
    let text = |row: &BlockRow| row.row.iter().map(|(_, text)| text.as_str()).collect::<String>();
    rows.iter().map(text).collect()
}

#[test]
fn u03_the_rest_of_a_block_keeps_its_place_after_a_resize() {
    let source = "- top with a [link to the docs](https://x.org/docs) here\n  - **second** level of the list, and on\n    1. third\n  > quoted text (also)\n";
    let wide = Block::of(source).rows(40);
    let rest = |done: usize, width: usize| {
        let finished = wide[done - 1].end.unwrap();
        texts(&Block { finished, ..Block::of(source) }.rows(width))
    };
    assert_eq!(
        texts(&wide),
        [
            "• top with a link to the docs",
            "  (https://x.org/docs) here",
            "  • second level of the list, and on",
            "    1. third",
            "  │ quoted text (also)",
        ]
    );
    let second = ["  • second level of", "    the list, and on", "    1. third"];
    let quote = ["  │ quoted text", "  │ (also)"];
    assert_eq!(rest(2, 20), [&second[..], &quote].concat());
    assert_eq!(rest(4, 18), quote);
    assert_eq!(rest(1, 60)[0], "  (https://x.org/docs) here");
}

#[test]
fn u03_what_is_printed_while_text_grows_stands_above_it_and_doubles_nothing() {
    for (pieces, rows) in [
        (["```\nlet a", " = 1;\n```\n"], "note\nlet a = 1;"),
        (["- one **tw", "o**\n"], "note\n• one two"),
        (["| a | b |\n|---|---|\n| c", " | d |\n"], "note\na │ b\n──┼──\nc │ d"),
    ] {
        let (terminal, mut reader) = live_terminal();
        let mut stream = MarkdownStream::default();
        stream.push(&terminal, pieces[0]).unwrap();
        terminal.eprintln(Style::Plain, "note").unwrap();
        stream.push(&terminal, pieces[1]).unwrap();
        stream.finish(&terminal).unwrap();
        drop(terminal);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(selection(&text), rows, "{pieces:?}");
    }
}

#[test]
fn u03_the_rows_of_a_table_are_shown_while_it_arrives() {
    let (terminal, mut reader) = live_terminal();
    let mut stream = MarkdownStream::default();
    stream.push(&terminal, "| name | b |\n|---|---|\n").unwrap();
    for row in 0..40 {
        stream.push(&terminal, &format!("| row {row} | x |\n| un")).unwrap();
        stream.line.clear();
    }
    // Without an end of the block.
    drop(terminal);
    let mut text = String::new();
    reader.read_to_string(&mut text).unwrap();
    let rows: Vec<String> = (28..40).map(|row| format!("row {row} │ x")).collect();
    assert_eq!(selection(&text), rows.join("\n"));
}

#[test]
fn u03_a_link_that_takes_many_rows_until_it_is_complete_hides_no_word_after_it() {
    let title = "title ".repeat(400);
    let words: String = (0..200).fold(String::new(), |all, number| all + &format!("word{number} "));
    let text = format!("Before [the link](https://example.org \"{title}\") {words}\n");
    let pieces: Vec<String> = text.chars().map(String::from).collect();
    let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
    let rows = selection(&received_by(live_terminal(), &pieces)).replace('\n', " ");
    let missing: Vec<String> =
        (0..200).map(|number| format!("word{number}")).filter(|word| !rows.contains(word.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert!(rows.contains("Before the link"), "{rows}");
}

#[test]
fn u03_a_paragraph_without_end_is_drawn_in_bounded_parts() {
    // Each piece is drawn with the text before it: without a bound the work would grow with its square.
    for word in ["word ", "| word "] {
        let (terminal, mut reader) = terminal(true);
        let reading = std::thread::spawn(move || {
            let mut text = String::new();
            reader.read_to_string(&mut text).unwrap();
            text
        });
        let mut stream = MarkdownStream::default();
        for _ in 0..5_000 {
            stream.push(&terminal, word).unwrap();
            assert!(stream.block.len() + stream.line.len() <= MAX_BLOCK_BYTES + word.len());
        }
        stream.finish(&terminal).unwrap();
        drop(terminal);
        let shown = reading.join().unwrap();
        assert_eq!(screen(&shown).iter().map(|row| row.matches("word").count()).sum::<usize>(), 5_000);
    }
}

#[test]
fn escape_sequences_of_the_model_do_not_reach_the_terminal() {
    for text in [
        "a \u{1b}[31mred\u{1b}]0;title\u{7}",
        "```\n\u{1b}[31m\n```",
        "| \u{1b}[31m |\n|---|\n",
        "[\u{1b}[31m](\u{1b}[31m)",
        "[\u{1b}[31m](https://x.org/\u{1b}[31m)",
        "[a](<https://x.org/\u{1b}\\\u{1b}[31m>)",
        "[a](https://x.org/&#27;[31m)",
        "```rust\nlet a = \"\u{1b}[31m\"; // \u{1b}[31m\n```",
    ] {
        assert!(!linked(text).contains("\u{1b}[31m"));
        screen(&linked(text));
        for colored in [true, false] {
            assert!(!received(&[text], colored).contains("\u{1b}[31m"));
        }
    }
}

proptest! {
    #[test]
    fn u04_no_link_commands_the_terminal(text in "(.|[a-z ]|\u{1b}|\u{9c}|\u{7}|\\\\){0,9}", address in "https?://[a-z]{1,5}[.]org/(.|\u{1b}|\u{9c}|\u{7}|\\\\|[;#]){0,20}") {
        // Fails on any other sequence than those of styles and of links.
        let received = linked(&format!("[{text}](<{address}>) [{text}]({address})"));
        screen(&received);
        let has_control = received.chars().any(|char| char.is_control() && !"\n\u{1b}\t".contains(char));
        prop_assert!(!has_control);
    }

    #[test]
    fn without_colour_the_text_is_unchanged_and_ends_its_line(text in "[a-z*`#\n -]{0,60}", at in 0usize..60) {
        let at = at.min(text.len());
        let shown = received(&[&text[..at], &text[at..]], false);
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        prop_assert_eq!(shown, format!("{text}{end}"));
    }

    #[test]
    fn u04_code_is_written_as_it_is_however_it_is_cut(info in "rust|sh|html|x|", code in "([a-z\"'/*#<>\t -]{0,9}[a-z ]\n|[ \t]{1,3}\n|\n){0,9}", cut in 1usize..9) {
        let text = format!("~~~~{info}\n{code}~~~~\n");
        let chars: Vec<char> = text.chars().collect();
        let pieces: Vec<String> = chars.chunks(cut).map(|piece| piece.iter().collect()).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        prop_assert_eq!(without_colours(&received(&pieces, true)), code);
    }

    #[test]
    fn u03_a_resize_neither_doubles_nor_loses_text(text in "([a-z]{2,30}|[*`>_~-]{1,3}|[.] |  |\n|\n  |- |\n  - |[(]x[)]){0,40}", done in 1usize..9, widths in (12usize..60, 12usize..60)) {
        let letters = |rows: &[BlockRow]| texts(rows).concat().replace(|char: char| !char.is_ascii_lowercase(), "");
        let block = Block::of(&text);
        let mut rows = block.rows(widths.0);
        let all = letters(&rows);
        let rest = rows.split_off(done.min(rows.len()));
        let finished = rows.last().and_then(|row| row.end).unwrap_or_default();
        prop_assert_eq!(letters(&rows) + &letters(&rest), all.clone());
        let rest = Block { finished, ..block }.rows(widths.1);
        prop_assert_eq!(letters(&rows) + &letters(&rest), all);
    }

    #[test]
    fn u03_no_word_is_lost_however_the_text_is_cut(text in "([a-z]{2,30}|[*`#>|_~1-]{1,3}|[.] |  |\n|\n\n|```\n|- |\\| ){0,40}", cut in 1usize..9) {
        let chars: Vec<char> = text.chars().collect();
        let pieces: Vec<String> = chars.chunks(cut).map(|piece| piece.iter().collect()).collect();
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        // A word that is wider than the screen is broken, also in a quote.
        let rows = screen(&received(&pieces, true)).concat().replace([' ', '│'], "");
        // What follows the mark of a code block is no text.
        let lines = text.lines().filter(|line| !line.contains("```") && !line.contains("~~~"));
        let words = lines.flat_map(|line| line.split(|c: char| !c.is_ascii_lowercase()));
        for word in words.filter(|word| word.len() > 1) {
            if !text.contains(&format!("`{word}")) && !text.contains(&format!("~{word}")) {
                prop_assert!(rows.contains(word), "{word} is not in {rows}");
            }
        }
    }
}

#[test]
fn u20_a_document_is_wrapped_anew_and_has_blank_rows_between_its_blocks() {
    let source = "# Title\nThe first\nsentence.\n\n- an item that\n  goes on\n- `two`\n\n  its paragraph\n\n      code --long-opt\n\n      more\n\n| a | b |\n|---|---|\n| c | d |\n";
    let shown: Vec<String> = document_rows(source, 20)
        .iter()
        .map(|row| row.iter().map(|(_, text)| text.as_str()).collect::<String>())
        .collect();
    let expected = [
        "Title",
        "",
        "The first sentence.",
        "",
        "• an item that goes",
        "  on",
        "• two",
        "",
        "  its paragraph",
        "",
        "      code",
        "          --long-opt",
        "",
        "      more",
        "",
        "a │ b",
        "──┼──",
        "c │ d",
    ];
    assert_eq!(shown, expected);
}
