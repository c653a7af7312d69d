//! Texts of `agent chat`.

use super::costs::{money, tokens};
use super::numbers::{count, thousands};
use super::undo::list_paths;
use agent_core::language::Language;
use agent_core::price::Usd;
use agent_core::run_result::RunResult;
use agent_text::lines::pluralize;

/// Part of the system message of a run whose answers a person reads.
pub const CHAT_INSTRUCTIONS: &str = "# Conversation\nThis is a conversation with a user, who reads each of your answers and can reply. When a \
     decision is the user's, ask: a short question without a tool call is then your answer.";

/// Part of the system message of a run without a person.
pub const UNATTENDED_INSTRUCTIONS: &str = "# Unattended\nNobody answers questions: never ask. Choose the most reasonable reading of the task, state \
     your assumption in one line, and continue until it is done or cannot be.";

/// Beginning of the title of the window while a question waits.
pub const TITLE_ASKS: &str = "? ";

/// Beginning of the title of the window while the agent works.
pub const TITLE_WORKS: &str = "… ";

/// The name of the window of a conversation.
pub fn window_name(folder: &str) -> String {
    format!("agent · {folder}")
}

/// Calls the user to a question.
pub const CALL_QUESTION: &str = "a question waits";

/// Calls the user at the end of a message.
pub const CALL_END: &str = "the agent is done";

/// Warning about a model that is not in the table.
pub fn chat_unknown_model(name: &str, hint: &str) -> String {
    let hint = if hint.is_empty() { String::new() } else { format!(" ({hint})") };
    format!("{name} is not among the known models{hint}; the next message tries it")
}

/// What a mode lets run without a question.
pub fn mode_meaning(mode: &str, language: Language) -> &'static str {
    match mode {
        "confirm-all" => language.pick("asks before every call", "pregunta antes de cada llamada"),
        "confirm-sensitive" => language.pick(
            "asks before changes and unknown commands",
            "pregunta antes de cambios y comandos desconocidos",
        ),
        "auto" => language.pick(
            "asks about what cannot be undone or leaves the sandbox",
            "pregunta por lo irreversible o que sale del entorno aislado",
        ),
        _ => language.pick("asks nothing", "no pregunta nada"),
    }
}

/// Refusal of a call of `ask_user` in a run without a person.
pub const NOBODY_TO_ASK: &str = "Nobody is there to answer: this run is unattended. Choose the most reasonable answer, state it in one line, and \
     continue.";

/// A choice of a question of the model.
pub fn choice(number: usize, text: &str) -> String {
    format!("  {number}  {text}")
}

/// The prompt of a question of the model.
pub const ASK_USER_PROMPT: &str = "Your answer (Esc = none): ";

/// The row below the choices of a question.
pub const CHOICE_KEYS: &str = "  Up, Down and Enter or a number choose; or write an answer";

/// The question after a plan.
pub const CHAT_DO_PLAN: &str = "Do it? y/n, or what to change: ";

/// The answers to the question after a plan.
pub const CHAT_DO_PLAN_ANSWERS: [&str; 2] = ["yes", "no"];

/// The message that has a plan carried out.
pub const CHAT_CARRY_OUT: &str = "Carry out the plan.";

/// Hint after Ctrl+C at the prompt.
pub const CHAT_INTERRUPT_AGAIN: &str = "Ctrl+C again, or Ctrl+D, ends the conversation";

/// End of an interrupted message.
pub const CHAT_INTERRUPTED: &str = "Interrupted; the completed steps are kept";

/// Error for a message that is too long.
pub const CHAT_MESSAGE_TOO_LONG: &str = "error: the message is over 1 MiB and was not sent: put it into a file of the workspace and name that file";

/// Error when `--budget-total` is used up.
pub const CHAT_BUDGET_USED: &str =
    "error: the budget of the conversation (--budget-total) is used up; the message was not sent";

/// Error of a command that needs a session.
pub const CHAT_NO_SESSION: &str = "there is no session yet: it begins with the first message";

/// Answer to `/image` without images.
pub const CHAT_NO_IMAGE: &str = "no image is attached: /image FILE attaches one to the next message";

/// Error of `/undo` without a message before it.
pub const CHAT_NOTHING_TO_UNDO: &str = "no message of this conversation is left to undo";

/// End of the list of `/rewind`, and error of other arguments.
pub const CHAT_REWIND_USAGE: &str = "/rewind N goes back to before message N, with the files and the conversation; \
     /rewind N files and /rewind N conversation leave the other as it is";

/// A message in the list of `/rewind`, with the files that changed after it.
pub fn rewind_point(message: &str, files: &[String]) -> String {
    if files.is_empty() { message.to_owned() } else { format!("{message} · {}", list_paths(files)) }
}

/// Error of `/rewind` without such a message.
pub fn rewind_no_message(number: &str, count: usize) -> String {
    format!("there is no message {number}: the conversation has {}", pluralize(count, "message"))
}

/// Answer to `/rewind`: `session` has all of the conversation; the message had `images`.
pub fn rewound(number: &str, session: &str, images: usize) -> String {
    let images = match images {
        0 => String::new(),
        count => format!(", without its {}", pluralize(count, "image")),
    };
    format!(
        "the conversation is as before message {number}, which stands in the input{images}; /resume {session}, then /redo, brings all of it back"
    )
}

/// Error of `/copy` at a terminal that shows no sequences, and for a text that is too long.
pub const CHAT_CANNOT_COPY: &str =
    "this terminal has no clipboard that can be reached, or the answer is longer than 74,994 bytes";

/// Answer to `/copy`.
pub fn chat_copied(lines: usize, is_in_tmux: bool) -> String {
    let tmux = if is_in_tmux { "; tmux does with `set -s set-clipboard on`" } else { "" };
    format!(
        "{} given to the clipboard of the terminal, if it allows that (OSC 52){tmux}",
        pluralize(lines, "line")
    )
}

/// Beginning of the row below the input in the normal mode of vi.
pub const VI_NORMAL: &str = "  NORMAL";

/// Answer to `/name`.
pub fn chat_named(title: Option<&str>) -> String {
    match title {
        Some(title) => format!("the session is named: {title}"),
        None => "lists name the session by its first message".to_owned(),
    }
}

/// Line after a message that is shown again, and whose work did not come to its end.
pub const CHAT_CUT_OFF: &str = "the work on this message was cut off";

/// Answer to `/thinking`.
pub fn chat_thoughts(shows: bool) -> &'static str {
    if shows {
        "thoughts of the model are shown with the next message, where its provider returns them"
    } else {
        "thoughts of the model are no longer shown"
    }
}

/// About a model in the menu: its prices in US dollars per million tokens of prompt and answer, and whether its key is missing.
pub fn model_choice(prices: Option<(f64, f64)>, is_without_key: bool) -> String {
    let prices = prices.map(|(input, output)| format!("${input} in, ${output} out"));
    let parts = [prices, is_without_key.then(|| "no key".to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// Error of `/model` for a text that names no model.
pub fn chat_no_model_name(name: &str) -> String {
    format!("`{name}` is no name of a model: /model PROVIDER/MODEL")
}

/// About the candidate of a menu that is in force.
pub fn choice_in_force(about: &str) -> String {
    if about.is_empty() { "in force".to_owned() } else { format!("in force · {about}") }
}

/// Answer to `/new`.
pub const CHAT_NEW_SESSION: &str =
    "a new session begins with the next message; /resume continues the one before";

/// What shows the whole output of call `number`, the last one.
pub fn chat_key_output(number: usize) -> String {
    format!("Ctrl+O, /out {number}")
}

/// First line of the output of a call.
pub fn chat_output_title(number: usize, title: &str) -> String {
    format!("/out {number} · {title}")
}

/// Warning that the stored output of a call cannot be shown.
pub fn chat_output_lost(why: &str) -> String {
    format!("{why}; this is the part that the model has read:")
}

/// Line before the last lines of an output that is too long for the terminal.
pub fn chat_output_before(path: &str) -> String {
    format!("   … the beginning is in {path}")
}

/// Answer to `/out` without such a call.
pub const CHAT_NO_OUTPUT: &str = "there is no such output: /out shows all that the last call printed, /out N what the call printed below which /out N stands, if it is one of the last 50";

/// End of `/help`.
pub const CHAT_HELP: &str =
    "  !COMMAND                         run a shell command; the model reads its output with the next message
  @PATH                            name a file; Tab completes it
  Alt+Enter, Ctrl+J, \\ at the end   new line
  Up, Ctrl+R                       the lines before; search them
  Ctrl+O                           show all that the last call printed, or its whole diff; again: the call before
  Ctrl+G                           write the message in $VISUAL or $EDITOR
  Ctrl+C                           clear the line
while the agent works:
  Enter                            send the line with the next step
  Alt+Enter                        send the line after the end
  Up                               take the last line that waits back
  Ctrl+B                           leave the command that runs in the background
  Esc, Ctrl+C                      stop it; what waits comes back to the input
";

/// First lines of a conversation: `model`, `agent` and `mode` in force, the directory with its branch, and the session that is continued.
pub fn chat_start(model: &str, agent_and_mode: &str, place: &str, session: Option<&str>) -> String {
    let model = if model.is_empty() { "no model configured: /model PROVIDER/MODEL" } else { model };
    let session = session.map_or_else(String::new, |id| format!(" · session {id}"));
    format!(
        "agent chat · {model} · agent {agent_and_mode}\n{place}{session} · /help lists the commands, Ctrl+D ends"
    )
}

/// `build, mode confirm-sensitive`; without a mode for an agent that only reads.
pub fn chat_agent_and_mode(agent: &str, mode: Option<&str>) -> String {
    mode.map_or_else(|| format!("{agent}, only reads"), |mode| format!("{agent}, mode {mode}"))
}

/// Warning at the start of a conversation in the home directory or in `/`.
pub fn chat_wide_place(place: &str) -> String {
    format!(
        "{place} is not the directory of one project: the agent can read and change whatever is below it. Start it in a project, or with --workspace DIR"
    )
}

/// Line after each message: its time, and the figures of the session.
pub fn chat_status(model: &str, result: &RunResult, left: Option<Usd>) -> String {
    let language = Language::En;
    let mut parts = vec![
        model.to_owned(),
        count(result.steps, "step"),
        format!("{:.1} s", result.duration_seconds),
        tokens(result.usage, language),
        format!("cost {}", money(result.cost.total_usd, language)),
    ];
    parts.extend(window_share(result));
    if left.is_some() {
        parts.push(format!("{} left", money(left, language)));
    }
    parts.join(" · ")
}

fn window_share(result: &RunResult) -> Option<String> {
    let (used, window) = result.context.and_then(|context| Some((context.prompt, context.window?)))?;
    let percent = used.saturating_mul(100).checked_div(window)?;
    Some(format!("window {percent} %"))
}

/// What a session has used, for the row below the input: the share of the window, and the cost.
pub fn chat_spent(result: &RunResult) -> String {
    let cost = result.cost.total_usd.map(|cost| money(Some(cost), Language::En));
    window_share(result).into_iter().chain(cost).map(|part| part + " · ").collect()
}

/// A part of the prompt in the page of `/context`.
#[derive(Debug)]
pub struct ContextRow {
    /// What it is.
    pub name: String,
    /// Its estimated tokens.
    pub tokens: u64,
}

/// Cells of the bar of a full window.
const BAR_CELLS: u64 = 20;

/// The page of `/context`: what fills the window of the model.
pub fn context_page(rows: &[ContextRow], used: u64, window: Option<u64>) -> String {
    let share = |tokens: u64| window.and_then(|window| tokens.saturating_mul(100).checked_div(window));
    let mut page = match (window, share(used)) {
        (Some(window), Some(percent)) => {
            format!("{} of {} tokens of the window ({percent} %)\n", thousands(used), thousands(window))
        }
        _ => format!("{} tokens; the window of the model is not known\n", thousands(used)),
    };
    let free =
        window.map(|window| ContextRow { name: "free".to_owned(), tokens: window.saturating_sub(used) });
    for ContextRow { name, tokens } in rows.iter().chain(&free) {
        let percent = share(*tokens).map(|percent| format!("  {percent:>3} %")).unwrap_or_default();
        let cells = window.and_then(|window| tokens.saturating_mul(BAR_CELLS).checked_div(window));
        let bar = "█".repeat(usize::try_from(cells.unwrap_or_default()).unwrap_or_default());
        page.push_str(format!("  {name:<28} {:>10}{percent}  {bar}", thousands(*tokens)).trim_end());
        page.push('\n');
    }
    page + "The parts are estimates. /compact summarizes the older messages."
}

/// The options of the next message.
pub fn chat_options(model: &str, agent_and_mode: &str, effort: &str) -> String {
    let model = if model.is_empty() { "none" } else { model };
    format!("model {model} · agent {agent_and_mode} · effort {effort}")
}

/// The session of the next message.
pub fn chat_session(id: &str) -> String {
    format!("the next message continues session {id}")
}

/// Error for an unknown slash command.
pub fn chat_unknown_command(name: &str, hint: &str) -> String {
    format!("there is no command `/{name}`{hint}; nothing was sent. /help lists the commands")
}

/// Error of `/cost` before the first message.
pub const CHAT_NO_MESSAGE: &str = "no message was sent yet";

/// Error for arguments of a slash command that end within quotes.
pub const CHAT_OPEN_QUOTE: &str = "a quote of the arguments is not closed; nothing was done";

/// Confirmation of `/compact`.
pub const CHAT_COMPACTS: &str = "older messages are summarized before the next message is sent";

/// Warning when the history of the prompt cannot be read or written.
pub fn history_problem(why: &str) -> String {
    format!("the history of the prompt is not stored: {why}")
}

/// Warning when the command that notifies the user has failed.
pub fn notification_failed(why: &str) -> String {
    format!("`chat.notify_command` failed, which is not reported again: {why}")
}

/// Error for a slash command with arguments that have no meaning.
pub fn chat_no_arguments(name: &str) -> String {
    format!("`/{name}` takes no arguments; nothing was done")
}

/// A queued message: for the next step, or for the end of the run.
pub fn chat_waits(text: &str, is_for_step: bool) -> String {
    let when = if is_for_step { "with the next step" } else { "after the end" };
    format!("  {when}: {text}")
}

/// Notice for a slash command that is only possible at the prompt.
pub fn chat_waits_for_the_end(line: &str) -> String {
    format!("{line} waits for the end of this message")
}

/// Answer to `/queue` with an empty queue.
pub const CHAT_EMPTY_QUEUE: &str =
    "nothing waits: Enter sends a line with the next step, Alt+Enter after the end";

/// The row above the last lines of a running command.
pub fn tail_begin(before: u64, can_be_left: bool) -> String {
    let lines = match before {
        0 => String::new(),
        before => format!("… {} before", count(before, "line")),
    };
    let key = if can_be_left { "Ctrl+B leaves it in the background" } else { "" };
    let between = if lines.is_empty() || key.is_empty() { "" } else { " · " };
    format!("   {lines}{between}{key}")
}

/// One of the last lines of a running command.
pub fn tail_line(line: &str) -> String {
    format!("   │ {line}")
}

/// Answer to Ctrl+B when no command of the agent runs.
pub const CHAT_NOTHING_TO_LEAVE: &str = "no command of the agent runs that could be left in the background";

/// The mark of a pasted text in the input.
pub fn pasted(lines: usize) -> String {
    format!("[pasted: {}]", count(u32::try_from(lines).unwrap_or(u32::MAX), "line"))
}

/// The row below the input while the history is searched.
pub fn history_search(text: &str, is_missing: bool) -> String {
    let end = if is_missing { " · not found" } else { "" };
    format!("history: {text}{end} · Ctrl+R the one before, Enter takes it, Esc ends")
}

/// The last row of a menu that does not show all.
pub fn menu_more(more: usize) -> String {
    format!("… +{more}")
}

/// The last row of a message of many lines.
pub fn more_lines(more: usize) -> String {
    format!("… +{more} lines")
}

/// The row below the input.
pub fn chat_footer(model: &str, agent_and_mode: &str, place: &str, spent: &str) -> String {
    // The first parts are those that a narrow screen must show.
    let model = if model.is_empty() { "no model: /model PROVIDER/MODEL" } else { model };
    format!("  ? help · {agent_and_mode} · {spent}{model} · {place}")
}

/// A message that was typed while the run worked, when its next step sends it.
pub fn chat_queued(text: &str) -> String {
    format!("> {text}")
}

/// The end of a conversation: how to go on.
pub fn chat_end(session: &str) -> String {
    format!("agent -c continues this conversation (session {session})")
}

/// Warning about a text that was typed while the model worked, on a terminal without editing.
pub fn chat_not_sent(text: &str) -> String {
    format!("not sent, type it again if you want: {text}")
}

/// Hint where the text of the editor is, when its message was not sent.
pub fn chat_draft_kept(path: &str) -> String {
    format!("your text is kept in {path}")
}

/// Error when no editor is set for `/edit`.
pub const CHAT_NO_EDITOR: &str = "/edit needs an editor: export VISUAL or EDITOR";

/// Error when the editor failed.
pub fn chat_editor_failed(editor: &str, why: &str) -> String {
    format!("the editor `{editor}` failed ({why}); nothing was sent")
}

/// Error when the terminal cannot be read.
pub fn cannot_read_line(error: &std::io::Error) -> String {
    format!("cannot read lines at this terminal: {error}")
}
