//! Start and style of HTML pages, whose content security policy blocks scripts and requests.

/// Style sheet of the page; the policy in its head allows no other.
pub(crate) const STYLE: &str = include_str!("html.css");
/// Start of the page up to the title. The policy contains the hash of [`STYLE`], which a test checks.
pub(crate) const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
    style-src 'sha256-0Ytk2AlS8bpRNGL+dGGOe19g1xTYOgd3EaMe0hLJ1U0='; base-uri 'none'; form-action 'none'\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>";
