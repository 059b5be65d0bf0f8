//! HBase's filter language (`org.apache.hadoop.hbase.filter.ParseFilter`; the shell and the Thrift server speak it).
//!
//! ```text
//! any    = all { "OR" all }              all  = one { "AND" one }
//! one    = ( "SKIP" | "WHILE" ) one | "(" any ")" | filter
//! filter = Name "(" [ argument { [","] argument } ] ")"
//! argument = "'" bytes, with '' for a quote "'" | number | true | false | < | <= | = | != | > | >=
//! ```

use super::arguments::{Argument, build};
use super::{Filter, ListOperator};
use crate::error::{Error, Result};

/// How deep expressions may be nested.
const DEPTH_MAX: usize = 64;

/// An error at a byte of the text, counted from 0.
pub(super) fn error_at(offset: usize, what: impl std::fmt::Display) -> Error {
    Error::invalid(format!("the filter, at byte {offset}: {what}"))
}

impl Filter {
    /// Reads a filter in HBase's filter language, such as `PrefixFilter('r') AND ValueFilter(=, 'substring:x')`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] that names the byte where the text stops making sense, and what could stand there.
    pub fn parse(text: &[u8]) -> Result<Filter> {
        let mut parser = Parser { text, at: 0 };
        let filter = parser.any(0)?;
        match parser.peek() {
            None => Ok(filter),
            Some(b')') => Err(error_at(parser.at, "this parenthesis closes nothing")),
            Some(_) => Err(error_at(parser.at, "AND, OR or the end was expected")),
        }
    }
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    /// The next byte that is no space.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t') = self.text.get(self.at) {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    fn word(&mut self) -> &'a [u8] {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
        rest.get(..length).unwrap_or_default()
    }

    fn take_word(&mut self, wanted: &[u8]) -> bool {
        let found = self.word() == wanted;
        if found {
            self.at += wanted.len();
        }
        found
    }

    fn joined(
        &mut self,
        word: &[u8],
        operator: ListOperator,
        depth: usize,
        part: fn(&mut Self, usize) -> Result<Filter>,
    ) -> Result<Filter> {
        let first = part(self, depth)?;
        let mut filters = vec![first];
        while self.take_word(word) {
            filters.push(part(self, depth)?);
        }
        match filters.len() {
            1 => filters.pop().ok_or_else(|| error_at(self.at, "a filter was expected")),
            _ => Ok(Filter::List { operator, filters }),
        }
    }

    fn any(&mut self, depth: usize) -> Result<Filter> {
        self.joined(b"OR", ListOperator::MustPassOne, depth, Self::all)
    }

    fn all(&mut self, depth: usize) -> Result<Filter> {
        self.joined(b"AND", ListOperator::MustPassAll, depth, Self::one)
    }

    fn one(&mut self, depth: usize) -> Result<Filter> {
        if depth > DEPTH_MAX {
            return Err(error_at(self.at, format!("nested deeper than {DEPTH_MAX}")));
        }
        if self.take_word(b"SKIP") {
            return Ok(Filter::Skip(Box::new(self.one(depth + 1)?)));
        }
        if self.take_word(b"WHILE") {
            return Ok(Filter::WhileMatch(Box::new(self.one(depth + 1)?)));
        }
        if self.peek() == Some(b'(') {
            let opened = self.at;
            self.at += 1;
            let inner = self.any(depth + 1)?;
            return match self.peek() {
                Some(b')') => {
                    self.at += 1;
                    Ok(inner)
                }
                Some(_) => Err(error_at(self.at, "AND, OR or ) was expected")),
                None => Err(error_at(opened, "this parenthesis is not closed")),
            };
        }
        self.filter()
    }

    fn filter(&mut self) -> Result<Filter> {
        let name = self.word();
        let named_at = self.at;
        if name.is_empty() {
            return Err(error_at(named_at, "a filter was expected, such as PrefixFilter('r')"));
        }
        self.at += name.len();
        if self.peek() != Some(b'(') {
            let name = name.escape_ascii();
            return Err(error_at(self.at, format!("( was expected after {name}")));
        }
        let opened = self.at;
        self.at += 1;
        let mut arguments = Vec::new();
        loop {
            match self.peek() {
                None => return Err(error_at(opened, "this parenthesis is not closed")),
                Some(b')') => break,
                Some(b',') => self.at += 1,
                Some(_) => arguments.push(self.argument()?),
            }
        }
        self.at += 1;
        build(name, named_at, &arguments)
    }

    fn argument(&mut self) -> Result<Argument> {
        let start = self.at;
        if self.text.get(start) != Some(&b'\'') {
            let rest = self.text.get(start..).unwrap_or_default();
            let ends = |byte: &u8| matches!(byte, b' ' | b'\t' | b',' | b')');
            let length = rest.iter().position(ends).unwrap_or(rest.len());
            self.at += length;
            let value = rest.get(..length).unwrap_or_default().to_vec();
            return Ok(Argument { offset: start, quoted: false, value });
        }
        let mut value = Vec::new();
        self.at += 1;
        loop {
            match (self.text.get(self.at), self.text.get(self.at + 1)) {
                (None, _) => return Err(error_at(start, "this quote is not closed")),
                (Some(b'\''), Some(b'\'')) => {
                    value.push(b'\'');
                    self.at += 2;
                }
                (Some(b'\''), _) => {
                    self.at += 1;
                    return Ok(Argument { offset: start, quoted: true, value });
                }
                (Some(byte), _) => {
                    value.push(*byte);
                    self.at += 1;
                }
            }
        }
    }
}
