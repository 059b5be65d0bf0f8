//! Text to roff(7), the language of manual pages: plain text as it stands, and the little of Markdown that docs/ is written in.

/// The head of a page.
pub(super) fn title(name: &str, section: u8) -> String {
    format!(
        ".ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n.TH {} {section} \"\" \"cellfs {}\" cellfs\n",
        escaped(name),
        env!("CARGO_PKG_VERSION")
    )
}

/// Text that is shown line by line as it stands.
pub(super) fn verbatim(text: &str) -> String {
    let mut out = String::from(".nf\n");
    for line in text.lines() {
        out.push_str(&guarded(&escaped(line)));
        out.push('\n');
    }
    out.push_str(".fi\n");
    out
}

/// A character that roff would take for its own is spelled out; what is not ASCII is named by its code point.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\e"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\*(Aq"),
            '`' => out.push_str("\\(ga"),
            '^' => out.push_str("\\(ha"),
            '~' => out.push_str("\\(ti"),
            c if c.is_ascii() => out.push(c),
            c => out.push_str(&format!("\\[u{:04X}]", u32::from(c))),
        }
    }
    out
}

/// A line that begins like a request is kept from being one.
fn guarded(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

/// The sections of a page of docs/, without its title.
pub(super) fn from_markdown(text: &str) -> String {
    let mut page = Page::default();
    for line in text.lines() {
        page.line(line);
    }
    page.end_paragraph();
    page.out
}

#[derive(Default)]
struct Page {
    out: String,
    paragraph: String,
    /// What begins the paragraph under way: a request.
    opening: String,
    /// Inside a fenced block.
    fenced: bool,
    /// Inside a table.
    table: bool,
}

impl Page {
    fn line(&mut self, line: &str) {
        if line.starts_with("```") {
            self.end_paragraph();
            self.out.push_str(if self.fenced { ".fi\n.RE\n" } else { ".PP\n.RS 4\n.nf\n" });
            self.fenced = !self.fenced;
        } else if self.fenced {
            self.out.push_str(&guarded(&escaped(line)));
            self.out.push('\n');
        } else if line.starts_with('|') {
            self.row(line);
        } else {
            self.prose(line);
        }
    }

    fn row(&mut self, line: &str) {
        self.end_paragraph_before_table();
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        if cells.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))) {
            return;
        }
        let mut cells = cells.into_iter();
        let first = cells.next().unwrap_or_default();
        let rest: Vec<String> = cells.filter(|cell| !cell.is_empty()).map(inline).collect();
        self.out.push_str(&format!(".TP\n{}\n{}\n", guarded(&inline(first)), guarded(&rest.join("; "))));
    }

    fn end_paragraph_before_table(&mut self) {
        if !self.table {
            self.end_paragraph();
            self.table = true;
        }
    }

    fn prose(&mut self, line: &str) {
        let trimmed = line.trim();
        let item = trimmed.strip_prefix("* ").or_else(|| trimmed.strip_prefix("- "));
        if trimmed.is_empty() {
            self.end_paragraph();
        } else if let Some(heading) = line.strip_prefix("## ") {
            self.end_paragraph();
            self.out.push_str(&format!(".SH {}\n", escaped(&heading.to_uppercase())));
        } else if let Some(heading) = line.strip_prefix("### ") {
            self.end_paragraph();
            self.out.push_str(&format!(".SS {}\n", escaped(heading)));
        } else if line.starts_with("# ") {
            self.end_paragraph();
        } else if let Some(item) = item {
            self.begin(".IP \\(bu 3", item);
        } else if let Some((number, item)) = numbered(trimmed) {
            self.begin(&format!(".IP {number}. 4"), item);
        } else {
            self.add(trimmed);
        }
    }

    fn begin(&mut self, opening: &str, text: &str) {
        self.end_paragraph();
        self.opening = opening.to_owned();
        self.add(text);
    }

    fn add(&mut self, text: &str) {
        if !self.paragraph.is_empty() {
            self.paragraph.push(' ');
        }
        self.paragraph.push_str(text);
    }

    fn end_paragraph(&mut self) {
        self.table = false;
        let (opening, text) = (std::mem::take(&mut self.opening), std::mem::take(&mut self.paragraph));
        if !text.is_empty() {
            let opening = if opening.is_empty() { ".PP" } else { &opening };
            self.out.push_str(&format!("{opening}\n{}\n", guarded(&inline(&text))));
        }
    }
}

fn numbered(line: &str) -> Option<(&str, &str)> {
    let (number, item) = line.split_once(". ")?;
    number.bytes().all(|byte| byte.is_ascii_digit()).then_some((number, item)).filter(|(number, _)| !number.is_empty())
}

/// `code`, **strong** and *stressed* words, and links, of which the text stays.
fn inline(text: &str) -> String {
    let text = without_links(&without_tests(text));
    let mut font = Font::default();
    let mut out = String::new();
    let mut rest = &text[..];
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let after = rest.get(first.len_utf8()..).unwrap_or_default();
        let code = after.split_once('`').filter(|_| first == '`');
        if let Some((code, after)) = code {
            out.push_str(&format!("\\fB{}{}", escaped(code), font.escape()));
            (rest, before) = (after, '`');
        } else if let Some(after) = rest.strip_prefix("**").filter(|after| marks(before, after, "**", font.strong)) {
            font.strong = !font.strong;
            out.push_str(font.escape());
            (rest, before) = (after, '*');
        } else if first == '*' && marks(before, after, "*", font.stressed) {
            font.stressed = !font.stressed;
            out.push_str(font.escape());
            (rest, before) = (after, '*');
        } else {
            out.push_str(&escaped(first.encode_utf8(&mut [0; 4])));
            (rest, before) = (after, first);
        }
    }
    out
}

/// What the text is set in.
#[derive(Default)]
struct Font {
    strong: bool,
    stressed: bool,
}

impl Font {
    fn escape(&self) -> &'static str {
        match (self.strong, self.stressed) {
            (true, _) => "\\fB",
            (false, true) => "\\fI",
            (false, false) => "\\fR",
        }
    }
}

/// True if a `mark` between `before` and `after` begins what it marks, or ends it where that is `open`: not where it stands alone, as in 2 * 3.
fn marks(before: char, after: &str, mark: &str, open: bool) -> bool {
    let ends = |before: char, after: &str| !before.is_whitespace() && !after.starts_with(char::is_alphanumeric);
    if open {
        return ends(before, after);
    }
    let begins = !before.is_alphanumeric() && after.starts_with(|next: char| !next.is_whitespace());
    // A mark inside code is none.
    let ends_later = |text: &str| {
        text.match_indices(mark)
            .any(|(at, _)| ends(text[..at].chars().next_back().unwrap_or('`'), &text[at + mark.len()..]))
    };
    begins && after.split('`').step_by(2).any(ends_later)
}

/// Without the names of tests, which stand as `*(name)*` behind a sentence and are for who reads the sources.
fn without_tests(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, (_, after))) = rest.split_once("*(").and_then(|(b, a)| Some((b, a.split_once(")*")?))) {
        out.push_str(before.trim_end());
        rest = after;
    }
    out.push_str(rest);
    out
}

fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('[') {
        out.push_str(before);
        match after.split_once("](").and_then(|(shown, after)| Some((shown, after.split_once(')')?.1))) {
            Some((shown, after)) => {
                out.push_str(shown);
                rest = after;
            }
            None => {
                out.push('[');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stress_goes_on_around_code() {
        assert_eq!(inline("so *a `x`, `y`*, 2 * 3"), "so \\fIa \\fBx\\fI, \\fBy\\fI\\fR, 2 * 3");
        assert_eq!(inline("*.rs or `*`, 2*3"), "*.rs or \\fB*\\fR, 2*3");
        assert_eq!(inline("**a *b* c** *d*"), "\\fBa \\fBb\\fB c\\fR \\fId\\fR");
        assert_eq!(inline("[`a`](b.md) *c*"), "\\fBa\\fR \\fIc\\fR");
    }

    #[test]
    fn names_of_tests_are_for_the_sources() {
        assert_eq!(inline("One. *(a.rs: `x`)* Two *(b.rs)*."), "One. Two.");
    }

    #[test]
    fn nothing_in_a_text_becomes_a_request() {
        assert_eq!(verbatim(".help  'x' a\\b -f"), ".nf\n\\&.help  \\*(Aqx\\*(Aq a\\eb \\-f\n.fi\n");
        assert_eq!(from_markdown(".schema is\na file"), ".PP\n\\&.schema is a file\n");
    }

    #[test]
    fn markdown_becomes_sections_items_and_words() {
        let page = from_markdown(
            "# Title\n\n## The tree\n\nRead `.help`, **now**, *or* [later](x.md).\n\n* one\n  more\n* two: 2 * 3\n\n```\na\n.b\n```\n| a | b |\n|---|---|\n| `x` | y |\n1. first\n",
        );
        let expected = ".SH THE TREE\n.PP\nRead \\fB.help\\fR, \\fBnow\\fR, \\fIor\\fR later.\n.IP \\(bu 3\none more\n\
            .IP \\(bu 3\ntwo: 2 * 3\n.PP\n.RS 4\n.nf\na\n\\&.b\n.fi\n.RE\n.TP\na\nb\n.TP\n\\fBx\\fR\ny\n.IP 1. 4\nfirst\n";
        assert_eq!(page, expected);
    }
}
